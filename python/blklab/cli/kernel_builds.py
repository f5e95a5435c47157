"""`blklab kernel build`, `list`, `show` and `remove`: guest kernels and modules that were built."""

from __future__ import annotations

from typing import Any

import click

from blklab.cli.builds import how_built, patches_as_json, print_builds, say, seconds_text, write_json
from blklab.cli.module_builds import listed_modules, module_as_json, print_modules, remove_modules
from blklab.cli.output import print_document
from blklab.errors import ExitCode
from blklab.guests.kernels import store
from blklab.guests.kernels.building import BuildPlan, BuildRequest, build, plan_build
from blklab.guests.kernels.cache import folder_size_bytes, kernel_cache
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.guests.kernels.names import DEFAULT_NAME, kernel_names
from blklab.guests.kernels.patch_check import check_patches
from blklab.guests.kernels.releases import check_release, fetched_archive
from blklab.progress.build import BuildDisplay
from blklab.quantities.formatting import count_of
from blklab.quantities.units import format_bytes
from blklab.report.terminal import print_note

SCHEMA = "blklab.kernel/1"


def build_and_show(
    *,
    name: str,
    source: str,
    release: str | None,
    patches: tuple[str, ...],
    scheduler_files: tuple[str, ...],
    fragments: tuple[str, ...],
    no_instruments: bool,
    jobs: int | None,
    dry_run: bool,
    quiet: bool,
    json_file: str | None,
) -> None:
    """Builds the kernel, and prints or writes what it is."""
    request = BuildRequest(
        name,
        source,
        patches,
        fragments,
        with_instruments=not no_instruments,
        jobs=jobs,
        scheduler_files=scheduler_files,
        release=release,
    )
    if dry_run and release is not None and fetched_archive(check_release(release)) is None:
        _show_fetch(name, release, json_file)
        return
    if dry_run:
        plan = plan_build(request)
        if plan.existing is None:
            with BuildDisplay(quiet=quiet) as display:
                check_patches(plan.patches, plan.source, plan.tree_id, display)
        _show_plan(plan, json_file)
        return
    with BuildDisplay(quiet=quiet) as display:
        kernel, is_new = build(request, display)
    if json_file is not None:
        write_json(json_file, SCHEMA, {"built": is_new, "kernel": _as_json(kernel)})
        return
    how = how_built(kernel.record.build_seconds, is_new=is_new)
    say(f"{kernel.name}: Linux {kernel.version} with {', '.join(kernel.schedulers)}, {how}")
    for lack in kernel.lacks:
        say(f"  {lack}")
    say(f"  {kernel.linux}")
    say(f"next: {_next_step(kernel.name)}")


def _next_step(name: str) -> str:
    """The command that uses a kernel that was built."""
    if name == DEFAULT_NAME:
        return "blklab compare uml:ssd-sata -w many-readers"
    return f"blklab kernel judge --kernel {DEFAULT_NAME},{name}"


def list_all(*, json_file: str | None) -> None:
    """Prints or writes the lists of kernels and modules."""
    kernels, damaged = store.find_all()
    modules = listed_modules()
    for error in damaged:
        print_note(f"{error.message}; {error.hint}")
    if json_file is not None:
        content = {
            "kernels": [_as_json(kernel) for kernel in kernels],
            "modules": [module_as_json(module) for module in modules],
            "damaged": [error.message for error in damaged],
            "folder": str(kernel_cache()),
            "size_bytes": folder_size_bytes(kernel_cache()),
        }
        write_json(json_file, SCHEMA, content)
        return
    if not kernels:
        nothing = "no kernel can be used" if damaged else "no kernel was built yet"
        say(f"{nothing}; `blklab kernel build` builds the stock one")
        print_modules(modules)
        return
    print_builds(
        ("kernel", "linux", "schedulers"),
        (((one.name, one.version, ", ".join(one.schedulers)), one.record) for one in kernels),
    )
    say(f"{format_bytes(folder_size_bytes(kernel_cache()))} in {kernel_cache()}")
    print_modules(modules)


