"""The kinds of load that a workload can be, and the designs in which schedulers get their turns under it."""

from __future__ import annotations

from enum import Enum


class Load(Enum):
    """A kind of load: what it can do, and what it needs."""

    FIO = ("fio jobs", "steady or changing load of any shape", "on a host fio; models generate it themselves")
    HDPARM = (
        "hdparm",
        "the throughput that `hdparm -t` or `-T` prints",
        "hdparm, and a block or loop device of this machine; elsewhere its job stands for it",
    )
    COMMAND = (
        "command",
        "the time of a program, with a cold or warm page cache, alone or beside fio jobs",
        "its packages; in guests room in memory for copies of its files, and Linux 6.0 (ublk)",
    )
    REPLAY = (
        "replay",
        "recorded I/Os, each of which waits for what it waited for",
        "a recording; on a host no jobs beside it",
    )

    def __init__(self, label: str, can: str, needs: str) -> None:
        self.label = label
        self.can = can
        self.needs = needs


class TurnDesign(Enum):
    """A way in which schedulers take turns."""

    RUNS = "runs"
    """Each run has one scheduler and a load of its own."""
    SWITCHBACK = "switchback"
    """They take turns within one load."""
    CHANGES = "planned changes"
    """Runs during which settings change at planned moments."""
