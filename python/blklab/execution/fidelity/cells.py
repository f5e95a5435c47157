"""What a cell is: a device, a scheduler with its settings, and a load, short enough to run many of them."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from blklab.errors import UnknownNameError
from blklab.simulator.core import device_request
from blklab.simulator.request import model_target
from blklab.spec.profiles import load_profile

Section = Mapping[str, str | int]
"""Options of one section of a job file."""


@dataclass(frozen=True)
class FidelityCell:
    """One experiment that is run on the simulator and on a kernel."""

    name: str
    """``DEVICE/SCHEDULER/LOAD``, with what is special about it; unique in a matrix."""
    device: str
    """As behind ``sim:``."""
    scheduler: str
    jobs: Mapping[str, Section]
    runtime_ns: int
    """Of the jobs, which are all time-based."""
    tunables: Mapping[str, str] = field(default_factory=dict)
    queue: Mapping[str, str] = field(default_factory=dict)
    cgroups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Attributes of control groups by group, the root being ``/``."""
    seed: int = 1

    @property
    def job_text(self) -> str:
        """The job file."""
        sections = (
            f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in options.items())
            for name, options in self.jobs.items()
        )
        return "\n".join(sections)

    def request(self) -> dict[str, Any]:
        """The request that the compiled core takes, and the guest likewise.

        Raises:
            BlklabError: if there is no such device.
        """
        target = model_target(self.device)
        groups = {name: dict(attributes) for name, attributes in self.cgroups.items()}
        # Left out where there are none, so that answers kept for such requests are found.
        set_groups = {"cgroups": groups} if groups else {}
        return (
            device_request(target, load_profile(target.device))
            | set_groups
            | {
                "scheduler": self.scheduler,
                "tunables": dict(self.tunables),
                "queue": dict(self.queue),
                "jobs": {"text": self.job_text, "source": f"{self.name.replace('/', '-')}.fio"},
                "runtime_ns": self.runtime_ns,
                "seed": self.seed,
            }
        )

    def request_text(self, first_tag: int | None, memory_bytes: int | None = None) -> str:
        """The request as text, for the simulator.

        Computing takes no time at all, as in the guest, whose jobs have no file system under them, and whose
        driver does not tell the disk's depth.

        Args:
            first_tag: Where the search for a tag began in the guest.
            memory_bytes: What its free pages and page cache share.
        """
        machine = {
            "zero_cpu_time": "1",
            "raw_device": "1",
            "hide_queue_depth": "1",
            "first_tag": str(first_tag or 0),
        }
        if memory_bytes is not None:
            machine["memory"] = str(memory_bytes)
        return json.dumps(self.request() | {"machine": machine}, sort_keys=True)


def selected(cells: Sequence[FidelityCell], patterns: Iterable[str]) -> list[FidelityCell]:
    """Cells whose name matches one of the patterns: ``*`` and ``?`` as in a shell, or a part of the name.

    Raises:
        UnknownNameError: if a pattern matches nothing.
    """
    chosen: dict[str, FidelityCell] = {}
    wanted = list(patterns)
    for pattern in wanted:
        whole = pattern if any(sign in pattern for sign in "*?[") else f"*{pattern}*"
        matching = [cell for cell in cells if fnmatch.fnmatchcase(cell.name, whole)]
        if not matching:
            raise UnknownNameError(
                f"no cell matches {pattern!r}", hint="`blklab fidelity --list` prints their names"
            )
        chosen |= {cell.name: cell for cell in matching}
    return [cell for cell in cells if cell.name in chosen] if wanted else list(cells)
