"""Builds a guest kernel: from a user's request to an entry in the cache.

A build is named by the digest of all its inputs. For each source the cache holds the sources and objects of
one build. Every other build of that source (with a patch, a fragment, an edited tree) starts from them in its
own directory and writes only the changed files, so that make compiles only what depends on them (`trees`).
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from blklab.errors import (
    BlklabError,
    KernelBuildError,
    KernelLacksError,
    KernelSourceError,
    SpaceError,
    UsageError,
    reason_of,
)
from blklab.guests.kernels import store
from blklab.guests.kernels.build_record import BuildRecord, InstrumentRecord, PatchRecord
from blklab.guests.kernels.cache import kernel_cache, locked, make_folder, remove_unless_pinned
from blklab.guests.kernels.compilation import BuildObserver, SilentBuildObserver, compile_tree, configure
from blklab.guests.kernels.configuration import (
    Fragment,
    KernelOption,
    merge,
    read_fragment,
    render,
    shipped_fragment,
)
from blklab.guests.kernels.digests import digest_file
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.guests.kernels.legacy import additions_for
from blklab.guests.kernels.names import DEFAULT_NAME, check_name
from blklab.guests.kernels.patch_check import check_patches
from blklab.guests.kernels.patches import Patch, shipped_instruments
from blklab.guests.kernels.releases import check_release, fetch_archive, fetched_archive
from blklab.guests.kernels.scheduler_files import added_schedulers, read_scheduler_files
from blklab.guests.kernels.series import read_series
from blklab.guests.kernels.source import DEBIAN, KernelSource, locate
from blklab.guests.kernels.toolchain import PATCH_TOOL, compiler_identity, require_tools
from blklab.guests.kernels.trees import CachedTree, find_tree, prepare_tree
from blklab.quantities.units import format_bytes
from blklab.shipped import shipped_files

RECIPE = 4
"""Version of the build procedure; changing it causes all kernels to be rebuilt."""

FIRST_BUILD_BYTES = 1_000_000_000
"""Space for a build from scratch: source, objects and products; see docs/appendix/measurements.md."""

TYPICAL_STEPS = 1150
"""Steps of a first build of Linux 6.1 with the shipped configuration; later builds know their own number."""


@dataclass(frozen=True)
class BuildRequest:
    """A user's request for a kernel."""

    name: str = DEFAULT_NAME
    source: str = DEBIAN
    patches: Sequence[str] = ()
    """Files, mailboxes and folders of patches, or names of shipped patches, in order."""
    fragments: Sequence[str] = ()
    """Configuration fragments to add to the shipped one, in order."""
    with_instruments: bool = True
    """Whether to apply blklab's own patches that improve measurements (``kernel/instruments``)."""
    jobs: int | None = None
    """Number of parallel compilers; None for one per processor."""
    scheduler_files: Sequence[str] = ()
    """Schedulers to add that are one file each."""
    release: str | None = None
    """A release to fetch the source of from Debian's suites, for example ``7.3``; replaces `source`."""


@dataclass(frozen=True)
class BuildPlan:
    """A request with all its inputs found and checked."""

    name: str
    source: KernelSource
    patches: tuple[Patch, ...]
    """The user's patches, then the schedulers that are added."""
    instruments: tuple[Patch, ...]
    """Patches that are tried after the others, and skipped if they do not apply."""
    fragments: tuple[Fragment, ...]
    nr_shipped: int
    """How many of the fragments ship with blklab; the rest are the user's or those of schedulers that are
    added."""
    compiler: str
    jobs: int
    options: Mapping[str, KernelOption] = field(repr=False)
    build_id: str
    tree_id: str

    @property
    def existing(self) -> KernelBuild | None:
        """The build, if it was made before under any name; otherwise None."""
        return store.build_of_id(self.build_id, self.name)

    @property
    def tree(self) -> CachedTree | None:
        """The sources and objects to start from, if this source was built before; otherwise None."""
        return find_tree(self.tree_id)

    @property
    def needed_bytes(self) -> int:
        """Space that the build needs, temporary files included."""
        tree = self.tree
        return FIRST_BUILD_BYTES if tree is None else tree.size_bytes * 5 // 4


def plan_build(request: BuildRequest) -> BuildPlan:
    """Finds everything that a request names; changes nothing.

    Raises:
        UsageError: for an invalid name, fragment or patch.
        UnknownNameError: if a file that it names does not exist.
        RequirementError: if the source or a tool is missing, or a release was not fetched yet.
    """
    name = check_name(request.name)
    request = _with_archive(request, fetched_archive)
    if request.jobs is not None and request.jobs < 1:
        raise UsageError(f"a build needs at least one compiler, not {request.jobs}")
    schedulers = read_scheduler_files(request.scheduler_files)
    patches = (*(patch for text in request.patches for patch in read_series(text)), *schedulers)
    own_fragments = (
        *(scheduler.fragment() for scheduler in schedulers),
        *(read_fragment(Path(text).expanduser()) for text in request.fragments),
    )
    source = locate(request.source)
    additions = additions_for(source)
    shipped = (shipped_fragment(), *additions.fragments)
    variant = _shipped_variant(request)
    fragments = (*shipped, *own_fragments)
    instruments = (*shipped_instruments(), *additions.instruments) if request.with_instruments else ()
    require_tools(source.tools, PATCH_TOOL if patches or instruments else {})
    options = merge(fragments)
    compiler = compiler_identity()
    tree_id = _digest(RECIPE, source.lineage, compiler, *variant)
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
        name,
        source,
        patches,
        instruments,
        fragments,
        len(shipped) + len(variant),
        compiler,
        jobs,
        options,
        build_id,
        tree_id,
    )


