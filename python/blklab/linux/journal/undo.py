"""Undoes journal entries, each kind in its own way.

Undoing is idempotent: it skips whatever has been restored already, so an interrupted restore can simply be
repeated. A disk is written to only if it is certainly the one that the entry was made for.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blklab.errors import BlklabError, DeviceVanishedError, RestoreError
from blklab.linux.disks import loop, partitions
from blklab.linux.disks.disk import Disk, read_disk
from blklab.linux.disks.signature import erase_signature
from blklab.linux.disks.unmount import unmount
from blklab.linux.journal.file import Entry
from blklab.linux.journal.modules import undo_module
from blklab.linux.journal.undo_places import OWN_PREFIXES, remove_own_directory, remove_own_file
from blklab.linux.machine.kernel_files import write_once
from blklab.linux.queue.coupling import moved_by
from blklab.linux.queue.snapshot import QueueSnapshot, differences, restore_snapshot

_DEVICE_NUMBER = re.compile(r"\d+:\d+")
_GROUP_ATTEMPTS = 1500
_GROUP_PAUSE_SECONDS = 0.02
_ROUNDS = 4
"""Rounds in which settings are read again and restored: undoing one may move another."""


@dataclass
class UndoResult:
    """The result of undoing, in words for people."""

    done: list[str] = field(default_factory=list)
    """Changes that were undone."""
    notes: list[str] = field(default_factory=list)
    """Changes that needed no undoing, and why."""
    failures: list[str] = field(default_factory=list)
    """Changes that could not be undone."""


def undo_all(entries: list[Entry], *, same_boot: bool) -> UndoResult:
    """Undoes entries, latest first; after a failure it continues with the others.

    Settings that the kernel couples (`blklab.linux.queue.coupling`) are undone causes first, and read back in
    further rounds until all of them hold.

    Args:
        entries: The journal's lines without its header.
        same_boot: Whether the machine has not been rebooted since. Kernel settings, devices and processes
            do not survive a reboot; files do.
    """
    outcome = UndoResult()
    pending, lost = _pending(entries, same_boot=same_boot)
    if lost:
        outcome.notes.append("the machine has been rebooted since, which reset its settings")
    entries = _in_order(pending)
    settings = _settings_as_they_were(entries)
    last = {entry["number"]: _undo_one(entry) for entry in entries}
    for one in last.values():
        outcome.done += one.done
        outcome.notes += one.notes
    for _ in range(_ROUNDS - 1):
        again = {entry["number"]: _undo_one(entry) for entry in settings}
        last |= again
        outcome.done += [line for one in again.values() for line in one.done]
        if not any(one.done or one.failures for one in again.values()):
            break
    outcome.failures = [failure for one in last.values() for failure in one.failures]
    return outcome


def _in_order(pending: list[Entry]) -> list[Entry]:
    """Entries in the order in which they are undone.

    A queue follows settings elsewhere that hold its attributes, and a module whatever may use it.
    """
    latest_first = sorted(pending, key=lambda entry: (entry["kind"] == "module", -entry["number"]))
    causes = [
        place
        for place, entry in enumerate(latest_first)
        if entry["kind"] == "attribute" and moved_by([Path(entry["path"]).name])
    ]
    after_causes = max(causes, default=-1) + 0.5

    def place_of(item: tuple[int, Entry]) -> float:
        place, entry = item
        return max(place, after_causes) if entry["kind"] == "queue" else place

    return [entry for _, entry in sorted(enumerate(latest_first), key=place_of)]


def _settings_as_they_were(entries: list[Entry]) -> list[Entry]:
    """The settings among entries, each as it was first recorded: later ones are in between."""
    first: dict[str, int] = {}
    for entry in entries:
        if (key := _setting(entry)) is not None:
            first[key] = min(first.get(key, entry["number"]), entry["number"])
    return [entry for entry in entries if entry["number"] in first.values()]


def _setting(entry: Entry) -> str | None:
    match entry["kind"]:
        case "queue":
            return f"queue {entry['disk']['sys_path']}"
        case "attribute":
            devices = sorted(text.split(maxsplit=1)[0] for text in entry["undo"] or [])
            return f"attribute {entry['path']} {' '.join(devices)}"
    return None


def _undo_one(entry: Entry) -> UndoResult:
    outcome = UndoResult()
    undo = _UNDO.get(entry["kind"])
    if undo is None:
        outcome.failures.append(f"an entry has the unknown kind {entry['kind']!r}")
        return outcome
    try:
        undo(entry, outcome)
    except BlklabError as error:
        outcome.failures.append(error.message)
    except OSError as error:
        outcome.failures.append(f"{entry.get('path', entry['kind'])}: {error.strerror or error}")
    return outcome


def describe_pending(entries: list[Entry], *, same_boot: bool) -> list[str]:
    """Describes what `undo_all` would do, for people; reads disks, changes nothing."""
    lines = []
    for entry in reversed(_pending(entries, same_boot=same_boot)[0]):
        match entry["kind"]:
            case "queue":
                disk, why = find_again(entry["disk"])
                wanted = QueueSnapshot(entry["snapshot"]["scheduler"], entry["snapshot"]["attributes"])
                lines += (
                    [
                        f"{disk.name}: {name} = {value}"
                        for name, (value, _) in differences(disk, wanted).items()
                    ]
                    if disk is not None
                    else [why]
                )
            case "loop":
                lines.append(f"loop{entry['index']} over {entry['backing_file']} removed")
            case "module":
                lines.append(f"module {entry['module']} unloaded unless something uses it")
            case "mount":
                lines.append(f"{entry['path']} unmounted")
            case "filesystem":
                lines.append(f"signature of our file system on {entry['path']} erased")
            case "attribute":
                lines.append(f"{entry['path']} = {entry['content'].strip()!r}")
            case kind:
                lines.append(f"{kind} {entry.get('path', '')} removed")
    return lines


def _pending(entries: list[Entry], *, same_boot: bool) -> tuple[list[Entry], bool]:
    """The entries still to be undone, and whether a reboot has undone others."""
    released = {entry["of"] for entry in entries if entry["kind"] == "released"}
    released |= {entry["instead_of"] for entry in entries if "instead_of" in entry}
    pending = [entry for entry in entries if entry["kind"] != "released" and entry["number"] not in released]
    if same_boot:
        return pending, False
    durable = [entry for entry in pending if entry["kind"] in _DURABLE]
    return durable, len(durable) < len(pending)


def identity_of(disk: Disk) -> dict[str, Any]:
    """The properties by which `find_again` recognises a disk."""
    return {
        "name": disk.name,
        "device_number": disk.device_number,
        "sys_path": str(disk.sys_path),
        "model": disk.model,
        "serial": disk.serial,
        "wwid": disk.wwid,
        "size_bytes": disk.size_bytes,
        "diskseq": disk.diskseq,
    }


def find_again(identity: dict[str, Any]) -> tuple[Disk | None, str]:
    """Finds the disk of an identity, or says why it is not there."""
    folder = Path(identity["sys_path"])
    name = identity["name"]
    if not (folder / "queue").is_dir():
        return None, f"{name} is gone, and so are its settings"
    disk = read_disk(folder)
    now = identity_of(disk)
    # diskseq settles it, and lets a disk grow; without diskseq, model and size must agree too.
    keys = ["name", "device_number", "serial", "wwid", "diskseq"]
    if not identity["diskseq"]:
        keys += ["model", "size_bytes"]
    changed = [key for key in keys if now[key] != identity[key]]
    if changed:
        return None, f"{name} is now another disk ({', '.join(changed)} differ): not touched"
    return disk, ""


def _undo_queue(entry: Entry, outcome: UndoResult) -> None:
    disk, why = find_again(entry["disk"])
    if disk is None:
        outcome.notes.append(why)
        return
    wanted = QueueSnapshot(entry["snapshot"]["scheduler"], entry["snapshot"]["attributes"])
    try:
        outcome.done += restore_snapshot(disk, wanted)
    except DeviceVanishedError as error:
        outcome.notes.append(error.message)


def _undo_attribute(entry: Entry, outcome: UndoResult) -> None:
    path = Path(entry["path"])
    undo: list[str] | None = entry["undo"]
    wanted = _lines_of_devices(undo, entry["content"])
    if not path.exists():
        outcome.notes.append(f"{path} is gone")
        return
    if _lines_of_devices(undo, path.read_text()) == wanted:
        return
    for text in undo if undo is not None else [wanted]:
        write_once(path, text)
    now = _lines_of_devices(undo, path.read_text())
    if now != wanted and not _only_adds(now, wanted, undo or []):
        raise RestoreError(f"{path} is {now!r}, was {wanted!r}")
    outcome.done.append(f"{path} = {wanted.strip()!r}")


def _lines_of_devices(undo: list[str] | None, content: str) -> str:
    """The lines of an attribute for the devices that the undoing writes to, or all of a global attribute.

    Attributes such as io.max have one line per device, and other programs may set the lines of their devices
    meanwhile.
    """
    devices = {text.split(maxsplit=1)[0] for text in undo or []}
    if not devices or not all(_DEVICE_NUMBER.fullmatch(device) for device in devices):
        return content
    return "".join(line for line in content.splitlines(keepends=True) if line.partition(" ")[0] in devices)


def _only_adds(now: str, wanted: str, undo: list[str]) -> bool:
    """Tells whether a file has all its former lines, and in addition only lines that the undoing wrote.

    io.cost.qos and io.cost.model keep a line for every device that they were ever set for. It then says that
    the device has its defaults, which a missing line means too.
    """
    extra = [line.split() for line in now.splitlines() if line not in wanted.splitlines()]
    missing = [line for line in wanted.splitlines() if line not in now.splitlines()]
    return not missing and all(any(set(text.split()) <= set(line) for text in undo) for line in extra)


def _undo_module(entry: Entry, outcome: UndoResult) -> None:
    text, unloaded = undo_module(entry)
    if text:
        (outcome.done if unloaded else outcome.notes).append(text)


def _undo_directory(entry: Entry, outcome: UndoResult) -> None:
    done, notes = remove_own_directory(entry)
    outcome.done += done
    outcome.notes += notes


def _undo_file(entry: Entry, outcome: UndoResult) -> None:
    outcome.done += remove_own_file(entry)


def _undo_cgroup(entry: Entry, outcome: UndoResult) -> None:
    path = Path(entry["path"])
    for attempt in range(_GROUP_ATTEMPTS):
        if not path.is_dir():
            return
        for number in (path / "cgroup.procs").read_text().split():
            _kill(int(number))
        try:
            path.rmdir()
        except OSError:
            if attempt == _GROUP_ATTEMPTS - 1:
                raise
            time.sleep(_GROUP_PAUSE_SECONDS)  # dying processes stay members until they are reaped
        else:
            outcome.done.append(f"removed {path}")


def _kill(number: int) -> None:
    try:
        os.kill(number, signal.SIGKILL)
    except ProcessLookupError:
        return


def _undo_loop(entry: Entry, outcome: UndoResult) -> None:
    backing = loop.BackingFile.from_entry(entry)
    index = int(entry["index"])
    if loop.remove(index, backing):
        outcome.done.append(f"removed loop{index} over {backing.path}")
    elif (other := loop.attached_file(index)) is not None:
        outcome.notes.append(f"loop{index} is over {other} now, not over {backing.path}: left alone")


def _undo_partition(entry: Entry, outcome: UndoResult) -> None:
    partition = partitions.Partition.from_entry(entry)
    if partitions.remove(partition):
        outcome.done.append(f"removed the partition {partition.path}")


def _undo_mount(entry: Entry, outcome: UndoResult) -> None:
    path = Path(entry["path"])
    if not any(folder.name.startswith(OWN_PREFIXES) for folder in path.parents):
        raise RestoreError(f"{path} is not in a directory of blklab's; unmount it yourself")
    if unmount(path):
        outcome.done.append(f"unmounted {path}")


def _undo_filesystem(entry: Entry, outcome: UndoResult) -> None:
    path = Path(entry["path"])
    if not path.exists():
        outcome.notes.append(f"{path} is gone")
    elif erase_signature(path, uuid=entry["uuid"]):
        outcome.done.append(f"erased the signature of our file system on {path}")


_UNDO: dict[str, Callable[[Entry, UndoResult], None]] = {
    "queue": _undo_queue,
    "attribute": _undo_attribute,
    "module": _undo_module,
    "directory": _undo_directory,
    "file": _undo_file,
    "cgroup": _undo_cgroup,
    "loop": _undo_loop,
    "partition": _undo_partition,
    "mount": _undo_mount,
    "filesystem": _undo_filesystem,
}
_DURABLE = {"directory", "file", "filesystem"}
"""Kinds of entries that survive a reboot."""
