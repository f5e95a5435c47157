"""Sizes, times and numbers of runs of the two studies: tables of their ``set-up.toml``."""

from __future__ import annotations

from blklab.studies.replication.protocol import Asked
from blklab.studies.replication.study_folder import Table


class Runs(Table):
    """How often; in a guest kernel, whose clock is exact, another run shows what the first one did."""

    as_printed: int
    quick_as_printed: int
    repeats: int
    quick_repeats: int
    uml_as_printed: int
    uml_repeats: int

    def printed(self, asked: Asked) -> int:
        """Runs of each scheduler in one stretch."""
        return asked.choose(self.as_printed, quick=self.quick_as_printed, uml=self.uml_as_printed)

    def repeated(self, asked: Asked) -> int:
        """Randomised blocks."""
        return asked.choose(self.repeats, quick=self.quick_repeats, uml=self.uml_repeats)


class TimingTests(Table):
    """hdparm's two tests, by place."""

    area: str
    quick_area: str
    buffered_runtime: str
    cached_runtime: str
    quick_cached_runtime: str
    uml_area: str
    uml_cached_runtime: str
    host_area: str
    host_scratch: str
    host_rest: str
    """Before the buffered reads; hdparm itself rests as long."""

    def area_at(self, asked: Asked) -> str:
        """What ``-t`` may read."""
        simulated = self.quick_area if asked.quick else self.area
        return {"sim": simulated, "uml": self.uml_area, "host": self.host_area}[asked.place]

    def cached_runtime_at(self, asked: Asked) -> str:
        """How long ``-T`` reads."""
        return asked.choose(self.cached_runtime, quick=self.quick_cached_runtime, uml=self.uml_cached_runtime)


class BusyDisk(Table):
    """A disk with more waiting than it can do, where a scheduler has to choose."""

    device: str
    nr_requests: str
    area: str
    runtime: str
    quick_runtime: str
    repeats: int
    quick_repeats: int
    host_area: str
    host_runtime: str

    def runtime_at(self, asked: Asked) -> str:
        """How long it is busy."""
        if asked.place == "host":
            return self.host_runtime
        return asked.choose(self.runtime, quick=self.quick_runtime, uml=self.quick_runtime)

    def repeated(self, asked: Asked) -> int:
        """Randomised blocks."""
        return asked.choose(self.repeats, quick=self.quick_repeats, uml=self.quick_repeats)
