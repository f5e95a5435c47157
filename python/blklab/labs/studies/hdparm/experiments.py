"""The experiments: both machines as printed and in randomised blocks, the waiting kyber, the tunables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from blklab.labs.studies.hdparm.jobs import buffered_reads, busy_disk, timing_tests
from blklab.labs.studies.hdparm.set_up import BusyWait, FourSchedulersSetUp
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.protocol import NamedExperiment
from blklab.labs.studies.replication.specs import study_spec
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.schedulers import SchedulerChoice, parse_scheduler_choices
from blklab.spec.sweeps import TunableSweep
from blklab.spec.workloads import Workload

AGREEMENT = "hdparm-and-job"
TUNABLES_PRINTED = "tunables-as-printed"
TUNABLES_REPEATED = "tunables-repeated"
TUNABLES_BUSY = "tunables-busy-disk"


def printed_name(machine: str) -> str:
    """Name of a machine's experiment as its authors ran it."""
    return f"{machine}-as-printed"


def repeated_name(machine: str) -> str:
    """Name of a machine's experiment in randomised blocks."""
    return f"{machine}-repeated"


def stock_name(max_sectors_kb: int) -> str:
    """Name of the experiment with the stock kyber and commands of at most this size."""
    return f"stock-{max_sectors_kb}k"


def waiting_name(max_sectors_kb: int) -> str:
    """Name of the experiment with the kyber that waits and commands of at most this size."""
    return f"busy-wait-{max_sectors_kb}k"


def experiments(options: StudyOptions, folder: StudyFolder) -> Sequence[NamedExperiment]:
    """Lists the experiments, in order."""
    set_up = folder.set_up(FourSchedulersSetUp)
    between = [_agreement(options, set_up)] if options.backend == "host" else _busy_wait(options, set_up)
    return [*_machines(options, set_up), *between, *_tunables(options, set_up)]


def _machines(options: StudyOptions, set_up: FourSchedulersSetUp) -> Iterator[NamedExperiment]:
    runs, workloads = set_up.runs, timing_tests(options, set_up.tests)
    choices = parse_scheduler_choices(set_up.schedulers)
    for machine in set_up.machines_at(options):
        yield NamedExperiment(
            printed_name(machine.name),
            f"hdparm -tT on {machine.title}, as its author ran it: one scheduler after another",
            _spec(
                options,
                set_up,
                machine.device,
                choices,
                workloads,
                blocks=runs.as_printed.under(options),
                as_printed=True,
            ),
        )
        yield NamedExperiment(
            repeated_name(machine.name),
            f"The same on {machine.title} in randomised blocks",
            _spec(options, set_up, machine.device, choices, workloads, blocks=runs.blocks.under(options)),
        )


def _agreement(options: StudyOptions, set_up: FourSchedulersSetUp) -> NamedExperiment:
    agreement, device = set_up.agreement, set_up.machines[0].device
    both = [buffered_reads(options, set_up.tests, as_job=as_job) for as_job in (False, True)]
    choices = parse_scheduler_choices(agreement.schedulers)
    return NamedExperiment(
        AGREEMENT,
        "hdparm -t itself, and the job that emulates it elsewhere",
        _spec(options, set_up, device, choices, both, blocks=agreement.blocks.under(options)),
    )


def _busy_wait(options: StudyOptions, set_up: FourSchedulersSetUp) -> Iterator[NamedExperiment]:
    wait = set_up.busy_wait
    reads = [buffered_reads(options, set_up.tests, wait.area)]
    stock = parse_scheduler_choices(["kyber", "none"])
    for size in _sizes(options, wait):
        queue = {"max_sectors_kb": str(size)}
        if options.backend == "uml":
            patched = parse_scheduler_choices([wait.patched, wait.control, wait.stock])
            yield NamedExperiment(
                waiting_name(size),
                f"kyber that waits {wait.wait} in every dispatch, commands of at most {size} KiB",
                _spec(options, set_up, wait.device, patched, reads, blocks=1, queue=queue),
                # It alone needs a kernel with a patch.
                dispensable=True,
            )
            continue
        yield NamedExperiment(
            stock_name(size),
            f"stock kyber and none, commands of at most {size} KiB",
            _spec(options, set_up, wait.device, stock, reads, blocks=1, queue=queue),
        )
        yield NamedExperiment(
            waiting_name(size),
            f"A disk that takes {wait.wait} for each command of at most {size} KiB",
            _spec(options, set_up, wait.stand_in, stock, reads, blocks=1, queue=queue),
        )


def _sizes(options: StudyOptions, wait: BusyWait) -> list[int]:
    """Command sizes; a quick run in a guest kernel has only those that statements need."""
    if options.backend == "uml" and options.quick:
        return sorted({*wait.between_kb, wait.usual_max_sectors_kb})
    return wait.max_sectors_kb


def _tunables(options: StudyOptions, set_up: FourSchedulersSetUp) -> Iterator[NamedExperiment]:
    """Every combination of the tunables on the simulator; one change at a time where runs cost time."""
    busy, device = set_up.busy_disk, set_up.machines[0].device
    tunables = set_up.tunables.under(options)
    queue = {"nr_requests": busy.nr_requests}
    each = [tunables.before, *tunables.choices.values()]
    crosses = options.backend == "sim"
    crossed, alone = ("crossed", []) if crosses else ("one at a time", each)
    sweep = tunables.sweep if crosses else None
    tests = timing_tests(options, set_up.tests)
    yield NamedExperiment(
        TUNABLES_PRINTED,
        "mq-deadline's tunables, one after another, one run each",
        _spec(options, set_up, device, each, tests, blocks=1, as_printed=True, queue=queue),
    )
    reads = buffered_reads(options, set_up.tests, tunables.area if crosses else None)
    blocks = set_up.runs.blocks.under(options)
    yield NamedExperiment(
        TUNABLES_REPEATED,
        f"The same, {crossed}, in randomised blocks",
        _spec(options, set_up, device, alone, [reads], blocks=blocks, queue=queue, sweep=sweep),
    )
    choices = [*alone, *tunables.variants.values()]
    load, blocks = busy_disk(options, busy), busy.blocks.under(options)
    yield NamedExperiment(
        TUNABLES_BUSY,
        f"The tunables on a busy disk, {crossed}",
        _spec(options, set_up, busy.device, choices, [load], blocks=blocks, queue=queue, sweep=sweep),
    )


def _spec(
    options: StudyOptions,
    set_up: FourSchedulersSetUp,
    device: str,
    choices: Sequence[SchedulerChoice],
    workloads: Sequence[Workload],
    *,
    blocks: int,
    as_printed: bool = False,
    queue: Mapping[str, str] | None = None,
    sweep: TunableSweep | None = None,
) -> ExperimentSpec:
    """One experiment on a modelled device; on the host always on a loop device over a file."""
    target = f"{options.backend}:{device}"
    if options.backend == "host":
        target = f"loop:{set_up.tests.host_scratch},dir={options.directory}"
    return study_spec(
        options,
        target,
        choices,
        workloads,
        blocks=blocks,
        as_printed=as_printed,
        queue={**set_up.queue, **(queue or {})},
        sweep=sweep,
    )
