"""Changes of a disk's queue: a switch of its scheduler, and one setting."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.linux.cgroups.cost_control import CostControl
from blklab.linux.disks.disk import Disk
from blklab.linux.machine.host_change import HostChange, KernelWrite, shell_of
from blklab.linux.queue.attributes import name_on, read_attribute, write_attribute
from blklab.linux.queue.schedulers import available_schedulers, set_scheduler
from blklab.linux.queue.sysfs import SCHEDULER, queue_folder


@dataclass(frozen=True)
class QueueWrite(HostChange):
    """One setting of a queue, or its scheduler; what the kernel keeps is read back."""

    disk: Disk
    name: str
    """As in sysfs: ``scheduler``, ``nr_requests``, ``iosched/slice_idle``."""
    value: str
    follows: bool = False
    """Whether to write where this kernel has the setting, if that is another place."""

    @property
    def place(self) -> str:
        """The setting's name under the disk's kernel and active scheduler."""
        return name_on(self.disk, self.name) if self.follows else self.name

    def make(self) -> None:
        """Writes the setting.

        Raises:
            SchedulerUnavailableError, TunableError: if the kernel lacks the setting or refuses the value.
        """
        write_attribute(self.disk, self.place, self.value)

    def shell(self) -> list[str]:
        """The write to the place that was asked for."""
        return KernelWrite(queue_folder(self.disk) / self.name, self.value).shell()

    def undoing(self) -> list[HostChange]:
        """The write of the present value."""
        return [QueueWrite(self.disk, self.place, read_attribute(self.disk, self.place))]

    def holds(self) -> bool:
        """Whether the kernel has the value."""
        return read_attribute(self.disk, self.place) == self.value


@dataclass(frozen=True)
class SchedulerSwitch(HostChange):
    """A switch to a scheduler that gives all its tunables their defaults, also if it is in force."""

    disk: Disk
    name: str
    other: str | None
    """The scheduler to switch to before switching back; None if the disk offers no other."""
    cost: CostControl
    under_cost: bool = False
    """Whether io.cost will be on, for the shell; `make` looks."""

    @property
    def renewal(self) -> CostRenewal:
        """The change that follows the switch."""
        return CostRenewal(self.disk, self.cost)

    def make(self) -> None:
        """Switches, with the kernel's defaults, which depend on whether io.cost is on.

        Raises:
            SchedulerUnavailableError: if the kernel lacks the scheduler.
        """
        if self.other is not None and self.holds():
            set_scheduler(self.disk, self.other)
        set_scheduler(self.disk, self.name)
        self.renewal.make()

    def shell(self) -> list[str]:
        """The switches from any state."""
        names = [self.name] if self.other is None else [self.other, self.name]
        switches = [QueueWrite(self.disk, SCHEDULER, name) for name in names]
        return shell_of([*switches, self.renewal] if self.under_cost else switches)

    def undoing(self) -> list[HostChange]:
        """The switch to the present scheduler; tunables that were set by hand are the journal's."""
        active = available_schedulers(self.disk)[0]
        return [] if active is None else [QueueWrite(self.disk, SCHEDULER, active)]

    def holds(self) -> bool:
        """Whether the scheduler is active."""
        return available_schedulers(self.disk)[0] == self.name


@dataclass(frozen=True)
class CostRenewal(HostChange):
    """Tells io.cost again that it is on, so that writeback throttling is off after a switch."""

    disk: Disk
    cost: CostControl

    def make(self) -> None:
        """Writes it if io.cost is on and throttling too."""
        self.cost.renew(self.disk)

    def shell(self) -> list[str]:
        """The write, whatever the state."""
        change = self.cost.renewal(self.disk)
        return [] if change is None else change.shell()

    def holds(self) -> bool:
        """Whether throttling is off, or io.cost."""
        return not self.cost.throttles(self.disk)
