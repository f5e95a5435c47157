"""Builds a scheduler as a module: from what the user asks for to a file that was proven to fit."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from blklab.errors import KernelBuildError, RefusedError, UsageError
from blklab.guests.kernels.build_record import PatchRecord
from blklab.guests.kernels.cache import locked, make_folder
from blklab.guests.kernels.patches import Patch
from blklab.guests.kernels.series import read_series
from blklab.guests.kernels.toolchain import PATCH_TOOL, build_environment, require_programs
from blklab.modules.btf import TypeInformation, read_type_information
from blklab.modules.cache import module_cache
from blklab.modules.changes import Changes, changes_of
from blklab.modules.compiler import Compiler, find_compiler
from blklab.modules.elf import ObjectFile, read_object_file
from blklab.modules.headers import KernelHeaders, find_headers, running_release
from blklab.modules.layout import PROBE, Proof, prove, shortened
from blklab.modules.record import ModuleRecord, ProofRecord
from blklab.modules.renaming import check_module_name, module_name, renamed
from blklab.modules.scheduler_source import (
    SchedulerSource,
    from_file,
    from_tree,
    one_scheduler_of,
    private_headers,
    texts_of,
)
from blklab.modules.signing import find_key, is_enrolled, sign, signing_advice, wants_signature
from blklab.modules.source import BlockSource, find_source, named_source
from blklab.modules.store import BuiltModule, module_of_id, name_module, read_module

RUNNING_TYPES = Path("/sys/kernel/btf/vmlinux")
_RECIPE = 2
"""Changes when the same inputs give another module."""
_TOOLS = {"make": "make", "tar": "tar", "strip": "binutils"}

Announce = Callable[[str], None]


@dataclass(frozen=True)
class ModuleRequest:
    """A module as a user asks for it."""

    name: str
    patches: tuple[str, ...] = ()
    scheduler: str | None = None
    scheduler_file: str | None = None
    source: str | None = None
    headers: Path | None = None
    release: str | None = None
    types: Path | None = None
    """The kernel's type information; None for the running kernel's, or the program beside the headers."""
    unproven: bool = False


@dataclass(frozen=True)
class ModulePlan:
    """Everything that is settled before a build."""

    request: ModuleRequest
    headers: KernelHeaders
    source: BlockSource
    scheduler: SchedulerSource
    patches: tuple[Patch, ...]
    compiler: Compiler
    build_id: str
    existing: BuiltModule | None
    types: Path | None
    """None if there is none and the module may be unproven."""
    files: dict[str, str] = field(repr=False)
    """The scheduler's files as they are compiled."""
    changes: Changes | None = field(repr=False)
    """For a guest; None for an unchanged copy."""

    @property
    def module(self) -> str:
        """The module's name, as in ``/sys/module``."""
        return module_name(self.request.name)

    @property
    def command(self) -> list[str]:
        """The build's command, run in the folder of the files."""
        # The kernel's program is seldom beside its headers, and pahole seldom installed: neither is needed.
        return [
            "make",
            f"--directory={self.headers.folder}",
            *self.compiler.make_variables,
            "CONFIG_DEBUG_INFO_BTF_MODULES=",
        ]


def plan_module(request: ModuleRequest, announce: Announce, *, may_fetch: bool = True) -> ModulePlan:
    """Settles what a module is built from, and refuses what cannot be one.

    Args:
        request: The module.
        announce: Called with each step that takes long.
        may_fetch: Whether a source may be downloaded.

    Raises:
        UsageError: for a name or a combination that cannot be.
        UnknownNameError: if something that it names does not exist.
        PatchError: if a patch does not apply, or changes more than the scheduler.
        KernelSourceError: if headers or source are missing; the hint says how to get them.
        RefusedError: if they are not of the same kernel, or it cannot be proven that they are.
        MissingToolError: if the kernel's compiler is missing.
    """
    check_module_name(request.name)
    if request.scheduler_file is not None and (request.patches or request.scheduler):
        raise UsageError("--scheduler-file is a whole scheduler: it takes neither --patch nor --scheduler")
    patches = [patch for text in request.patches for patch in read_series(text)]
    # Mistakes of the request come first: headers are another package to get.
    own = None if request.scheduler_file is None else from_file(Path(request.scheduler_file).expanduser())
    chosen = None if own is not None else one_scheduler_of(request.scheduler, patches)
    if request.source is not None:
        named_source(request.source)
    headers = find_headers(request.release, request.headers)
    types = _find_types(request, headers)
    require_programs("a module cannot be built", _TOOLS | (PATCH_TOOL if patches else {}))
    compiler = find_compiler(headers)
    source = find_source(headers, request.source, announce, may_fetch=may_fetch)
    public = _public_folders(headers)
    scheduler = own.with_traces(public) if own else from_tree(chosen, patches, source.folder, public)
    content = hashlib.sha256(f"{_RECIPE}\0{request.name}\0{compiler.text}\0".encode())
    for part in (headers.release, headers.build, source.sha256, _digest_of(headers)):
        content.update(f"{part}\0".encode())
    content.update(b"unproven" if types is None else hashlib.sha256(types.read_bytes()).digest())
    for files in (scheduler.files, scheduler.traces):
        for name, text in sorted(files.items()):
            content.update(f"{name}\0{text}\0".encode())
    build_id = content.hexdigest()[:32]
    files = renamed(scheduler.files, request.name, build_id[:16], scheduler.traces)
    return ModulePlan(
        request,
        headers,
        source,
        scheduler,
        tuple(patches),
        compiler,
        build_id,
        module_of_id(build_id),
        types,
        files,
        changes_of(scheduler, patches, request.name, is_file=request.scheduler_file is not None),
    )


