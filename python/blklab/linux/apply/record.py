"""The record of `blklab apply` for a disk: the change and the former settings, kept until it is undone."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from blklab.errors import JournalError, RequirementError, reason_of
from blklab.linux.apply.identity import Identity
from blklab.linux.disks.disk import Disk
from blklab.linux.journal.file import sync_directory
from blklab.linux.journal.state import make_private_directory, state_directory
from blklab.linux.queue.coupling import moved_by
from blklab.linux.queue.snapshot import QueueSnapshot
from blklab.linux.queue.sysfs import SCHEDULER, TUNABLE_PREFIX

FORMAT_VERSION = 1


@dataclass(frozen=True)
class AppliedRecord:
    """A disk whose scheduler `blklab apply` has set."""

    identity: Identity
    disk_name: str
    choice: str
    former: QueueSnapshot
    """The settings before the first change that has not been undone."""
    rule_path: Path | None
    rule_text: str | None
    applied_at: str
    former_groups: tuple[tuple[Path, str], ...] = ()
    """Writes that restore files of the root control group: io.cost's parameters of the disk."""
    modules: tuple[str, ...] = ()
    """Kernel modules that `blklab apply` has loaded for it."""


def record_path(identity: Identity) -> Path:
    """The file with the record for a disk."""
    return state_directory() / "applied" / f"{identity.slug}.json"


def relevant(former: QueueSnapshot, brought: Collection[str]) -> QueueSnapshot:
    """The part of a snapshot that a change touches; the rest is not ours to restore.

    Args:
        former: The settings before the change.
        brought: Attributes of the queue that it sets; the kernel moves a few others with them and with the
            scheduler.
    """
    moved = moved_by([SCHEDULER, *brought])
    kept = {
        name: value
        for name, value in former.attributes.items()
        if name.startswith(TUNABLE_PREFIX) or name in moved or name in brought
    }
    return QueueSnapshot(former.scheduler, kept)


def save_record(
    identity: Identity,
    disk: Disk,
    choice: str,
    former: QueueSnapshot,
    *,
    brought: Collection[str],
    rule_path: Path | None,
    rule_text: str | None,
    former_groups: Sequence[tuple[Path, str]] = (),
    modules: Collection[str] = (),
) -> AppliedRecord:
    """Records a change; if an earlier change was not undone, its former settings stay on record.

    Args:
        identity: The disk's.
        disk: The disk.
        choice: The scheduler with its settings, in the grammar of schedulers.
        former: The settings before the change.
        brought: Attributes of the queue that it sets.
        rule_path: The rule that was written, if one was.
        rule_text: Its text.
        former_groups: Writes that restore files of the root control group.
        modules: Kernel modules that were loaded for it.

    Raises:
        RequirementError: if the record cannot be written.
        JournalError: if the earlier record is damaged.
    """
    earlier = load_record(identity)
    before = relevant(former, brought)
    if earlier is not None:
        # Attributes that the earlier change left alone are as they were before both.
        touched = {*brought, *moved_by(brought)}
        own = {name: value for name, value in former.attributes.items() if name in touched}
        attributes = own | earlier.former.attributes
        before = QueueSnapshot(earlier.former.scheduler, attributes)
    applied = AppliedRecord(
        identity=identity,
        disk_name=disk.name,
        choice=choice,
        former=before,
        rule_path=rule_path or (earlier.rule_path if earlier else None),
        rule_text=rule_text or (earlier.rule_text if earlier else None),
        applied_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        former_groups=tuple(former_groups),
        modules=tuple(dict.fromkeys([*modules, *(earlier.modules if earlier else ())])),
    )
    make_private_directory(state_directory())
    path = record_path(identity)
    make_private_directory(path.parent)
    draft = path.with_suffix(".new")
    try:
        with draft.open("w", encoding="utf-8") as file:
            json.dump(_as_json(applied), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
        sync_directory(path.parent)
    except OSError as error:
        raise RequirementError(f"{path} cannot be written: {reason_of(error)}") from error
    return applied


def load_record(identity: Identity) -> AppliedRecord | None:
    """The record for a disk; None if there is none.

    Raises:
        JournalError: if it is damaged.
    """
    path = record_path(identity)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["version"] != FORMAT_VERSION:
            raise JournalError(f"{path} has format {content['version']}, not {FORMAT_VERSION}")
        return AppliedRecord(
            identity=identity,
            disk_name=str(content["disk"]),
            choice=str(content["choice"]),
            former=QueueSnapshot(content["former"]["scheduler"], dict(content["former"]["attributes"])),
            rule_path=Path(content["rule_path"]) if content["rule_path"] else None,
            rule_text=content["rule_text"],
            applied_at=str(content["applied_at"]),
            # Records of earlier versions may have neither.
            former_groups=tuple((Path(path), str(text)) for path, text in content.get("groups", [])),
            modules=tuple(str(name) for name in content.get("modules", [])),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise JournalError(
            f"{path}, the record of the disk's former settings, cannot be read: {error}",
            hint="remove it together with the rule under /etc/udev/rules.d, and set the scheduler yourself",
        ) from error


def remove_record(identity: Identity) -> None:
    """Removes the record for a disk."""
    record_path(identity).unlink(missing_ok=True)


def applied_modules() -> frozenset[str]:
    """The kernel modules that records of this machine's disks answer for; damaged records count for none."""
    found: set[str] = set()
    for path in (state_directory() / "applied").glob("*.json"):
        with suppress(OSError, ValueError, TypeError, AttributeError):
            found.update(json.loads(path.read_text(encoding="utf-8")).get("modules", []))
    return frozenset(found)


def _as_json(applied: AppliedRecord) -> dict[str, Any]:
    return {
        "version": FORMAT_VERSION,
        "disk": applied.disk_name,
        "goes_by": applied.identity.description,
        "choice": applied.choice,
        "former": {"scheduler": applied.former.scheduler, "attributes": applied.former.attributes},
        "rule_path": str(applied.rule_path) if applied.rule_path else None,
        "rule_text": applied.rule_text,
        "applied_at": applied.applied_at,
        "groups": [[str(path), text] for path, text in applied.former_groups],
        "modules": list(applied.modules),
    }
