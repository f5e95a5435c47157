"""The set-up of the four-scheduler study."""

from __future__ import annotations

from blklab.labs.studies.replication.options import Scaled, StudyOptions, TomlTable
from blklab.quantities.units import parse_duration_ns
from blklab.spec.schedulers import SchedulerChoice, parse_scheduler_choice
from blklab.spec.sweeps import TunableSweep

TUNED_SCHEDULER = "mq-deadline"


class RunCounts(TomlTable):
    """Numbers of runs. A guest kernel's clock is exact, so a repeated run there adds no information."""

    as_printed: Scaled[int]
    """Runs of each scheduler in the published order."""
    blocks: Scaled[int]
    """Randomised blocks."""


class TimingTests(TomlTable):
    """The two tests of hdparm."""

    area: Scaled[str]
    """The area that ``-t`` may read."""
    buffered_runtime: str
    cached_runtime: Scaled[str]
    """How long ``-T`` reads."""
    host_scratch: str
    host_rest: str
    """The pause before the buffered reads on the host, as long as hdparm's own."""


class BusyDisk(TomlTable):
    """A disk with more requests waiting than it can serve, so that a scheduler has a choice."""

    device: str
    nr_requests: str
    area: Scaled[str]
    runtime: Scaled[str]
    blocks: Scaled[int]


class StudiedMachine(TomlTable):
    """One of the document's two machines, and the model of its disk."""

    name: str
    title: str
    published: str
    """Its name in the published tables."""
    device: str


class BusyWait(TomlTable):
    """The kyber that busy-waits in every dispatch."""

    wait: str
    kernel: str
    stock_kernel: str
    device: str
    stand_in: str
    """A device that takes as long for a command as this kyber for a dispatch."""
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


class Tunables(TomlTable):
    """mq-deadline's tunables at the study's values."""

    values: dict[str, str]
    set_before: dict[str, str]
    """Values in force before any change, where they differ from the kernel's defaults on our disks."""
    not_varied: dict[str, str]
    """Tunables that the document lists but does not change; the values are ours."""

    coarse_values: dict[str, str]
    """Replacements for values that a kernel would round to a tick of its clock."""
    area: str

    def under(self, options: StudyOptions) -> Tunables:
        """The same with values that the backend can set."""
        if options.backend == "sim":
            return self
        return self.model_copy(update={"values": self.values | self.coarse_values})

    @property
    def before(self) -> SchedulerChoice:
        """The scheduler as the document found it, under a label of its own."""
        return self._choice({})

    @property
    def choices(self) -> dict[str, SchedulerChoice]:
        """The scheduler with one tunable changed, by name of the tunable."""
        return {name: self._choice({name: value}) for name, value in self.values.items()}

    @property
    def sweep(self) -> TunableSweep:
        """All combinations of the values with what was in force before."""
        return TunableSweep(base=self.before, levels={name: [value] for name, value in self.values.items()})

    @property
    def variants(self) -> dict[str, SchedulerChoice]:
        """Variants that run by themselves, by the change that they make."""
        found = {f"{name} = {value}": self._choice({name: value}) for name, value in self.not_varied.items()}
        kept = ", ".join(self.set_before)
        return {**found, f"{kept} as Linux sets it": parse_scheduler_choice(TUNED_SCHEDULER)}

    def _choice(self, changed: dict[str, str]) -> SchedulerChoice:
        settings = [f"{name}={value}" for name, value in {**self.set_before, **changed}.items()]
        return parse_scheduler_choice(":".join([TUNED_SCHEDULER, *settings]))


class Agreement(TomlTable):
    """hdparm beside the job that emulates it, if hdparm is installed."""

    schedulers: list[str]
    margin: float
    """Relative difference that counts as equal."""
    blocks: Scaled[int]
    """Each block has a pair of runs under every scheduler."""


class FourSchedulersSetUp(TomlTable):
    """``set-up.toml``."""

    schedulers: list[str]
    tests: TimingTests
    runs: RunCounts
    queue: dict[str, str]
    machines: list[StudiedMachine]
    agreement: Agreement
    busy_wait: BusyWait
    tunables: Tunables
    busy_disk: BusyDisk

    def machines_at(self, options: StudyOptions) -> list[StudiedMachine]:
        """Both machines; on the host this machine, compared with the values of machine 1."""
        if options.backend != "host":
            return self.machines
        return [self.machines[0].model_copy(update={"title": "this machine"})]