def show(*, name: str, configuration: bool, json_file: str | None) -> None:
    """Prints or writes what a kernel is."""
    kernel = store.find(name)
    if configuration:
        print_document((kernel.folder / "config").read_text(encoding="utf-8"))
        return
    if json_file is not None:
        write_json(json_file, SCHEMA, {"kernel": {**_as_json(kernel), "configuration": kernel.config}})
        return
    record = kernel.record
    rows = {
        "Linux": record.version,
        "program": str(kernel.linux),
        "schedulers": ", ".join(kernel.schedulers),
        "disks": ", ".join(dict.fromkeys(("null_blk", kernel.driver))),
        "time": "virtual or the host's" if kernel.has_time_travel else "the host's only",
        "clock": str(kernel.clock),
        "source": f"{record.source} (SHA-256 {record.source_sha256[:16]}…)",
        "patches": "; ".join(f"{patch.name} ({', '.join(patch.files)})" for patch in record.patches)
        or "none",
        "instruments": "; ".join([", ".join(kernel.instruments) or "none", *kernel.lacks]),
        "configuration": " + ".join(["uml.config", *record.fragments]),
        "missing options": ", ".join(record.missing_options) or "none",
        "compiler": record.compiler,
        "built": f"{record.built_at}, {record.compiled_files} files in {seconds_text(record.build_seconds)}",
        "build": record.build_id,
    }
    width = max(map(len, rows))
    for label, value in rows.items():
        say(f"{label:{width}}  {value}")


def remove(
    *, names: tuple[str, ...], trees: bool, modules: bool, dry_run: bool, json_file: str | None
) -> int:
    """Removes kernels or modules."""
    if modules:
        if not names or trees:
            raise click.UsageError("name the modules to remove; --trees is for guest kernels")
        return remove_modules(names, dry_run=dry_run, json_file=json_file)
    if not names and not trees:
        raise click.UsageError("name the kernels to remove, or --trees")
    folder = kernel_cache()
    for name in names:
        if name not in kernel_names():
            store.find(name)  # says what is wrong
    before_bytes = folder_size_bytes(folder)
    if not dry_run:
        for name in dict.fromkeys(names):
            store.remove(name)
        if trees:
            store.remove_trees()
    freed_bytes = max(before_bytes - folder_size_bytes(folder), 0)
    if json_file is not None:
        content = {"dry_run": dry_run, "removed": list(names), "trees": trees, "freed_bytes": freed_bytes}
        write_json(json_file, SCHEMA, content)
        return ExitCode.OK
    word = "would remove" if dry_run else "removed"
    for name in names:
        say(f"{word} the kernel {name}")
    if trees:
        say(f"{word} the kept sources and objects")
    if not dry_run:
        say(f"{format_bytes(freed_bytes)} freed")
    return ExitCode.OK


def _show_fetch(name: str, release: str, json_file: str | None) -> None:
    if json_file is not None:
        write_json(
            json_file, SCHEMA, {"dry_run": True, "name": name, "exists": False, "fetch_release": release}
        )
        return
    say(f"kernel {name}")
    say(f"  source: linux-source-{release}, which would be fetched from Debian's suites first")


def _show_plan(plan: BuildPlan, json_file: str | None) -> None:
    existing, tree = plan.existing, plan.tree
    if json_file is not None:
        content = {
            "dry_run": True,
            "name": plan.name,
            "build": plan.build_id,
            "exists": existing is not None,
            "source": {"kind": plan.source.kind, "path": str(plan.source.path), "sha256": plan.source.sha256},
            "patches": patches_as_json(plan.patches),
            "instruments": [
                {"name": p.path.stem, "sha256": p.sha256, "files": list(p.files)} for p in plan.instruments
            ],
            "options": {option.name: option.value for option in plan.options.values()},
            "compiler": plan.compiler,
            "from_kept_objects": tree is not None,
            "needed_bytes": 0 if existing else plan.needed_bytes,
        }
        write_json(json_file, SCHEMA, content)
        return
    say(f"kernel {plan.name}, build {plan.build_id}")
    say(f"  source: {plan.source.path} (SHA-256 {plan.source.sha256[:16]}…)")
    for patch in plan.patches:
        say(f"  patch: {patch.path} ({', '.join(patch.files)})")
    instruments = ", ".join(one.path.stem for one in plan.instruments) or "none"
    say(f"  instruments, where they apply: {instruments} (--json has their files)")
    for fragment in plan.fragments:
        say(f"  configuration: {fragment.name}, {count_of(len(fragment.options), 'option')}")
    say(f"  compiler: {plan.compiler}, {plan.jobs} at a time")
    if existing is not None:
        say(f"  already built: {existing.folder}; nothing to compile")
        return
    start = "the objects of an earlier build" if tree else "scratch"
    say(f"  would be built from {start}, in {kernel_cache()}")
    say(f"  disk space for the build: {format_bytes(plan.needed_bytes)}")
    say(f"  make -j{plan.jobs} ARCH=um SUBARCH=x86_64 linux")


def _as_json(kernel: KernelBuild) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "program": str(kernel.linux),
        "schedulers": list(kernel.schedulers),
        "has_ublk": kernel.has_ublk,
        "has_time_travel": kernel.has_time_travel,
        "clock": {"exact": kernel.clock.exact, "ticks_per_second": kernel.clock.ticks_per_second},
        **kernel.record.model_dump(exclude={"format"}),
    }
