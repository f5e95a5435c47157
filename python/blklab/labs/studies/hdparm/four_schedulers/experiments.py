"""The experiments: both machines as printed and in randomised blocks, the waiting kyber, the tunables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blklab.labs.studies.hdparm.four_schedulers.set_up import BusyWait, FourSchedulersSetUp, Tunables
from blklab.labs.studies.hdparm.jobs import buffered_reads, busy_disk, timing_tests
from blklab.labs.studies.hdparm.specs import ExperimentBuilder
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.protocol import NamedExperiment
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.spec.schedulers import SchedulerChoice, parse_scheduler_choices
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
    builder = ExperimentBuilder(options, set_up.tests, set_up.queue)
    between = [_agreement(builder, set_up)] if options.backend == "host" else _busy_wait(builder, set_up)
    return [*_machines(builder, set_up), *between, *_tunables(builder, set_up)]


def _machines(builder: ExperimentBuilder, set_up: FourSchedulersSetUp) -> Iterator[NamedExperiment]:
    options, runs = builder.options, set_up.runs
    workloads = timing_tests(options, set_up.tests)
    choices = parse_scheduler_choices(set_up.schedulers)
    for machine in set_up.machines_at(options):
        target = builder.target(machine.device)
        yield NamedExperiment(
            printed_name(machine.name),
            f"hdparm -tT on {machine.title}, as its author ran it: one scheduler after another",
            builder.spec(target, workloads, choices, blocks=runs.as_printed.under(options), printed=True),
        )
        yield NamedExperiment(
            repeated_name(machine.name),
            f"The same on {machine.title} in randomised blocks",
            builder.spec(target, workloads, choices, blocks=runs.blocks.under(options)),
        )


def _agreement(builder: ExperimentBuilder, set_up: FourSchedulersSetUp) -> NamedExperiment:
    options, agreement = builder.options, set_up.agreement
    both = [buffered_reads(options, set_up.tests, as_job=as_job) for as_job in (False, True)]
    target = builder.target(set_up.machines[0].device)
    choices = parse_scheduler_choices(agreement.schedulers)
    return NamedExperiment(
        AGREEMENT,
        "hdparm -t itself, and the job that emulates it elsewhere",
        builder.spec(target, both, choices, blocks=agreement.blocks.under(options)),
    )


def _busy_wait(builder: ExperimentBuilder, set_up: FourSchedulersSetUp) -> Iterator[NamedExperiment]:
    wait, options = set_up.busy_wait, builder.options
    reads = [buffered_reads(options, set_up.tests, wait.area)]
    stock, waiting = parse_scheduler_choices(["kyber", "none"]), wait.stand_in
    for size in _sizes(options, wait):
        queue = {"max_sectors_kb": str(size)}
        device = builder.target(wait.device)
        if options.backend == "uml":
            patched = parse_scheduler_choices([wait.patched, wait.control, wait.stock])
            yield NamedExperiment(
                waiting_name(size),
                f"kyber that waits {wait.wait} in every dispatch, commands of at most {size} KiB",
                builder.spec(device, reads, patched, blocks=1, queue=queue),
                # It alone needs a kernel with a patch.
                dispensable=True,
            )
            continue
        yield NamedExperiment(
            stock_name(size),
            f"stock kyber and none, commands of at most {size} KiB",
            builder.spec(device, reads, stock, blocks=1, queue=queue),
        )
        yield NamedExperiment(
            waiting_name(size),
            f"A disk that takes {wait.wait} for each command of at most {size} KiB",
            builder.spec(builder.target(waiting), reads, stock, blocks=1, queue=queue),
        )


def _sizes(options: StudyOptions, wait: BusyWait) -> list[int]:
    """Command sizes; a quick run in a guest kernel has only those that statements need."""
    if options.backend == "uml" and options.quick:
        return sorted({*wait.between_kb, wait.usual_max_sectors_kb})
    return wait.max_sectors_kb


def _tunables(builder: ExperimentBuilder, set_up: FourSchedulersSetUp) -> Iterator[NamedExperiment]:
    options, busy = builder.options, set_up.busy_disk
    tunables = set_up.tunables.under(options)
    queue = {"nr_requests": busy.nr_requests}
    target = builder.target(set_up.machines[0].device)
    yield NamedExperiment(
        TUNABLES_PRINTED,
        "mq-deadline's tunables, one after another, one run each",
        builder.spec(
            target,
            timing_tests(options, set_up.tests),
            [tunables.before, *tunables.choices.values()],
            blocks=1,
            printed=True,
            queue=queue,
        ),
    )
    crossed = "crossed" if options.backend == "sim" else "one at a time"
    yield _changed(
        builder,
        TUNABLES_REPEATED,
        f"The same, {crossed}, in randomised blocks",
        target,
        buffered_reads(options, set_up.tests, tunables.area if options.backend == "sim" else None),
        tunables,
        [],
        blocks=set_up.runs.blocks.under(options),
        queue=queue,
    )
    yield _changed(
        builder,
        TUNABLES_BUSY,
        f"The tunables on a busy disk, {crossed}",
        builder.target(busy.device),
        busy_disk(options, busy),
        tunables,
        [*tunables.variants.values()],
        blocks=busy.blocks.under(options),
        queue=queue,
    )


def _changed(
    builder: ExperimentBuilder,
    name: str,
    title: str,
    target: str,
    workload: Workload,
    tunables: Tunables,
    variants: Sequence[SchedulerChoice],
    *,
    blocks: int,
    queue: dict[str, str],
) -> NamedExperiment:
    """Every combination of the tunables on the simulator; one change at a time where runs cost time."""
    choices = [tunables.before, *tunables.choices.values()] if builder.options.backend != "sim" else []
    sweep = tunables.sweep if builder.options.backend == "sim" else None
    schedulers = [*choices, *variants]
    spec = builder.spec(target, [workload], schedulers, blocks=blocks, queue=queue, sweep=sweep)
    return NamedExperiment(name, title, spec)
