"""`blklab kernel module`: builds and shows modules, and lists and removes them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from blklab.cli.builds import how_built, patches_as_json, print_builds, say, write_json
from blklab.errors import ExitCode
from blklab.labs.gate.arms import gate_module
from blklab.labs.gate.gate import gate_summary
from blklab.modules.building import ModulePlan, ModuleRequest, build_module, plan_module
from blklab.modules.gate_results import GateResult, results_of
from blklab.modules.renaming import module_name
from blklab.modules.store import BuiltModule, find_modules, remove_module
from blklab.progress.build import BuildDisplay
from blklab.progress.gate import GateDisplay
from blklab.quantities.units import format_bytes
from blklab.report.terminal import print_note

SCHEMA = "blklab.kernel-module/1"


def build_and_show(
    *,
    name: str,
    patches: tuple[str, ...],
    scheduler: str | None,
    scheduler_file: str | None,
    source: str | None,
    headers: Path | None,
    release: str | None,
    types: Path | None,
    unproven: bool,
    dry_run: bool,
    seeds: int,
    no_gate: bool,
    quiet: bool,
    json_file: str | None,
) -> None:
    """Builds the module, and prints or writes what it is."""
    request = ModuleRequest(
        name,
        patches,
        scheduler,
        scheduler_file,
        source,
        None if headers is None else headers.expanduser().absolute(),
        release,
        types,
        unproven,
    )
    if dry_run:
        with BuildDisplay(quiet=quiet) as display:
            plan = plan_module(request, display.announce, may_fetch=False)
        _show_plan(plan, json_file)
        return
    with BuildDisplay(quiet=quiet) as display:
        module, is_new = build_module(request, display.announce)
    gate = None if no_gate else gate_module(module, partial(GateDisplay, quiet=quiet), seeds=seeds)
    if json_file is not None:
        passed = None if gate is None else gate.model_dump(exclude={"format"})
        write_json(json_file, SCHEMA, {"built": is_new, "module": module_as_json(module), "gate": passed})
        return
    record = module.record
    how = how_built(record.build_seconds, is_new=is_new)
    what = _what(record.scheduler, is_new=record.is_new)
    say(f"{name}: {what} for Linux {record.release}, {how}")
    say(f"  {_proof(module)}")
    for note in record.notes:
        say(f"  {note}")
    if record.changes is not None:
        say(f"  {_gate_text(gate)}")
    say(f"  {module.file}")


def print_modules(modules: Sequence[BuiltModule]) -> None:
    """Prints a table of modules, if there are any."""
    if not modules:
        return
    records = [module.record for module in modules]
    print_builds(
        ("module", "of", "for Linux"), (((one.name, one.scheduler, one.release), one) for one in records)
    )


def listed_modules() -> list[BuiltModule]:
    """All modules; says which are damaged."""
    modules, damaged = find_modules()
    for error in damaged:
        print_note(f"{error.message}; {error.hint}")
    return modules


def remove_modules(names: Sequence[str], *, dry_run: bool, json_file: str | None) -> int:
    """Removes modules of those names, for all kernels; says which."""
    modules = listed_modules()
    removed: list[dict[str, str]] = []
    for name in dict.fromkeys(names):
        releases = [module.record.release for module in modules if module.record.name == name]
        if not dry_run or not releases:
            releases = remove_module(name)
        removed += [{"name": name, "release": release} for release in releases]
    if json_file is not None:
        write_json(json_file, SCHEMA, {"dry_run": dry_run, "removed": removed})
        return ExitCode.OK
    for one in removed:
        say(f"{'would remove' if dry_run else 'removed'} the module {one['name']} for Linux {one['release']}")
    return ExitCode.OK


def module_as_json(module: BuiltModule) -> dict[str, Any]:
    """A module for JSON documents."""
    return {"file": str(module.file), **module.record.model_dump(exclude={"format"})}


def _show_plan(plan: ModulePlan, json_file: str | None) -> None:
    scheduler = plan.scheduler
    if json_file is not None:
        content = {
            "dry_run": True,
            "name": plan.request.name,
            "build": plan.build_id,
            "exists": plan.existing is not None,
            "release": plan.headers.release,
            "headers": str(plan.headers.folder),
            "source": str(plan.source.origin),
            "source_version": plan.source.package or plan.source.version,
            "scheduler": scheduler.scheduler,
            "compiled": list(scheduler.compiled),
            "patches": patches_as_json(plan.patches),
            "compiler": plan.compiler.text,
            "types": None if plan.types is None else str(plan.types),
            "command": plan.command,
        }
        write_json(json_file, SCHEMA, content)
        return
    say(f"module {module_name(plan.request.name)} for Linux {plan.headers.release}, build {plan.build_id}")
    what = _what(scheduler.scheduler, is_new=scheduler.is_new)
    say(f"  scheduler: {plan.request.name}, {what}, from {', '.join(scheduler.compiled)}")
    for patch in plan.patches:
        say(f"  patch: {patch.path} ({', '.join(patch.files)})")
    say(f"  headers: {plan.headers.folder}")
    say(f"  source: {plan.source.origin}, {plan.source.package or plan.source.version}")
    say(f"  compiler: {plan.compiler.text}")
    if plan.changes is not None:
        passed = [result.release for result in results_of(plan.changes.record.sha256) if result.passed]
        say(f"  gate: {f'passed on Linux {passed[-1]}' if passed else 'not passed yet'}")
    say(f"  proof: {'none' if plan.types is None else f'against {plan.types}'}")
    if plan.existing is not None:
        say(f"  already built: {plan.existing.folder}; nothing to compile")
        return
    say(f"  {shlex.join([*plan.command, 'M=FOLDER', 'modules'])}")


def _what(scheduler: str, *, is_new: bool) -> str:
    return "a scheduler of its own" if is_new else f"a variant of {scheduler}"


def _proof(module: BuiltModule) -> str:
    proof = module.record.proof
    if proof is None:
        return "unproven: nothing says that the headers fit the kernel, and the module may corrupt memory"
    return (
        f"proven to fit: {proof.structures} structures with {proof.members} members and {proof.constants} "
        f"constants are as in the kernel; {format_bytes(module.record.size_bytes)}"
    )


def _gate_text(gate: GateResult | None) -> str:
    return "not through the gate yet" if gate is None else gate_summary(gate)
