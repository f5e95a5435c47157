"""Building a guest kernel: from what a person asks for to an entry in the cache.

A build is named by the digest of all that decides about it. The sources and objects of one build of each
source are kept; any other build of that source (a patch, a fragment, an edited tree) starts from them, in a
folder of its own in which only what changed is written, so that make compiles no more than that (`trees`).
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from blklab.errors import BlklabError, KernelBuildError, KernelLacksError, SpaceError, UsageError, reason_of
from blklab.guests.kernels import store
from blklab.guests.kernels.build_record import BuildRecord, InstrumentRecord, PatchRecord
from blklab.guests.kernels.cache import kernel_cache, locked, make_folder, remove_unless_pinned
from blklab.guests.kernels.compilation import BuildObserver, SilentBuildObserver, compile_tree, configure
from blklab.guests.kernels.configuration import (
    Fragment,
    Option,
    merge,
    read_fragment,
    render,
    shipped_fragment,
)
from blklab.guests.kernels.digests import digest_file
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.guests.kernels.names import DEFAULT_NAME, check_name
from blklab.guests.kernels.patch_check import check_patches
from blklab.guests.kernels.patches import Patch, read_patch, shipped_instruments
from blklab.guests.kernels.source import DEBIAN, KernelSource, locate
from blklab.guests.kernels.toolchain import PATCH_TOOL, compiler_identity, require_tools
from blklab.guests.kernels.trees import CachedTree, find_tree, prepare_tree
from blklab.quantities.units import format_bytes

RECIPE = 4
"""Number of the way in which kernels are built; a change of it makes all builds anew."""

FIRST_BUILD_BYTES = 1_000_000_000
"""Room that a build from nothing takes: source, objects and products; see docs/appendix/measurements.md."""

TYPICAL_STEPS = 1150
"""Steps of a first build with the shipped configuration, of Linux 6.1; later ones know their own number."""


@dataclass(frozen=True)
class BuildRequest:
    """What a person asks for."""

    name: str = DEFAULT_NAME
    source: str = DEBIAN
    patches: Sequence[str] = ()
    """Files, or names of shipped patches, in their order."""
    fragments: Sequence[str] = ()
    """Configuration fragments that are added to the shipped one, in their order."""
    with_instruments: bool = True
    """Whether to apply the patches of blklab's own that improve the measuring (``kernel/instruments``)."""
    jobs: int | None = None
    """Compilers at a time; as many as there are processors by default."""


@dataclass(frozen=True)
class BuildPlan:
    """A request whose parts were found and make sense."""

    name: str
    source: KernelSource
    patches: tuple[Patch, ...]
    instruments: tuple[Patch, ...]
    """Patches that are applied if they apply, after the others."""
    fragments: tuple[Fragment, ...]
    compiler: str
    jobs: int
    options: Mapping[str, Option] = field(repr=False)
    build_id: str
    tree_id: str

    @property
    def existing(self) -> KernelBuild | None:
        """The build if it was made before, under whatever name."""
        return store.build_of_id(self.build_id, self.name)

    @property
    def tree(self) -> CachedTree | None:
        """Sources and objects to start from, if a build of this source was made before."""
        return find_tree(self.tree_id)

    @property
    def needed_bytes(self) -> int:
        """Room that the build takes, its temporary files included."""
        tree = self.tree
        return FIRST_BUILD_BYTES if tree is None else tree.size_bytes * 5 // 4


def plan_build(request: BuildRequest) -> BuildPlan:
    """Finds everything that a request names; changes nothing.

    Raises:
        UsageError: for a name that cannot be one, a fragment or patch with a mistake.
        UnknownNameError: if a file that it names does not exist.
        RequirementError: if the source or a tool is missing.
    """
    name = check_name(request.name)
    if request.jobs is not None and request.jobs < 1:
        raise UsageError(f"{request.jobs} compilers at a time are too few")
    fragments = (shipped_fragment(), *(read_fragment(Path(text).expanduser()) for text in request.fragments))
    patches = tuple(read_patch(text) for text in request.patches)
    instruments = shipped_instruments() if request.with_instruments else ()
    source = locate(request.source)
    require_tools(source.tools, PATCH_TOOL if patches or instruments else {})
    options = merge(fragments)
    compiler = compiler_identity()
    tree_id = _digest(RECIPE, source.lineage, compiler)
    build_id = _digest(
        RECIPE,
        source.sha256,
        compiler,
        render(options),
        [patch.sha256 for patch in patches],
        [patch.sha256 for patch in instruments],
    )
    jobs = request.jobs or len(os.sched_getaffinity(0))
    return BuildPlan(
        name, source, patches, instruments, fragments, compiler, jobs, options, build_id, tree_id
    )


def build(request: BuildRequest, observer: BuildObserver | None = None) -> tuple[KernelBuild, bool]:
    """Builds a kernel, or finds the one that was built from the very same.

    One kernel is built at a time; a second request waits. Interrupted, it leaves nothing but what was there.

    Returns:
        The kernel, and whether it was built just now.

    Raises:
        BlklabError: as for `plan_build`.
        PatchError: if a patch does not apply.
        KernelSourceError: if the source is too old, damaged or without User-mode Linux.
        KernelLacksError: if the source does not grant an option.
        KernelBuildError: if the compiler fails.
        SpaceError: if there is too little room.
    """
    watcher = observer or SilentBuildObserver()
    plan = plan_build(request)
    if (existing := _take_existing(plan)) is not None:
        return existing, False
    _check_folder()
    check_patches(plan.patches, plan.source, plan.tree_id, watcher)

    def waiting() -> None:
        watcher.announce("waiting for another build to end")

    with locked(kernel_cache() / "building.lock", waiting):
        if (existing := _take_existing(plan)) is not None:
            return existing, False
        _sweep()
        _check_space(plan)
        with _work_folder() as work:
            _build(plan, work, watcher)
    return store.find(plan.name), True


