"""The experiments: both machines as printed and in randomised blocks, the kyber that waits, the tunables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from blklab.scheduler_choice import SchedulerChoice, parse_scheduler_choice, parse_scheduler_choices
from blklab.spec import ExperimentSpec
from blklab.studies.hdparm.four_schedulers.set_up import TUNED_SCHEDULER, BusyWait, SetUp
from blklab.studies.protocol import Asked, NamedExperiment
from blklab.studies.published import Published
from blklab.workloads import Workload

TUNABLES_PRINTED = "tunables-as-printed"
TUNABLES_REPEATED = "tunables-repeated"
TUNABLES_BUSY = "tunables-busy-disk"
BUSY_DISK = "busy-disk"
PARTIES = ("readers", "writers", "idle")
"""Of the busy disk."""


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
    return [
        *_machines(asked, published, set_up),
        *_busy_wait(asked, published, set_up),
        *_tunables(asked, published, set_up),
    ]


def _machines(asked: Asked, published: Published, set_up: SetUp) -> Iterator[NamedExperiment]:
    workloads = set_up.tests.workloads(asked, published)
    choices = parse_scheduler_choices(set_up.schedulers)
    for machine in set_up.machines[: 1 if asked.place == "host" else None]:
        place = "this machine" if asked.place == "host" else machine.title
        target = _target(asked, set_up, machine.device)
        runs = set_up.runs
        yield NamedExperiment(
            printed_name(machine.name),
            f"hdparm -tT on {place}, as its author ran it: one scheduler after another",
            _spec(asked, set_up, target, workloads, choices, blocks=runs.as_printed, printed=True),
        )
        yield NamedExperiment(
            repeated_name(machine.name),
            f"The same on {place} in randomised blocks",
            _spec(asked, set_up, target, workloads, choices, blocks=runs.repeated(asked)),
        )


def _busy_wait(asked: Asked, published: Published, set_up: SetUp) -> Iterator[NamedExperiment]:
    wait = set_up.busy_wait
    if asked.place == "host":
        return
    for size in _sizes(asked, wait):
        queue = {"max_sectors_kb": str(size)}
        workload = set_up.tests.buffered(asked, published, wait.area)
        device = f"{asked.place}:{wait.device}"
        if asked.place == "uml":
            yield NamedExperiment(
                waiting_name(size),
                f"kyber that waits {wait.wait} in every dispatch, commands of at most {size} KiB",
                _spec(
                    asked,
                    set_up,
                    device,
                    [workload],
                    parse_scheduler_choices([wait.patched, wait.control, wait.stock]),
                    blocks=1,
                    queue=queue,
                ),
            )
            continue
        yield NamedExperiment(
            stock_name(size),
            f"kyber and none as they are, commands of at most {size} KiB",
            _spec(
                asked,
                set_up,
                device,
                [workload],
                parse_scheduler_choices(["kyber", "none"]),
                blocks=1,
                queue=queue,
            ),
        )
        yield NamedExperiment(
            waiting_name(size),
            f"A disk that takes {wait.wait} for each command of at most {size} KiB",
            _spec(
                asked,
                set_up,
                f"sim:{wait.stand_in}",
                [workload],
                parse_scheduler_choices(["kyber", "none"]),
                blocks=1,
                queue=queue,
            ),
        )


def _sizes(asked: Asked, wait: BusyWait) -> list[int]:
    """Command sizes; in a guest kernel and quickly, those only that statements need."""
    if asked.place == "uml" and asked.quick:
        return sorted({*wait.between_kb, wait.usual_max_sectors_kb})
    return wait.max_sectors_kb


def _tunables(asked: Asked, published: Published, set_up: SetUp) -> Iterator[NamedExperiment]:
    tunables = set_up.tunables
    choices = [parse_scheduler_choice(TUNED_SCHEDULER), *tunables.choices.values()]
    queue = {"nr_requests": tunables.nr_requests}
    target = _target(asked, set_up, set_up.machines[0].device)
    repeats = tunables.quick_repeats if asked.quick else tunables.repeats
    yield NamedExperiment(
        TUNABLES_PRINTED,
        "mq-deadline's tunables, one after another, one run each",
        _spec(
            asked,
            set_up,
            target,
            set_up.tests.workloads(asked, published),
            choices,
            blocks=1,
            printed=True,
            queue=queue,
        ),
    )
    yield NamedExperiment(
        TUNABLES_REPEATED,
        "The same in randomised blocks",
        _spec(
            asked,
            set_up,
            target,
            [set_up.tests.buffered(asked, published)],
            choices,
            blocks=repeats,
            queue=queue,
        ),
    )
    yield NamedExperiment(
        TUNABLES_BUSY,
        "The same tunables on a busy disk",
        _spec(
            asked,
            set_up,
            _target(asked, set_up, tunables.busy_device),
            [_busy_disk(asked, published, set_up, "readers, writers, idle", "iops", BUSY_DISK)],
            choices,
            blocks=repeats,
            queue=queue,
        ),
    )


def _busy_disk(
    asked: Asked, published: Published, set_up: SetUp, focus: str, metric: str, name: str
) -> Workload:
    tunables = set_up.tunables
    on_host = asked.place == "host"
    return published.workload(
        "busy-disk.fio",
        name=name,
        focus=focus,
        metric=metric,
        area=tunables.host_busy_area if on_host else tunables.busy_area,
        runtime=tunables.host_busy_runtime if on_host else tunables.busy_runtime,
    )


def _target(asked: Asked, set_up: SetUp, device: str) -> str:
    if asked.place == "host":
        return f"loop:{set_up.tests.host_scratch},dir={asked.directory}"
    return f"{asked.place}:{device}"


def _spec(
    asked: Asked,
    set_up: SetUp,
    target: str,
    workloads: list[Workload],
    choices: list[SchedulerChoice],
    *,
    blocks: int,
    printed: bool = False,
    queue: Mapping[str, str] | None = None,
) -> ExperimentSpec:
    """One experiment.

    Args:
        asked: What the person asked.
        set_up: The set-up.
        target: What to test.
        workloads: What to run.
        choices: Schedulers.
        blocks: How often.
        printed: Whether all runs of a scheduler come after one another.
        queue: Attributes other than the set-up's.
    """
    return ExperimentSpec(
        target=target,
        schedulers=choices,
        workloads=workloads,
        blocks=blocks,
        seed=asked.seed,
        queue={**set_up.queue, **(queue or {})},
        order="by-scheduler" if printed else "randomised",
    )
