"""Machines: TOML files that say what computing costs, shipped in machines/ or a person's own.

A machine is a cost table: processors, and nanoseconds of processor time for the steps of an I/O and the
hooks of schedulers. Models run on `DEFAULT_MACHINE` unless ``--machine`` names another.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from blklab.errors import ProfileError, UnknownNameError
from blklab.shipped import shipped_files
from blklab.spec.folders import data_folder
from blklab.spec.mistakes import first_mistake
from blklab.spec.profile_files import read_named, read_shipped, text_of, unknown_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_NS = 1_000_000_000
THIS = "this"
"""The name of the table that calibration has measured on this machine."""
DEFAULT_MACHINE = "ordinary"
"""The table of models unless another is named."""
ZERO_CPU_TIME = "zero-cpu-time"
"""The table under which computing takes no time."""
Nanoseconds = Annotated[int, Field(ge=0, le=MOST_NS)]


class _CostTable(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class StepCosts(_CostTable):
    """Processor time of the steps of an I/O outside the scheduler, in nanoseconds."""

    prepare_ns: Nanoseconds = 0
    """The program prepares an I/O."""
    system_call_ns: Nanoseconds = 0
    """A system call, without the work that it is for."""
    submit_ns: Nanoseconds = 0
    """A bio becomes a request with a tag (``blk_mq_submit_bio``)."""
    issue_ns: Nanoseconds = 0
    """The driver takes a request (``queue_rq``)."""
    interrupt_ns: Nanoseconds = 0
    """An interrupt and its softirq."""
    ipi_ns: Nanoseconds = 0
    """A processor interrupts another, which then pays ``interrupt_ns`` too."""
    end_ns: Nanoseconds = 0
    """A request ends (``blk_mq_end_request``, and what the task's I/O interface does then)."""
    wake_ns: Nanoseconds = 0
    """A sleeping task or worker is woken (``try_to_wake_up``)."""
    context_switch_ns: Nanoseconds = 0
    """Another task takes the processor (``__schedule``)."""
    idle_exit_ns: Nanoseconds = 0
    """An idle processor begins to compute."""
    collect_ns: Nanoseconds = 0
    """The program collects an I/O that is complete."""
    thread_command_ns: Nanoseconds = 0
    """A thread serves a command of a loop device, without the copying."""
    copy_page_ns: Nanoseconds = 0
    """A page is copied: by the thread of a loop device, or between a program and the page cache."""
    lock_handover_ns: Nanoseconds = 0
    """A lock that is waited for changes hands: it and the data that it guards move between caches."""


class SchedulerCosts(_CostTable):
    """Processor time of a scheduler's hooks, in nanoseconds."""

    insert_ns: Nanoseconds = 0
    dispatch_ns: Nanoseconds = 0
    complete_ns: Nanoseconds = 0
    merge_ns: Nanoseconds = 0
    """A look for a merge."""
    per_doubling_ns: Nanoseconds = 0
    """For an insertion or dispatch, in addition for each doubling of the requests held."""
    locked_percent: Annotated[int, Field(ge=0, le=100)] = 0
    """Share of all this under the scheduler's lock."""


class Machine(_CostTable):
    """A machine's processors and what computing costs on them."""

    name: str
    source: str = ""
    """Name of the shipped table, or file as named by the person."""
    summary: str = ""
    cpus: Annotated[int, Field(ge=1, le=1024)]
    slice_ns: Nanoseconds = 0
    """Time for which a task may run although others wait."""
    punt_ns: Nanoseconds = 0
    """An I/O of io_uring that finds no tag: the attempt is given up, and the I/O handed to a worker of the
    ring, which pays for repeating it besides. Without, the program sleeps for the tag, as under other
    engines."""
    map_page_ns: Nanoseconds = 0
    """The driver describes a page of a request beyond its first to the device (``nvme_map_data``), and
    takes it back. Guests' kernels do not charge it."""
    plug_reads: bool = False
    """Each bio has a plug of its own, so the submitting task runs the queue for a direct read too, and not
    the queue's worker: ``__submit_bio`` of block/blk-core.c since Linux 6.10 (commit 060406c61c7c; a patch
    of 2026 removes it again). A guest's kernel has its own way."""
    steps: StepCosts = StepCosts()
    schedulers: dict[str, SchedulerCosts] = {}
    """By name; a scheduler that is not here costs nothing."""

    def request(self) -> dict[str, Any]:
        """The costs as simulator and guest take them."""
        return self.model_dump(exclude={"name", "source", "summary", "plug_reads"})

    def parameters(self) -> dict[str, str]:
        """The parameters of the simulator's machine that differ from their defaults."""
        return {"plug_reads": "1"} if self.plug_reads else {}

    @property
    def is_free(self) -> bool:
        """Whether computing takes no time and there is one processor for it."""
        tables = [self.steps, *self.schedulers.values()]
        costs = [table.model_dump(exclude={"locked_percent"}).values() for table in tables]
        return self.cpus == 1 and not any(any(figures) for figures in costs)

    def description(self) -> str:
        """The machine in a few words, for the details of a target that runs on it."""
        if self.is_free:
            return "computing takes no time"
        return f"{self._processors} with the costs of {self.source or self.name}"

    def brief_description(self) -> str:
        """The same for a line that everybody reads: the usual costs go without saying."""
        is_usual = not self.is_free and (self.source or self.name) == DEFAULT_MACHINE
        return self._processors if is_usual else self.description()

    @property
    def _processors(self) -> str:
        return "one processor" if self.cpus == 1 else f"{self.cpus} processors"

    def on_one_processor(self) -> Machine:
        """The same costs on one processor, as User-mode Linux has it."""
        return self.model_copy(update={"cpus": 1})


def shipped_machines() -> dict[str, Machine]:
    """The machines that come with blklab, by name."""
    return read_shipped("machines", read_machine)


def load_machine(name_or_path: str) -> Machine:
    """Finds a machine by the name of a shipped one, by the path of a file, or this one once it is measured.

    Raises:
        UnknownNameError: if there is none; close names are suggested.
        ProfileError: if the file cannot be read or has a mistake; the message names the field.
    """
    named = read_named("machines", name_or_path, read_machine)
    if named is not None:
        return named
    if name_or_path == THIS:
        if not calibrated_machine().is_file():
            raise UnknownNameError(
                "this machine's cost table has not been measured",
                hint="measure it as root: blklab calibrate processor",
            )
        return read_machine(calibrated_machine(), THIS)
    raise unknown_name("machine", name_or_path, [*shipped_files("machines", ".toml"), THIS])


def calibrated_machine() -> Path:
    """The file that calibration writes unless told otherwise. It need not exist."""
    return data_folder() / "machine.toml"


def read_machine(path: Path, source: str) -> Machine:
    """Reads a cost table.

    Raises:
        ProfileError: if it cannot be read or has a mistake; the message names the field.
    """
    try:
        table = tomllib.loads(text_of(path, source))
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"{source}: is not TOML: {error}") from error
    try:
        return Machine.model_validate(table | {"source": source})
    except ValidationError as error:
        raise ProfileError(f"{source}: {first_mistake(error)}") from error
