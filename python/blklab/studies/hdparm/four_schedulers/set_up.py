"""The study's set-up as data."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from blklab.scheduler_choice import SchedulerChoice, parse_scheduler_choice
from blklab.studies.hdparm.timing_tests import Tests
from blklab.studies.protocol import Asked
from blklab.units import parse_duration_ns

TUNED_SCHEDULER = "mq-deadline"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Runs(_Part):
    """How often."""

    as_printed: int
    repeats: int
    quick_repeats: int

    def repeated(self, asked: Asked) -> int:
        """Randomised blocks."""
        return self.quick_repeats if asked.quick else self.repeats


class Machine(_Part):
    """One of the two, and the model that stands for its disk."""

    name: str
    title: str
    published: str
    """As the tables of published figures call it."""
    device: str


class BusyWait(_Part):
    """The kyber that waits in every dispatch."""

    wait: str
    kernel: str
    stock_kernel: str
    device: str
    stand_in: str
    """Device that takes as long for a command as this kyber for a dispatch."""
    area: str
    max_sectors_kb: list[int]
    usual_max_sectors_kb: int
    between_kb: tuple[int, int]

    @property
    def wait_s(self) -> float:
        """Length of the wait in seconds."""
        return parse_duration_ns(self.wait) / 1e9

    @property
    def patched(self) -> str:
        """Label of kyber on the patched kernel."""
        return f"kyber@{self.kernel}"

    @property
    def stock(self) -> str:
        """Label of kyber on the kernel as it is."""
        return f"kyber@{self.stock_kernel}"

    @property
    def control(self) -> str:
        """Label of none on the patched kernel."""
        return f"none@{self.kernel}"


class Tunables(_Part):
    """mq-deadline's tunables at the study's values."""

    values: dict[str, str]
    nr_requests: str
    busy_device: str
    busy_area: str
    busy_runtime: str
    repeats: int
    quick_repeats: int
    host_busy_area: str
    host_busy_runtime: str

    @property
    def choices(self) -> dict[str, SchedulerChoice]:
        """The scheduler with one tunable changed, by tunable."""
        return {
            name: parse_scheduler_choice(f"{TUNED_SCHEDULER}:{name}={value}")
            for name, value in self.values.items()
        }


class SetUp(_Part):
    """``set-up.toml``."""

    schedulers: list[str]
    tests: Tests
    runs: Runs
    queue: dict[str, str]
    machines: list[Machine]
    busy_wait: BusyWait
    tunables: Tunables
