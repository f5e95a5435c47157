"""The result of ``blklab iocost``, as ``--json`` prints it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from blklab.labs.iocost.estimates import Estimate
from blklab.labs.iocost.solutions import Expected, Solution
from blklab.labs.iocost.vrate_range import VrateRange

SCHEMA = "blklab.iocost/1"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SweptVrate(_Part):
    """The two groups' figures at one vrate."""

    vrate: int
    """Percent of the model as measured."""
    expected: Expected


class Sweep(_Part):
    """A sweep of vrates on a model of the disk."""

    profile: str
    """The model, as after ``sim:``."""
    machine: str
    """Its cost table."""
    coefficients: list[Estimate]
    """As measured on the model; vrates are percentages of these."""
    seeds: int
    asked_reads_per_second: int
    """By the protected group."""
    asked_writes_per_second: int
    runtime_s: float
    without: Expected
    """Without io.cost."""
    vrates: list[SweptVrate]
    range: VrateRange | None
    """None if no vrate protects the group."""


class IoCostDocument(_Part):
    """The result of `blklab iocost`."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    target: str
    disk: str
    models: list[str]
    """The drive's model in the forms in which udev may have it; empty if it has none."""
    device_number: str | None
    """None for models and scratch devices."""
    measured_on: str
    """Date and time, UTC, ISO 8601."""
    kernel: str
    machine: str | None
    """The cost table under which a model was measured; None on a disk of this machine."""
    seed: int
    rounds: int
    runtime_s: float
    """Of each load in each round."""
    percentile: int
    """That latency targets are about."""
    coefficients: list[Estimate]
    latencies: list[Estimate]
    """Targets in microseconds, headroom included."""
    sweep: Sweep | None
    """None without a model of the disk."""
    solutions: list[Solution]
    chosen: str
    """The solution whose lines follow."""
    model_line: str
    """For ``io.cost.model``."""
    qos_line: str
    """For ``io.cost.qos``."""
    remarks: list[str]

    def solution(self, name: str) -> Solution:
        """The solution of a name that is among `solutions`."""
        return next(solution for solution in self.solutions if solution.name == name)
