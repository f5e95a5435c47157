"""The study's set-up as data."""

from __future__ import annotations

from collections.abc import Mapping

from blklab.studies.replication.protocol import Asked
from blklab.studies.replication.study_folder import Table

GROUPS = (1, 2, 3)
PHASES: Mapping[str, str] = {
    "write": "write",
    "random write": "randwrite",
    "read": "read",
    "random read": "randread",
}
"""tiotest's phases in their order, as the document names them, and as jobs do."""


class Case(Table):
    """One of the four cases."""

    buffered: bool
    own_partition: bool
    thread_size: str


class Simulated(Table):
    """The disk of the cases, and what stands on it."""

    target: str
    schedulers: list[str]
    """The first one is the default of the time; both are run."""
    default_weight: int


class Competing(Table):
    """Groups that have work all the time."""

    threads: list[int]
    schedulers: list[str]
    sorting: list[str]
    """Those of them that keep nobody waiting for a process's next I/O."""
    runtime: str
    random_runtime: str
    quick_runtime: str
    quick_random_runtime: str
    buffered_runtime: str
    repeats: int
    quick_repeats: int
    io_throttle: list[int]
    """The default, and one with which few threads are enough."""
    size: str
    host_size: str

    def runtime_of(self, asked: Asked, phase: str) -> str:
        """How long the groups compete in a phase."""
        if phase.startswith("random"):
            return self.quick_random_runtime if asked.quick else self.random_runtime
        return self.quick_runtime if asked.quick else self.runtime


class Runtime(Table):
    """How long the groups compete."""

    runtime: str
    quick_runtime: str
    guest_runtime: str | None = None
    """In a guest kernel, which does some ten thousand I/Os in a second of this machine's time."""
    quick_guest_runtime: str | None = None
    io_cost_model: str | None = None
    """What the disk can do; nothing: the model that Linux takes by itself."""

    def of(self, asked: Asked) -> str:
        """The one that is meant."""
        here = self.quick_runtime if asked.quick else self.runtime
        in_guest = self.quick_guest_runtime if asked.quick else self.guest_runtime
        return in_guest or here if asked.place == "uml" else here


class Modern(Table):
    """Today's ways to share."""

    phases: list[str]
    weight_factor: int
    bfq_attribute: str
    host_bfq_attribute: str
    bfq: list[str]
    """bfq, and a scheduler without weights."""
    io_cost: list[str]
    io_cost_qos: str
    disks: dict[str, Runtime]
    host: Runtime


class SetUp(Table):
    """``set-up.toml``."""

    weights: list[int]
    threads: int
    random_operations: int
    cases: dict[str, Case]
    sim: Simulated
    competing: Competing
    modern: Modern

    def repeats(self, asked: Asked) -> int:
        """Number of randomised blocks."""
        return self.competing.quick_repeats if asked.quick else self.competing.repeats

    @property
    def wanted(self) -> tuple[float, ...]:
        """Shares by weight, in percent."""
        return tuple(100 * weight / sum(self.weights) for weight in self.weights)
