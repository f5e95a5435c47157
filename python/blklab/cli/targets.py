"""`blklab targets`: list the disks of this machine and the modelled devices."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from blklab.backends.uml_requirements import guest_obstacle
from blklab.cli.commands import described_command
from blklab.cli.options import json_option
from blklab.cli.output import write_text
from blklab.errors import BlklabError
from blklab.linux.directories.mounts import Mount, read_mounts
from blklab.linux.disks.arrays import array_troubles
from blklab.linux.disks.device_in_use import reasons_against_writing, why_not_readable
from blklab.linux.disks.disk import Disk, Roots
from blklab.linux.disks.offline import why_offline
from blklab.linux.disks.resolution import resolve
from blklab.linux.disks.stack import all_disks, leaves_of
from blklab.linux.disks.zones import zones_of
from blklab.linux.machine.scheduler_modules import find_scheduler_modules
from blklab.linux.queue.schedulers import mark_module, offered_schedulers
from blklab.quantities.units import format_bytes
from blklab.report.terminal import console_out, styled
from blklab.spec.atlas import AtlasDrive, drives
from blklab.spec.drive_classes import known_rotational
from blklab.spec.profiles import calibrated_profiles, device_kinds, shipped_profiles

SCHEMA = "blklab.targets/1"


@described_command(
    name="targets",
    examples=(
        ("disks and models", "blklab targets"),
        ("as JSON, for programs", "blklab targets --json -"),
        ("the drives of the atlas, which sim: takes by name", "blklab targets --atlas"),
    ),
)
@click.option("--atlas", is_flag=True, help="List the drives of the atlas instead: models of real drives.")
@json_option
def command(*, atlas: bool, json_file: str | None) -> None:
    """List the disks of this machine and the modelled devices.

    Test a disk with a mounted file system through a directory on it. Writing to a raw device needs
    --allow-writes and a device that is not in use.
    """
    if atlas:
        _show_atlas(json_file)
        return
    disks = [_disk_entry(disk) for disk in all_disks()]
    simulated = _simulated()
    guests, obstacle = _in_guests(simulated), guest_obstacle()
    document = {
        "schema": SCHEMA,
        "disks": disks,
        "simulated": simulated,
        "calibrated": _calibrated(),
        "virtual_time": {"targets": guests, "available": obstacle is None, "reason": obstacle or ""},
    }
    if json_file is not None:
        write_text(json_file, json.dumps(document, indent=2, ensure_ascii=False))
        return
    _print(document)


def _show_atlas(json_file: str | None) -> None:
    """The drives of the atlas, with what was measured of them."""
    known = drives()
    if json_file is not None:
        entries = [_atlas_entry(drive) for drive in known]
        write_text(json_file, json.dumps({"schema": SCHEMA, "atlas": entries}, indent=2, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("drive", no_wrap=True)
    for heading in ("GB", "read MB/s", "random k/s", "write MB/s", "random k/s", "runs"):
        table.add_column(heading, justify="right")
    for drive in known:
        rates = drive.coefficients
        table.add_row(
            drive.target,
            f"{drive.capacity_bytes / 1e9:.0f}",
            f"{rates['rbps'] / 1e6:.0f}",
            f"{rates['rrandiops'] / 1e3:.0f}",
            f"{rates['wbps'] / 1e6:.0f}",
            f"{rates['wrandiops'] / 1e3:.0f}",
            str(drive.results),
        )
    console = console_out()
    console.print(table)
    console.print()
    console.print(
        "Figures: github.com/iocost-benchmark/iocost-benchmarks. Put names in quotes, in capitals or not:"
        f" blklab compare 'sim:{known[0].model}'.",
        soft_wrap=True,
    )


def _atlas_entry(drive: AtlasDrive) -> dict[str, Any]:
    return {
        "target": drive.target,
        "model": drive.model,
        "capacity_bytes": drive.capacity_bytes,
        "results": drive.results,
        "summary": drive.summary,
        "coefficients": drive.coefficients,
        "solutions": {one.name: {"scale": one.scale, **one.qos} for one in drive.solutions},
        "source": drive.facts["source"],
    }


def _simulated() -> list[dict[str, str]]:
    profiles = [(name, profile.kind, profile.summary) for name, profile in shipped_profiles().items()]
    kinds = [(kind, kind, summary) for kind, summary in device_kinds().items()]
    known = profiles + kinds
    return [{"target": f"sim:{name}", "kind": kind, "summary": summary} for name, kind, summary in known]


def _calibrated() -> list[dict[str, str]]:
    """The profiles of a person's own disks, in the current folder."""
    return [
        {"target": f"sim:{profile.source}", "kind": profile.kind, "summary": profile.summary}
        for profile in calibrated_profiles(Path.cwd())
    ]


def _in_guests(simulated: list[dict[str, str]]) -> list[dict[str, str]]:
    """The same devices under guest kernels."""
    return [entry | {"target": entry["target"].replace("sim:", "uml:", 1)} for entry in simulated]


