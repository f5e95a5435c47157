"""A built guest kernel: its schedulers, options and clock."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from blklab.errors import KernelLacksError, UnknownNameError, did_you_mean
from blklab.guests.kernels.build_record import BuildRecord
from blklab.guests.kernels.cache import pinned
from blklab.guests.kernels.configuration import read_configuration
from blklab.guests.kernels.names import unknown_kernel
from blklab.linux.queue.schedulers import KNOWN_SCHEDULERS

SCHEDULER_OPTIONS = {
    "mq-deadline": "CONFIG_MQ_IOSCHED_DEADLINE",
    "kyber": "CONFIG_MQ_IOSCHED_KYBER",
    "bfq": "CONFIG_IOSCHED_BFQ",
}
"""The multi-queue block layer's schedulers and their configuration options; ``none`` needs no option."""

LEGACY_SCHEDULER_OPTIONS = {
    "noop": "CONFIG_IOSCHED_NOOP",
    "deadline": "CONFIG_IOSCHED_DEADLINE",
    "cfq": "CONFIG_IOSCHED_CFQ",
}
"""Those of the legacy block layer, up to Linux 4.20. Only blklab's own driver has disks of that layer."""

Driver = Literal["ublk", "modelled_disk", "null_blk"]
"""The driver behind the disks of a guest."""

PROCESSOR_TIME = "processor-time"
"""Name of the instrument that lets computing take virtual time."""
EXACT_CLOCK = "exact-clock"
"""Name of the instrument that lets a guest read its clock in zero virtual time."""
VIRTUAL_TIME = "virtual-time"
"""Name of the instrument that gives Linux 4.19 virtual time; its clock keeps the rules of exact-clock."""

_FIRST_WITH_SECCOMP = (6, 16)
_NUMBER = re.compile(r"\d+")

USUAL_TICKS_PER_SECOND = 100
"""User-mode Linux's default for CONFIG_HZ (arch/um/Kconfig)."""


@dataclass(frozen=True)
class GuestClock:
    """A guest kernel's clock. If clocks differ, the same scheduler measures differently."""

    exact: str | None
    """Digest of the built-in instrument ``exact-clock``, with which reading the clock takes no guest time;
    None without it."""
    ticks_per_second: int
    """``CONFIG_HZ``: the resolution of times that the kernel counts in ticks."""

    def __str__(self) -> str:
        how = "an exact clock" if self.exact is not None else "a clock that advances when read"
        return f"{how} and {self.ticks_per_second} ticks a second"


@dataclass(frozen=True)
class KernelBuild:
    """A built guest kernel."""

    name: str
    folder: Path
    record: BuildRecord

    @property
    def linux(self) -> Path:
        """The kernel, which is a program."""
        return self.folder / "linux"

    @property
    def build_id(self) -> str:
        """Digest of all inputs: source, patches, instruments, configuration, compiler, recipe."""
        return self.record.build_id

    @property
    def instruments(self) -> tuple[str, ...]:
        """Names of the built-in instruments; kernels with the same ones have comparable measurements."""
        return tuple(item.name for item in self.record.instruments if item.complaint is None)

    @property
    def lacks(self) -> tuple[str, ...]:
        """The instruments that were skipped because they do not apply, in words for people."""
        return tuple(
            f"without {item.name}: it does not apply to Linux {self.version} ({item.complaint})"
            for item in self.record.instruments
            if item.complaint is not None and not (item.name == EXACT_CLOCK and self._brings_virtual_time)
        )

    @property
    def version(self) -> str:
        """The release, for example ``6.1.192``."""
        return self.record.version

    @property
    def boot_parameters(self) -> tuple[str, ...]:
        """The parameters that this kernel boots with, beside those of all kernels.

        With ``seccomp=auto`` a guest's programs hand their system calls to the kernel themselves, which takes
        less of this machine's time than to trace them, and the same time of the guest. The kernel traces them
        where this machine forbids that (arch/um/os-Linux/start_up.c, Linux 6.16).
        """
        return ("seccomp=auto",) if self.release >= _FIRST_WITH_SECCOMP else ()

    @property
    def release(self) -> tuple[int, ...]:
        """The first two numbers of the version, for example ``(6, 1)``."""
        return tuple(int(part) for part in _NUMBER.findall(self.version)[:2])

    @cached_property
    def config(self) -> dict[str, str]:
        """The configuration: ``CONFIG_…`` and its value; options that are off are absent."""
        return read_configuration(self.folder / "config")

    @property
    def clock(self) -> GuestClock:
        """Its clock."""
        clocks = [item for item in self.record.instruments if item.name == EXACT_CLOCK]
        of_its_rules = self._brings_virtual_time
        exact = next((item.sha256 for item in clocks if item.complaint is None or of_its_rules), None)
        return GuestClock(exact, int(self.config.get("CONFIG_HZ", USUAL_TICKS_PER_SECOND)))

    @property
    def schedulers(self) -> tuple[str, ...]:
        """The schedulers that it offers, ``none`` first."""
        options = SCHEDULER_OPTIONS | (LEGACY_SCHEDULER_OPTIONS if self.driver == "modelled_disk" else {})
        built_in = (name for name, option in options.items() if option in self.config)
        return ("none", *built_in, *self.record.added_schedulers)

    @property
    def driver(self) -> Driver:
        """The driver behind its guests' disks: device models, or where it supports none a fixed latency."""
        if self.has_ublk:
            return "ublk"
        return "modelled_disk" if "CONFIG_UML_MODELLED_DISK" in self.config else "null_blk"

    @property
    def has_models(self) -> bool:
        """Whether its guests have disks of any device model."""
        return self.driver != "null_blk"

    @property
    def has_ublk(self) -> bool:
        """Whether it supports disks served from user space (Linux 6.0 and later)."""
        return "CONFIG_BLK_DEV_UBLK" in self.config

    @property
    def _brings_virtual_time(self) -> bool:
        return VIRTUAL_TIME in self.instruments

    @property
    def has_time_travel(self) -> bool:
        """Whether it can run in virtual time."""
        return "CONFIG_UML_TIME_TRAVEL_SUPPORT" in self.config

    def require_scheduler(self, scheduler: str) -> None:
        """Makes sure that the kernel offers a scheduler.

        Raises:
            KernelLacksError: if it does not.
            UnknownNameError: if the name is close to one that it offers, and no scheduler of Linux.
        """
        if scheduler not in self.schedulers:
            close = did_you_mean(scheduler, self.schedulers)
            if close and scheduler not in KNOWN_SCHEDULERS:
                raise UnknownNameError(
                    f"the kernel {self.name} has no scheduler {scheduler!r}",
                    hint=f"{close} it has {', '.join(self.schedulers)}",
                )
            raise KernelLacksError(
                f"the kernel {self.name} ({self.version}) has no scheduler {scheduler}; "
                f"it has {', '.join(self.schedulers)}",
                hint=f"`blklab kernel show {self.name}` shows what it was built from",
            )

    @contextmanager
    def in_use(self) -> Iterator[KernelBuild]:
        """Prevents the removal of the build while a guest runs on it.

        Raises:
            UnknownNameError: if it was removed since it was found.
        """
        with pinned(self.folder) as there:
            if not there:
                raise unknown_kernel(self.name)
            yield self