def _build(plan: BuildPlan, work: Path, observer: BuildObserver) -> None:
    begun = time.monotonic()
    product = make_folder(work / "build")
    log_path = product / "build.log"
    try:
        with log_path.open("w", encoding="utf-8") as log:
            tree = prepare_tree(plan.source, plan.patches, plan.instruments, plan.tree_id, work, observer)
            log.writelines(f"instrument {name} left out: {why}\n" for name, why in tree.skipped.items())
            observer.announce(f"configuring Linux {tree.version}")
            missing = configure(tree.folder, plan.options, plan.jobs, log)
            observer.announce(f"compiling Linux {tree.version}")
            expected = None if tree.has_objects else _steps_of_former_builds()
            steps, compiled = compile_tree(tree.folder, plan.jobs, log, observer, expected)
            log.write(f"{steps} steps, {compiled} files compiled, {time.monotonic() - begun:.1f} s in all\n")
    except (KernelBuildError, KernelLacksError) as error:
        raise _with_log(error, plan.name, log_path) from error
    except OSError as error:
        raise _disk_trouble(error) from error
    shutil.copy(tree.folder / "linux", product / "linux")
    shutil.copyfile(tree.folder / ".config", product / "config")
    record = BuildRecord(
        build_id=plan.build_id,
        version=tree.version,
        source=str(plan.source.path),
        source_kind=plan.source.kind,
        source_sha256=plan.source.sha256,
        patches=[PatchRecord(name=p.name, sha256=p.sha256, files=list(p.files)) for p in plan.patches],
        instruments=[
            InstrumentRecord(
                name=p.path.stem, sha256=p.sha256, files=list(p.files), complaint=tree.skipped.get(p.name)
            )
            for p in plan.instruments
        ],
        fragments=[fragment.name for fragment in plan.fragments[1:]],
        missing_options=missing,
        compiler=plan.compiler,
        recipe=RECIPE,
        tree_id=plan.tree_id,
        linux_sha256=digest_file(product / "linux"),
        compiled_files=compiled,
        built_at=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        build_seconds=round(time.monotonic() - begun, 1),
    )
    (product / "build.json").write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
    _sync(product)
    with store.store_lock():
        remove_unless_pinned(kernel_cache() / "builds" / plan.build_id, work)  # a damaged one of that digest
        product.rename(make_folder(kernel_cache() / "builds") / plan.build_id)
        tree.keep(steps, _digest(render(plan.options)), usual=not plan.fragments[1:])
        store.give_name(plan.name, plan.build_id)


def _take_existing(plan: BuildPlan) -> KernelBuild | None:
    """The build if it was made before, under the name that it is to have now."""
    if plan.existing is None:
        return None
    with store.store_lock():
        if plan.existing is None:
            return None
        store.give_name(plan.name, plan.build_id)
    return store.find(plan.name)


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).hexdigest()[:20]


def _check_folder() -> None:
    folder = make_folder(kernel_cache())
    if any(letter in str(folder.resolve()) for letter in " \t:"):
        raise UsageError(
            f"a kernel cannot be built in {folder}: its build system takes no blanks or colons in a path",
            hint="set XDG_CACHE_HOME to a path without them",
        )


def _check_space(plan: BuildPlan) -> None:
    free_bytes = shutil.disk_usage(kernel_cache()).free
    if free_bytes < plan.needed_bytes:
        raise SpaceError(
            f"building a kernel needs {format_bytes(plan.needed_bytes)} in {kernel_cache()}, "
            f"and {format_bytes(free_bytes)} are free",
            hint="make room (`blklab kernel remove --trees` frees what only saves time), "
            "or set XDG_CACHE_HOME to a place that has it",
        )


def _sweep() -> None:
    """Removes what killed builds left; the caller holds the builders' lock, so none is under way."""
    shutil.rmtree(kernel_cache() / "work", ignore_errors=True)
    with store.store_lock():
        store.remove_unnamed()


@contextmanager
def _work_folder() -> Iterator[Path]:
    work = make_folder(kernel_cache() / "work" / secrets.token_hex(4))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _steps_of_former_builds() -> int:
    """Steps of the largest build whose tree is kept: the best guess for one from nothing."""
    folders = (kernel_cache() / "trees").glob("*")
    known = [tree.steps for folder in folders if (tree := find_tree(folder.name)) is not None]
    return max(known, default=0) or TYPICAL_STEPS


def _with_log(error: BlklabError, name: str, log_path: Path) -> BlklabError:
    """The error, with the log in a place that outlives the work folder."""
    destination = make_folder(kernel_cache() / "logs") / f"{name}.log"
    shutil.copyfile(log_path, destination)
    return type(error)(
        error.message, hint=f"{error.hint + '; ' if error.hint else ''}the log is {destination}"
    )


def _disk_trouble(error: OSError) -> SpaceError:
    return SpaceError(
        f"the kernel cannot be built: {error.filename or kernel_cache()}: {reason_of(error)}",
        hint="make room, or set XDG_CACHE_HOME to a place that has it",
    )


def _sync(folder: Path) -> None:
    """Puts the files of a folder on disk, so that a renamed folder is whole even after a power cut."""
    for path in [*folder.iterdir(), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