def _disk_entry(disk: Disk) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": disk.name,
        "device": str(disk.dev_path),
        "model": disk.model,
        "serial": disk.serial,
        "size_bytes": disk.size_bytes,
        "rotational": disk.rotational,
        "scheduler": None,
        "schedulers": [],
        "modules": [],
        "refused_modules": {},
        "zoned": None,
        "mount_points": _mount_points(disk),
        "warnings": [*filter(None, [why_offline(disk.sys_path)]), *array_troubles([disk.sys_path])],
        "readable": False,
        "reads": "",
        "writable": False,
        "writes": "",
    }
    try:
        leaves = leaves_of(disk)
        modules = find_scheduler_modules()
        offers = [offered_schedulers(leaf, modules) for leaf in leaves]
        entry["scheduler"] = offers[0].active
        entry["schedulers"] = [
            name for name in offers[0].names if all(name in offer.names for offer in offers)
        ]
        entry["modules"] = [name for name in entry["schedulers"] if name in offers[0].modules.loadable]
        entry["refused_modules"] = offers[0].modules.refused
        zones = zones_of(disk.sys_path, disk.dev_path)
        entry["zoned"] = None if zones is None else asdict(zones) | {"summary": zones.summary}
        refusal = why_not_readable(disk.dev_path)
        entry["readable"] = refusal is None
        entry["reads"] = refusal or ""
    except BlklabError as error:
        entry["reads"] = error.message
        entry["writes"] = error.message
        return entry
    try:
        reasons = reasons_against_writing(disk.dev_path)
    except BlklabError as error:
        reasons = [error.message]
    entry["writable"] = not reasons
    entry["writes"] = "; ".join(reasons)
    return entry


def _marked(disk: dict[str, Any], name: str) -> str:
    """A scheduler as the kernel writes it if it is active, and as a module if it is not loaded."""
    if name == disk["scheduler"]:
        return f"[{name}]"
    return mark_module(name) if name in disk["modules"] else name


def _mount_points(disk: Disk) -> list[str]:
    """Directories on which file systems of this disk are mounted, through any devices in between.

    Containers have single files mounted too, such as ``/etc/hosts``.
    """
    found: dict[str, None] = {}
    seen: dict[str, bool] = {}
    for mount in read_mounts(Roots().proc):
        if mount.source not in seen or mount.filesystem == "overlay":
            seen[mount.source] = _lies_on(mount, disk)
        if seen[mount.source] and Path(mount.mount_point).is_dir():
            found[mount.mount_point] = None
    return list(found)


def _lies_on(mount: Mount, disk: Disk) -> bool:
    if mount.device_number.startswith("0:") and not mount.source.startswith("/"):
        return False  # memory, network, the kernel's own: on no disk
    try:
        leaves = resolve(mount.mount_point).leaves
    except BlklabError:
        return False
    return any(leaf.key == disk.key or leaf.dev_path == disk.dev_path for leaf in leaves)


def _print(document: dict[str, Any]) -> None:
    console = console_out()
    for disk in document["disks"]:
        rotational = known_rotational(disk["name"], rotational=disk["rotational"])
        kind = {True: "rotational", False: "flash", None: ""}[rotational]
        zoned = "" if disk["zoned"] is None else disk["zoned"]["summary"]
        facts = [disk["model"], format_bytes(disk["size_bytes"]), kind, zoned]
        console.print(styled((disk["device"], "bold"), "  ", ", ".join(filter(None, facts))))
        schedulers = (_marked(disk, name) for name in disk["schedulers"])
        refused = (f"{name}: {reason}" for name, reason in disk["refused_modules"].items())
        table = Table(box=None, show_header=False, padding=(0, 1, 0, 2))
        table.add_column()
        table.add_column(overflow="fold")
        for subject, text in (
            ("schedulers", " ".join(schedulers)),
            ("not offered", "; ".join(refused)),
            ("mounted on", ", ".join(disk["mount_points"])),
            ("reads", "yes" if disk["readable"] else f"no: {disk['reads']}"),
            ("raw writes", "with --allow-writes" if disk["writable"] else f"no: {disk['writes']}"),
        ):
            if text:
                table.add_row(subject, text)
        for warning in disk["warnings"]:
            table.add_row(styled(("⚠ warning", "bold yellow")), warning)
        console.print(table)
        console.print()
    if not document["disks"]:
        console.print("no disk of this machine can be tested")
        console.print()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("simulated")
    table.add_column("", overflow="fold")
    for device in [*document["calibrated"], *document["simulated"]]:
        table.add_row(device["target"], device["summary"])
    console.print(table)
    obstacle = document["virtual_time"]["reason"]
    console.print()
    console.print(
        "With uml: instead of sim:, the same devices serve a real kernel in virtual time"
        + (f" (not yet: {obstacle})." if obstacle else "."),
        soft_wrap=True,
    )
    console.print()
    console.print("`blklab targets --atlas` lists models of real drives, by the drives' names.")
    console.print("A directory means the disks beneath it; loop:1g makes a scratch device.")
