"""The study's set-up as data."""

from __future__ import annotations

from blklab.quantities.units import parse_size_bytes
from blklab.studies.replication.protocol import Asked, Place
from blklab.studies.replication.study_folder import Table


class Iozone(Table):
    """The tests."""

    records_kib: list[int]
    file: str
    quick_file: str
    repeats: int
    quick_repeats: int


class Simulated(Table):
    """On the simulator."""

    target: str
    schedulers: list[str]


class Guest(Table):
    """In a guest kernel."""

    target: str
    schedulers: list[str]
    filesystem: str
    memory: str
    file: str
    quick_file: str
    quick_records_kib: list[int]
    repeats: int
    quick_repeats: int
    contrast_repeats: int


class Host(Table):
    """On this machine."""

    target: str
    """Where no folder is named."""
    file: str
    quick_file: str
    quick_records_kib: list[int]
    repeats: int
    quick_repeats: int


class Contrast(Table):
    """Work under which schedulers differ."""

    sim_schedulers: list[str]
    depth: int
    shallow_depth: int
    shallow_repeats: int
    runtime: str
    quick_runtime: str
    repeats: int


class SetUp(Table):
    """``set-up.toml``."""

    iozone: Iozone
    sim: Simulated
    uml: Guest
    host: Host
    contrast: Contrast

    def file_bytes(self, asked: Asked) -> int:
        """Size of iozone's file."""
        part = self._place(asked)
        return parse_size_bytes(part.quick_file if asked.quick else part.file)

    def records_kib(self, asked: Asked) -> list[int]:
        """Record sizes in KiB, in iozone's order."""
        part = self._place(asked)
        if isinstance(part, Iozone) or not asked.quick:
            return self.iozone.records_kib
        return part.quick_records_kib

    def repeats(self, asked: Asked) -> int:
        """Number of randomised blocks."""
        part = self._place(asked)
        return part.quick_repeats if asked.quick else part.repeats

    def contrast_repeats(self, asked: Asked) -> int:
        """Number of randomised blocks of readers beside writers."""
        return self.uml.contrast_repeats if asked.place == "uml" else self.contrast.repeats

    def contrast_runtime(self, asked: Asked) -> str:
        """Length of readers beside writers."""
        quick = self.contrast.quick_runtime
        return asked.choose(self.contrast.runtime, quick=quick, uml=quick)

    def _place(self, asked: Asked) -> Iozone | Guest | Host:
        parts: dict[Place, Iozone | Guest | Host] = {"sim": self.iozone, "uml": self.uml, "host": self.host}
        return parts[asked.place]

    def counterparts(self, asked: Asked) -> dict[str, str]:
        """By published scheduler: ours, which is today's successor where the kernel is one of today."""
        if asked.place == "sim":
            return {"noop": "noop", "cfq": "cfq", "deadline": "deadline"}
        return {"noop": "none", "cfq": "bfq", "deadline": "mq-deadline"}