def build_module(request: ModuleRequest, announce: Announce) -> tuple[BuiltModule, bool]:
    """Builds a module, or finds the build of the same inputs.

    Returns:
        The module, and whether it was built now.

    Raises:
        RefusedError: if the headers do not fit the kernel.
        KernelBuildError: if it cannot be compiled, or calls what the kernel does not export.
    """
    plan = plan_module(request, announce)
    if plan.existing is not None:
        name_module(plan.existing)
        return plan.existing, False
    make_folder(module_cache())
    with locked(module_cache() / "building.lock", lambda: announce("waiting for another build")):
        module = _build(plan, announce)
    name_module(module)
    return module, True


def _build(plan: ModulePlan, announce: Announce) -> BuiltModule:
    begun = time.monotonic()
    work = make_folder(module_cache() / "work") / plan.build_id
    shutil.rmtree(work, ignore_errors=True)
    try:
        inside = make_folder(work / "files")
        _write_files(plan, inside)
        proof = None
        if plan.types is not None:
            announce("comparing the headers with the kernel's own structures")
            proof = _prove(plan, inside, read_type_information(plan.types))
        announce(f"compiling {', '.join(plan.scheduler.compiled)}")
        log = _make(plan, inside, "modules")
        (work / "build.log").write_text(log, encoding="utf-8")
        product = inside / f"{plan.module}.ko"
        if not product.is_file():
            raise KernelBuildError(f"the module could not be built: {_complaint(log, inside)}")
        subprocess.run(["strip", "--strip-debug", product], capture_output=True, check=False)
        signed_with, notes = _sign_if_wanted(plan, product)
        product.replace(work / product.name)
        shutil.rmtree(inside)
        if plan.changes is not None:
            plan.changes.write_to(work)
        record = _record(plan, work / product.name, proof, signed_with, notes, time.monotonic() - begun)
        (work / "module.json").write_text(record.model_dump_json(indent=2), encoding="utf-8")
        folder = make_folder(module_cache() / "builds") / plan.build_id
        shutil.rmtree(folder, ignore_errors=True)  # one that was damaged
        work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return read_module(folder)


def _record(
    plan: ModulePlan,
    product: Path,
    proof: Proof | None,
    signed_with: str | None,
    notes: list[str],
    seconds: float,
) -> ModuleRecord:
    data = product.read_bytes()
    return ModuleRecord(
        build_id=plan.build_id,
        scheduler=plan.scheduler.scheduler,
        is_new=plan.scheduler.is_new,
        name=plan.request.name,
        module=plan.module,
        release=plan.headers.release,
        kernel_build=plan.headers.build,
        headers=str(plan.headers.folder),
        source=str(plan.source.origin),
        source_version=plan.source.package or plan.source.version,
        patches=[PatchRecord(name=p.name, sha256=p.sha256, files=list(p.files)) for p in plan.patches],
        changes=None if plan.changes is None else plan.changes.record,
        compiler=plan.compiler.text,
        proof=(
            None
            if proof is None
            else ProofRecord(
                structures=len(proof.structures), members=proof.nr_members, constants=proof.nr_constants
            )
        ),
        signed_with=signed_with,
        notes=notes,
        sha256=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        built_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        build_seconds=round(seconds, 2),
    )


