"""A cell: a device, a scheduler with its settings, and a load, short enough to run many of them."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from blklab.errors import UnknownNameError
from blklab.simulator.core import device_request
from blklab.simulator.request import model_target
from blklab.spec.machines import Machine
from blklab.spec.profiles import load_profile

JobSection = Mapping[str, str | int]
"""Options of one section of a job file."""


class Named(Protocol):
    """Something with a unique name."""

    @property
    def name(self) -> str:
        """The name."""


NamedT = TypeVar("NamedT", bound=Named)


@dataclass(frozen=True)
class FidelityCell:
    """One experiment that is run on the simulator and on a kernel."""

    name: str
    """``DEVICE/SCHEDULER/LOAD``, with special settings; unique in a matrix."""
    device: str
    """The device as in a target after ``sim:``."""
    scheduler: str
    jobs: Mapping[str, JobSection]
    runtime_ns: int
    """Runtime of the jobs, which are all time-based."""
    tunables: Mapping[str, str] = field(default_factory=dict)
    queue: Mapping[str, str] = field(default_factory=dict)
    cgroups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Attributes of each control group; ``/`` is the root."""
    seed: int = 1
    machine: Machine | None = None
    """A cost table for both; None where computing takes no time."""
    simulated_as: str | None = None
    """The simulator's name of the scheduler, if the kernel's own name means another release's there."""

    simulated_release: str | None = None
    """The release of Linux that the simulator follows; None for its default."""

    @property
    def job_text(self) -> str:
        """The text of the job file."""
        sections = (
            f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in options.items())
            for name, options in self.jobs.items()
        )
        return "\n".join(sections)

    def request(self) -> dict[str, Any]:
        """The request for the compiled core and for the guest.

        Raises:
            BlklabError: if the device does not exist.
        """
        target = model_target(self.device)
        groups = {name: dict(attributes) for name, attributes in self.cgroups.items()}
        # Left out if there are none, so that cached answers to such requests are found.
        set_groups = {"cgroups": groups} if groups else {}
        costs = {"processors": self._own_machine(self.machine).request()} if self.machine else {}
        return (
            device_request(target, load_profile(target.device))
            | set_groups
            | costs
            | {
                "scheduler": self.scheduler,
                "tunables": dict(self.tunables),
                "queue": dict(self.queue),
                "jobs": {"text": self.job_text, "source": f"{self.name.replace('/', '-')}.fio"},
                "runtime_ns": self.runtime_ns,
                "seed": self.seed,
            }
        )

    def _own_machine(self, machine: Machine) -> Machine:
        """The table as the guest has it: one scheduler, as its kernel has room for a few, and no punts.

        A guest's program sleeps for a tag, whatever the engine.
        """
        own = {name: costs for name, costs in machine.schedulers.items() if name == self.scheduler}
        return machine.model_copy(update={"schedulers": own, "punt_ns": 0})

    def request_text(self, first_tag: int | None, memory_bytes: int | None = None) -> str:
        """The request for the simulator as text.

        As in the guest, computation takes no time but that of the cost table, the jobs have no file system
        beneath them, and the driver hides the disk's queue depth.

        Args:
            first_tag: The tag at which the guest's first search began.
            memory_bytes: Memory that the guest's free pages and page cache share.
        """
        machine = {
            "zero_cpu_time": "0" if self.machine else "1",
            "raw_device": "1",
            "hide_queue_depth": "1",
            "first_tag": str(first_tag or 0),
        }
        if self.simulated_release is not None:
            machine["kernel"] = self.simulated_release
        if memory_bytes is not None:
            machine["memory"] = str(memory_bytes)
        scheduler = self.simulated_as or self.scheduler
        return json.dumps(self.request() | {"machine": machine, "scheduler": scheduler}, sort_keys=True)


def selected(cells: Sequence[NamedT], patterns: Iterable[str]) -> list[NamedT]:
    """Returns the cells whose name matches a pattern: ``*`` and ``?`` as in a shell, or a part of the name.

    Raises:
        UnknownNameError: if a pattern matches no cell.
    """
    chosen: dict[str, NamedT] = {}
    wanted = list(patterns)
    for pattern in wanted:
        whole = pattern if any(sign in pattern for sign in "*?[") else f"*{pattern}*"
        matching = [cell for cell in cells if fnmatch.fnmatchcase(cell.name, whole)]
        if not matching:
            raise UnknownNameError(
                f"no cell matches {pattern!r}",
                hint="--list prints their names",
            )
        chosen |= {cell.name: cell for cell in matching}
    return [cell for cell in cells if cell.name in chosen] if wanted else list(cells)
