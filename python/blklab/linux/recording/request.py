"""From a target to what the recorder needs to know of it."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blklab.errors import BlklabError, RequirementError, UsageError
from blklab.linux.cgroups.hierarchy import Hierarchy, find_hierarchy
from blklab.linux.disks.disk import Disk
from blklab.linux.disks.resolution import Resolution
from blklab.linux.machine.kernel_files import text_or_empty
from blklab.linux.queue.snapshot import snapshot
from blklab.recordings.facts import DeviceFacts, Facts, device_number
from blklab.shipped import bpf_programs

_BUFFER_BYTES = 64 << 20
"""The kernel's buffers together: at 300,000 I/Os a second half a second's events."""


def recording_request(
    target: str, disks: Sequence[Disk], output: Path, command: Sequence[str], *, capture: str = "auto"
) -> str:
    """The request for the compiled recorder, as JSON.

    Args:
        target: The recorded path, for the file.
        disks: Those beneath it.
        output: The file to write.
        command: What of the recorded command goes into the file.
        capture: ``bpf``, ``tracefs`` or ``auto``, the first that works.

    Raises:
        RequirementError: if a disk has no device number, by which events name it.
        UsageError: if the output exists.
    """
    if output.exists():
        raise UsageError(f"{output} exists already", hint="name another file with --output, or remove it")
    return json.dumps(_request(target, disks, command, capture=capture) | {"output": str(output)})


def capture_request(resolution: Resolution, *, capture: str = "auto") -> str:
    """The request for a capture without a file, as JSON.

    Args:
        resolution: The target and the disks beneath it.
        capture: As for `recording_request`.

    Raises:
        RequirementError: if a disk has no device number, by which events name it.
    """
    return json.dumps(_request(resolution.path, resolution.leaves, (), capture=capture))


def _request(target: str, disks: Sequence[Disk], command: Sequence[str], *, capture: str) -> dict[str, Any]:
    hidden = [disk.name for disk in disks if not disk.device_number]
    if hidden:
        raise RequirementError(
            f"{', '.join(hidden)} has no device number, by which the kernel's events name it",
            hint="NVMe multipath can be switched off: nvme_core.multipath=N",
        )
    hierarchy, programs = _hierarchy(), bpf_programs()
    facts = Facts(
        target=target,
        kernel=platform.release(),
        processors=os.cpu_count(),
        cgroup_version=hierarchy.version if hierarchy else None,
        command=list(command),
        devices=[_device(disk) for disk in disks],
    )
    return {
        "facts": facts.model_dump(),
        "partitions": [part for disk in disks for part in _partitions(disk)],
        "buffer_bytes": _BUFFER_BYTES,
        "capture": capture,
        "bpf_object": str(programs) if programs else None,
        "cgroup_root": str(hierarchy.root) if hierarchy else None,
    }


def _device(disk: Disk) -> DeviceFacts:
    settings = snapshot(disk)
    return DeviceFacts(
        number=device_number(disk.device_number),
        name=disk.name,
        model=disk.model,
        size_bytes=disk.size_bytes,
        rotational=disk.rotational,
        scheduler=settings.scheduler or "",
        settings=settings.attributes,
    )


def _partitions(disk: Disk) -> list[dict[str, int]]:
    whole = device_number(disk.device_number)
    numbers = [text_or_empty(entry.parent / "dev") for entry in disk.sys_path.glob("*/partition")]
    return [{"number": device_number(number), "disk": whole} for number in sorted(numbers) if number]


def _hierarchy() -> Hierarchy | None:
    try:
        return find_hierarchy()
    except BlklabError:
        return None
