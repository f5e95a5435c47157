"""Sizes, times and numbers of runs of the two studies: tables of their ``set-up.toml``."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from blklab.studies.protocol import Asked


class Part(BaseModel):
    """A table of ``set-up.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Runs(Part):
    """How often; in a guest kernel, whose clock is exact, another run shows what the first one did."""

    as_printed: int
    quick_as_printed: int
    repeats: int
    quick_repeats: int
    uml_as_printed: int
    uml_repeats: int

    def printed(self, asked: Asked) -> int:
        """Runs of each scheduler in one stretch."""
        if asked.place == "uml":
            return self.uml_as_printed
        return self.quick_as_printed if asked.quick else self.as_printed

    def repeated(self, asked: Asked) -> int:
        """Randomised blocks."""
        if asked.place == "uml":
            return self.uml_repeats
        return self.quick_repeats if asked.quick else self.repeats


class TimingTests(Part):
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
        if asked.place == "uml":
            return self.uml_cached_runtime
        return self.quick_cached_runtime if asked.quick else self.cached_runtime


class BusyDisk(Part):
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
        return self.quick_runtime if asked.quick or asked.place == "uml" else self.runtime

    def repeated(self, asked: Asked) -> int:
        """Randomised blocks."""
        return self.quick_repeats if asked.quick or asked.place == "uml" else self.repeats
