"""The set-up of the iozone study."""

from __future__ import annotations

from blklab.labs.studies.replication.options import Scaled, StudyOptions, TomlTable
from blklab.quantities.units import parse_size_bytes


class IozoneTests(TomlTable):
    """iozone's tests."""

    records_kib: Scaled[list[int]]
    """Record sizes in KiB, in iozone's order."""
    file: Scaled[str]
    blocks: Scaled[int]
    """Randomised blocks."""


class SimulatedArray(TomlTable):
    """The array on the simulator."""

    target: str
    schedulers: list[str]


class GuestArray(TomlTable):
    """The array in a guest kernel."""

    target: str
    schedulers: list[str]
    legacy_schedulers: list[str]
    """Those on a kernel that offers cfq, deadline and noop."""
    filesystem: str
    memory: str


class LoopArray(TomlTable):
    """The array on this machine if the user names no folder."""

    target: str


class ReadersBesideWriters(TomlTable):
    """A load under which schedulers differ."""

    sim_schedulers: list[str]
    depth: int
    shallow_depth: int
    shallow_blocks: int
    runtime: Scaled[str]
    blocks: Scaled[int]


class IozoneSetUp(TomlTable):
    """``set-up.toml``."""

    iozone: IozoneTests
    sim: SimulatedArray
    uml: GuestArray
    host: LoopArray
    contrast: ReadersBesideWriters

    def file_bytes(self, options: StudyOptions) -> int:
        """Size of iozone's file."""
        return parse_size_bytes(self.iozone.file.under(options))

    def counterparts(self, options: StudyOptions) -> dict[str, str]:
        """Our scheduler for each published one: today's successor on a kernel of today."""
        if options.backend == "sim" or options.on_legacy_kernel:
            return {"noop": "noop", "cfq": "cfq", "deadline": "deadline"}
        return {"noop": "none", "cfq": "bfq", "deadline": "mq-deadline"}