def _write_files(plan: ModulePlan, folder: Path) -> None:
    for name, path in private_headers(plan.source.folder, plan.scheduler.files).items():
        shutil.copy(path, folder / name)
    for name, text in plan.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    objects = " ".join(f"{file.removesuffix('.c')}.o" for file in plan.scheduler.compiled)
    lines = [f"obj-m := {plan.module}.o", f"{plan.module}-y := {objects}"]
    lines += ["ccflags-y := -I$(src)", f"CFLAGS_{PROBE}.o := -w"]
    (folder / "Makefile").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _prove(plan: ModulePlan, folder: Path, types: TypeInformation) -> Proof:
    """Compares the headers with the kernel's types.

    Raises:
        RefusedError: if they do not fit.
    """

    def compile_probe(text: str) -> tuple[ObjectFile | None, str]:
        (folder / f"{PROBE}.c").write_text(text, encoding="utf-8")
        product = folder / f"{PROBE}.o"
        product.unlink(missing_ok=True)
        messages = _make(plan, folder, product.name)
        return (read_object_file(product.read_bytes()) if product.is_file() else None), messages

    own = plan.scheduler.files
    headers = texts_of(private_headers(plan.source.folder, own))
    proof = prove(types, own, headers, compile_probe)
    for path in folder.glob(f"*{PROBE}*"):
        path.unlink()
    if proof.differences:
        raise RefusedError(
            f"the headers do not fit the kernel, so the module would corrupt memory: {proof.summary}",
            hint="use the headers and the source of exactly the kernel that runs (uname -rv)",
        )
    return proof


def _make(plan: ModulePlan, folder: Path, target: str) -> str:
    """Runs the kernel's build system on a folder; returns its output."""
    command = [*plan.command, f"M={folder}", f"-j{os.cpu_count() or 1}", target]
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
        errors="replace",
        env=build_environment(),
    )
    return done.stdout


def _complaint(log: str, folder: Path) -> str:
    """The errors of a build, without the folder that is removed after it."""
    lines = [line.strip().replace(f"{folder}/", "") for line in log.splitlines()]
    errors = [line for line in lines if "error:" in line or line.startswith("ERROR:")]
    others = [line for line in lines if "***" in line] or lines[-1:]
    reasons = list(dict.fromkeys(errors)) or others[:1] or ["make gave no reason"]
    return shortened(reasons)


def _sign_if_wanted(plan: ModulePlan, product: Path) -> tuple[str | None, list[str]]:
    """Signs a module if the running kernel wants that; returns the key, and notes for the user."""
    notes = [plan.compiler.note] if plan.compiler.note else []
    reason = wants_signature() if plan.headers.release == running_release() else None
    if reason is None:
        return None, notes
    key = find_key()
    if key is None:
        return None, [*notes, signing_advice(reason, None)]
    sign(product, plan.headers, key)
    if is_enrolled(key) is False:
        notes.append(signing_advice(reason, key))
    return str(key.key), notes


def _find_types(request: ModuleRequest, headers: KernelHeaders) -> Path | None:
    """The type information of the kernel that will load the module.

    Raises:
        RefusedError: if there is none, unless that was accepted.
    """
    if request.types is not None:
        return request.types
    places = [Path("/usr/lib/debug/boot") / f"vmlinux-{headers.release}", headers.folder / "vmlinux"]
    if headers.release == running_release():
        places = [RUNNING_TYPES]
    there = next((path for path in places if path.is_file()), None)
    if there is None and not request.unproven:
        raise RefusedError(
            f"it cannot be proven that the headers fit Linux {headers.release}: "
            f"{' and '.join(map(str, places))} {'is' if len(places) == 1 else 'are'} missing",
            hint="name the kernel's BTF or vmlinux with --btf; --unproven builds what may corrupt memory",
        )
    return there


def _public_folders(headers: KernelHeaders) -> list[Path]:
    """The folders of the kernel's public headers; Debian keeps those of all flavours apart."""
    folders = [headers.folder / "include"]
    makefile = (headers.folder / "Makefile").read_text(encoding="utf-8", errors="replace")
    for line in makefile.splitlines():
        word, _, path = line.partition(" ")
        if word == "include" and path.strip().endswith("/Makefile"):
            folders.append(Path(path.strip()).parent / "include")
    source = headers.folder / "source"
    if source.is_dir():
        folders.append(source / "include")
    return folders


def _digest_of(headers: KernelHeaders) -> str:
    """Of what decides a kernel's structures and symbols, and the place of its headers."""
    total = hashlib.sha256(str(headers.folder).encode())
    for name in (".config", "Module.symvers"):
        path = headers.folder / name
        total.update(path.read_bytes() if path.is_file() else b"\0")
    return total.hexdigest()
