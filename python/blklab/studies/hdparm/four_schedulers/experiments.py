"""The experiments: both machines as printed and in randomised blocks, the kyber that waits, the tunables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blklab.spec.schedulers import SchedulerChoice, parse_scheduler_choices
from blklab.spec.workloads import Workload
from blklab.studies.hdparm.four_schedulers.set_up import BusyWait, SetUp, Tunables
from blklab.studies.hdparm.jobs import buffered_reads, busy_disk, timing_tests
from blklab.studies.hdparm.specs import Bench
from blklab.studies.replication.protocol import Asked, NamedExperiment
from blklab.studies.replication.study_folder import Published

AGREEMENT = "hdparm-and-job"
TUNABLES_PRINTED = "tunables-as-printed"
TUNABLES_REPEATED = "tunables-repeated"
TUNABLES_BUSY = "tunables-busy-disk"


def printed_name(machine: str) -> str:
    """Name of a machine's experiment as its authors made it."""
    return f"{machine}-as-printed"


def repeated_name(machine: str) -> str:
    """Name of a machine's experiment in randomised blocks."""
    return f"{machine}-repeated"


def stock_name(max_sectors_kb: int) -> str:
    """Name of the experiment with kyber as it is and commands of at most that size."""
    return f"stock-{max_sectors_kb}k"


def waiting_name(max_sectors_kb: int) -> str:
    """Name of the experiment with the kyber that waits and commands of at most that size."""
    return f"busy-wait-{max_sectors_kb}k"


def experiments(asked: Asked, published: Published) -> Sequence[NamedExperiment]:
    """What to run, in order."""
    set_up = published.set_up(SetUp)
    bench = Bench(asked, set_up.tests, set_up.queue)
    between = [_agreement(bench, set_up)] if asked.place == "host" else _busy_wait(bench, set_up)
    return [*_machines(bench, set_up), *between, *_tunables(bench, set_up)]


def _machines(bench: Bench, set_up: SetUp) -> Iterator[NamedExperiment]:
    asked, runs = bench.asked, set_up.runs
    workloads = timing_tests(asked, set_up.tests)
    choices = parse_scheduler_choices(set_up.schedulers)
    for machine in set_up.machines_at(asked):
        target = bench.target(machine.device)
        yield NamedExperiment(
            printed_name(machine.name),
            f"hdparm -tT on {machine.title}, as its author ran it: one scheduler after another",
            bench.spec(target, workloads, choices, blocks=runs.printed(asked), printed=True),
        )
        yield NamedExperiment(
            repeated_name(machine.name),
            f"The same on {machine.title} in randomised blocks",
            bench.spec(target, workloads, choices, blocks=runs.repeated(asked)),
        )


def _agreement(bench: Bench, set_up: SetUp) -> NamedExperiment:
    asked, agreement = bench.asked, set_up.agreement
    both = [buffered_reads(asked, set_up.tests, as_job=as_job) for as_job in (False, True)]
    target = bench.target(set_up.machines[0].device)
    choices = parse_scheduler_choices(agreement.schedulers)
    return NamedExperiment(
        AGREEMENT,
        "hdparm -t itself, and the job that stands for it elsewhere",
        bench.spec(target, both, choices, blocks=agreement.repeated(asked)),
    )


def _busy_wait(bench: Bench, set_up: SetUp) -> Iterator[NamedExperiment]:
    wait, asked = set_up.busy_wait, bench.asked
    reads = [buffered_reads(asked, set_up.tests, wait.area)]
    stock, waiting = parse_scheduler_choices(["kyber", "none"]), wait.stand_in
    for size in _sizes(asked, wait):
        queue = {"max_sectors_kb": str(size)}
        device = bench.target(wait.device)
        if asked.place == "uml":
            patched = parse_scheduler_choices([wait.patched, wait.control, wait.stock])
            yield NamedExperiment(
                waiting_name(size),
                f"kyber that waits {wait.wait} in every dispatch, commands of at most {size} KiB",
                bench.spec(device, reads, patched, blocks=1, queue=queue),
            )
            continue
        yield NamedExperiment(
            stock_name(size),
            f"kyber and none as they are, commands of at most {size} KiB",
            bench.spec(device, reads, stock, blocks=1, queue=queue),
        )
        yield NamedExperiment(
            waiting_name(size),
            f"A disk that takes {wait.wait} for each command of at most {size} KiB",
            bench.spec(bench.target(waiting), reads, stock, blocks=1, queue=queue),
        )


def _sizes(asked: Asked, wait: BusyWait) -> list[int]:
    """Command sizes; in a guest kernel and quickly, those only that statements need."""
    if asked.place == "uml" and asked.quick:
        return sorted({*wait.between_kb, wait.usual_max_sectors_kb})
    return wait.max_sectors_kb


def _tunables(bench: Bench, set_up: SetUp) -> Iterator[NamedExperiment]:
    asked, busy = bench.asked, set_up.busy_disk
    tunables = set_up.tunables.at(asked)
    queue = {"nr_requests": busy.nr_requests}
    target = bench.target(set_up.machines[0].device)
    yield NamedExperiment(
        TUNABLES_PRINTED,
        "mq-deadline's tunables, one after another, one run each",
        bench.spec(
            target,
            timing_tests(asked, set_up.tests),
            [tunables.before, *tunables.choices.values()],
            blocks=1,
            printed=True,
            queue=queue,
        ),
    )
    crossed = "crossed" if asked.place == "sim" else "one at a time"
    yield _changed(
        bench,
        TUNABLES_REPEATED,
        f"The same, {crossed}, in randomised blocks",
        target,
        buffered_reads(asked, set_up.tests, tunables.area if asked.place == "sim" else None),
        tunables,
        [],
        blocks=set_up.runs.repeated(asked),
        queue=queue,
    )
    yield _changed(
        bench,
        TUNABLES_BUSY,
        f"The tunables on a busy disk, {crossed}",
        bench.target(busy.device),
        busy_disk(asked, busy),
        tunables,
        [*tunables.beside.values()],
        blocks=busy.repeated(asked),
        queue=queue,
    )


def _changed(
    bench: Bench,
    name: str,
    title: str,
    target: str,
    workload: Workload,
    tunables: Tunables,
    beside: Sequence[SchedulerChoice],
    *,
    blocks: int,
    queue: dict[str, str],
) -> NamedExperiment:
    """All combinations of the tunables on the simulator; elsewhere, where runs cost time, one at a time."""
    choices = [tunables.before, *tunables.choices.values()] if bench.asked.place != "sim" else []
    sweep = tunables.sweep if bench.asked.place == "sim" else None
    schedulers = [*choices, *beside]
    spec = bench.spec(target, [workload], schedulers, blocks=blocks, queue=queue, sweep=sweep)
    return NamedExperiment(name, title, spec)