def _shipped_variant(request: BuildRequest) -> tuple[str, ...]:
    """The names of those further fragments that ship with blklab, such as that of a torture.

    Their kernels share a tree of their own: from the usual one make would compile everything, each time.
    """
    shipped = set(shipped_files("kernel", ".config").values())
    paths = [Path(text) for text in request.fragments]
    return tuple(path.stem for path in paths if path in shipped)


def build(request: BuildRequest, observer: BuildObserver | None = None) -> tuple[KernelBuild, bool]:
    """Builds a kernel, or finds the one that was built from identical inputs.

    Only one kernel is built at a time; a second request waits. An interrupted build leaves the cache
    unchanged.

    Returns:
        The kernel, and whether it was built just now.

    Raises:
        BlklabError: as for `plan_build`.
        PatchError: if a patch does not apply.
        KernelSourceError: if the source is too old, is damaged, or lacks User-mode Linux.
        KernelLacksError: if the source does not support an option.
        KernelBuildError: if the compiler fails.
        SpaceError: if there is too little space.
    """
    watcher = observer or SilentBuildObserver()
    request = _with_archive(request, lambda release: fetch_archive(release, watcher.announce))
    plan = plan_build(request)
    if (existing := _take_existing(plan)) is not None:
        return existing, False
    _check_folder()
    check_patches(plan.patches, plan.source, plan.tree_id, watcher)

    def waiting() -> None:
        watcher.announce("waiting for another build to finish")

    with locked(kernel_cache() / "building.lock", waiting):
        if (existing := _take_existing(plan)) is not None:
            return existing, False
        _sweep()
        _check_space(plan)
        with _work_folder() as work:
            _build(plan, work, watcher)
    return store.find(plan.name), True


def _with_archive(request: BuildRequest, archive_of: Callable[[str], Path | None]) -> BuildRequest:
    """A request for a release, as one for the archive of its source."""
    if request.release is None:
        return request
    if request.source != DEBIAN:
        raise UsageError("a kernel is built from a source or a release, not both")
    archive = archive_of(check_release(request.release))
    if archive is None:
        raise KernelSourceError(f"the source of Linux {request.release} was not fetched yet")
    return replace(request, source=str(archive), release=None)


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
        raise _disk_error(error) from error
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
        added_schedulers=added_schedulers(tree.folder),
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
        tree.save_to_cache(steps, _digest(render(plan.options)), usual=len(plan.fragments) == plan.nr_shipped)
        store.give_name(plan.name, plan.build_id)


def _take_existing(plan: BuildPlan) -> KernelBuild | None:
    """The build, if it was made before; gives it the requested name."""
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
            f"a kernel cannot be built in {folder}: its build system supports no spaces or colons in paths",
            hint="set XDG_CACHE_HOME to a path without them",
        )


def _check_space(plan: BuildPlan) -> None:
    free_bytes = shutil.disk_usage(kernel_cache()).free
    if free_bytes < plan.needed_bytes:
        raise SpaceError(
            f"building a kernel needs {format_bytes(plan.needed_bytes)} in {kernel_cache()}, "
            f"and {format_bytes(free_bytes)} are free",
            hint="free some space (`blklab kernel remove --trees` removes what only saves time), "
            "or set XDG_CACHE_HOME to a directory that has enough",
        )


def _sweep() -> None:
    """Removes the remains of killed builds; the caller holds the build lock, so no build is under way."""
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
    """Steps of the largest build in the cache: the best estimate for a build from scratch."""
    folders = (kernel_cache() / "trees").glob("*")
    known = [tree.steps for folder in folders if (tree := find_tree(folder.name)) is not None]
    return max(known, default=0) or TYPICAL_STEPS


def _with_log(error: BlklabError, name: str, log_path: Path) -> BlklabError:
    """Adds the path of the log to an error, after copying the log out of the work directory."""
    destination = make_folder(kernel_cache() / "logs") / f"{name}.log"
    shutil.copyfile(log_path, destination)
    return type(error)(
        error.message, hint=f"{error.hint + '; ' if error.hint else ''}the log is {destination}"
    )


def _disk_error(error: OSError) -> SpaceError:
    return SpaceError(
        f"the kernel cannot be built: {error.filename or kernel_cache()}: {reason_of(error)}",
        hint="free some space, or set XDG_CACHE_HOME to a directory that has enough",
    )


def _sync(folder: Path) -> None:
    """Flushes the files of a directory, so that it is complete after its rename even if power fails."""
    for path in [*folder.iterdir(), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
