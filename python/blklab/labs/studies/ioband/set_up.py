"""The set-up of the dm-ioband study."""

from __future__ import annotations

from collections.abc import Mapping

from blklab.labs.studies.replication.options import Scaled, StudyOptions, TomlTable

GROUPS = (1, 2, 3)
PHASES: Mapping[str, str] = {
    "write": "write",
    "random write": "randwrite",
    "read": "read",
    "random read": "randread",
}
"""tiotest's phases in order: the document's name, and ``readwrite`` of the job."""


class TiotestCase(TomlTable):
    """One of the document's four cases."""

    buffered: bool
    own_partition: bool
    thread_size: str


class CaseDisk(TomlTable):
    """The simulated disk of the four cases, and the schedulers beneath dm-ioband."""

    target: str
    schedulers: list[str]
    """The default of the time comes first; both are run."""
    default_weight: int


class CompetingGroups(TomlTable):
    """Groups that always have work."""

    threads: list[int]
    schedulers: list[str]
    sorting: list[str]
    """The schedulers among them that do not idle for a process's next I/O."""
    runtime: Scaled[str]
    random_runtime: Scaled[str]
    buffered_runtime: str
    io_throttle: list[int]
    """The default, and a value with which few threads are enough."""
    size: Scaled[str]

    def runtime_of(self, options: StudyOptions, phase: str) -> str:
        """How long the groups compete in a phase."""
        runtime = self.random_runtime if phase.startswith("random") else self.runtime
        return runtime.under(options)


class ModernDisk(TomlTable):
    """A disk on which today's controllers share."""

    runtime: Scaled[str]
    """How long the groups compete."""
    io_cost_model: str | None = None
    """``io.cost.model`` of the disk; None: the model that Linux chooses."""


class Modern(TomlTable):
    """Today's controllers: bfq's weights and io.cost."""

    phases: list[str]
    weight_factor: int
    bfq_attribute: str
    host_bfq_attribute: str
    bfq: list[str]
    """bfq, and a scheduler without weights."""
    io_cost: list[str]
    io_cost_qos: str
    disks: dict[str, ModernDisk]
    host: ModernDisk


class IobandSetUp(TomlTable):
    """``set-up.toml``."""

    weights: list[int]
    threads: int
    random_operations: int
    blocks: Scaled[int]
    """Randomised blocks."""
    cases: dict[str, TiotestCase]
    sim: CaseDisk
    competing: CompetingGroups
    modern: Modern

    @property
    def wanted(self) -> tuple[float, ...]:
        """Shares by weight, in percent."""
        return tuple(100 * weight / sum(self.weights) for weight in self.weights)
