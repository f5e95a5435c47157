"""What the runs say: both machines, what a wait in every dispatch costs, mq-deadline's tunables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from blklab.experiment import ExperimentRecord
from blklab.studies.hdparm.four_schedulers.experiments import (
    BUSY_DISK,
    PARTIES,
    TUNABLES_BUSY,
    TUNABLES_REPEATED,
    printed_name,
    repeated_name,
    stock_name,
    waiting_name,
)
from blklab.studies.hdparm.four_schedulers.set_up import TUNED_SCHEDULER, BusyWait, SetUp
from blklab.studies.hdparm.timing_tests import (
    BUFFERED,
    CACHED,
    TESTS,
    UNIT,
    arithmetic_mean,
    extreme_ratio,
    mebibyte_rates,
    paired_ratios,
    rates_of,
    read_bytes,
    requests_of,
    runtime_s,
)
from blklab.studies.protocol import Asked
from blklab.studies.published import Published
from blklab.studies.result import Figure, Quantity, Statement, StudyResult
from blklab.studies.statements import equal, greater, mean_of, within

_UNKNOWN_HARDWARE = "the speed of hardware that is not known; ratios stand below"

_WHY_EQUAL = {
    CACHED: "the page cache answers: no scheduler is asked",
    BUFFERED: "one reader has few requests under way, all in order: there is nothing to reorder",
}


def read(asked: Asked, published: Published, records: Mapping[str, ExperimentRecord]) -> StudyResult:
    """What the records say, beside what was published."""
    set_up = published.set_up(SetUp)
    figures: list[Figure] = []
    statements: list[Statement] = []
    for part in (_machines(published, set_up, records), _busy_wait(asked, published, set_up, records)):
        for found in part:
            (figures if isinstance(found, Figure) else statements).append(found)  # type: ignore[arg-type]
    statements.extend(_tunables(set_up, records))
    figures.extend(_busy_disk(set_up, records))
    return StudyResult(figures, statements, [])


def _machines(
    published: Published, set_up: SetUp, records: Mapping[str, ExperimentRecord]
) -> Iterator[Figure | Statement]:
    for machine in set_up.machines:
        if printed_name(machine.name) not in records:
            continue
        for test, printed_test in TESTS.items():
            rates = {
                label: arithmetic_mean(rates_of(records[printed_name(machine.name)], test, label))
                for label in set_up.schedulers
            }
            means = {
                label: arithmetic_mean(
                    published.figures(
                        "hdparm_runs.csv",
                        "throughput_MBps",
                        machine=machine.published,
                        test=printed_test,
                        scheduler=label,
                    )
                )
                for label in set_up.schedulers
            }
            for label in set_up.schedulers[1:]:
                yield Figure(
                    f"{label} over {set_up.schedulers[0]}",
                    f"{machine.title}: {printed_test}",
                    "",
                    Quantity(means[label] / means[set_up.schedulers[0]]),
                    Quantity(rates[label] / rates[set_up.schedulers[0]]),
                )
            repeated = mebibyte_rates(records[repeated_name(machine.name)], test)
            pair, ratio = extreme_ratio(repeated)
            yield equal(
                f"{machine.name}-{test}-equal",
                f"{machine.title}: in {printed_test} no two schedulers differ by 2 % ({pair})",
                ratio,
                why=_WHY_EQUAL[test],
            )
            best = max(means, key=means.__getitem__)
            values = mebibyte_rates(records[repeated_name(machine.name)], test)
            second = max(
                (label for label in values if label != best),
                key=lambda label: mean_of(list(values[label].values())).value,
            )
            yield greater(
                f"{machine.name}-{test}-fastest",
                f"{machine.title}: {best} is fastest in {printed_test}",
                mean_of(paired_ratios(values, best, second)),
                why=f"against {second}",
            )


def _busy_wait(
    asked: Asked, published: Published, set_up: SetUp, records: Mapping[str, ExperimentRecord]
) -> Iterator[Figure | Statement]:
    wait = set_up.busy_wait
    printed = published.figures(
        "patched_kyber.csv", "throughput_MBps", scheduler="kyber", test="buffered disk reads"
    )
    table = f"kyber that waits {wait.wait} in every dispatch"
    if asked.place == "host":
        for number, rate in enumerate(printed, start=1):
            yield Figure(
                f"run {number}", table, UNIT, Quantity(rate), None, "this machine's kernel is not exchanged"
            )
        return
    sizes = [size for size in wait.max_sectors_kb if waiting_name(size) in records]
    measured = {size: _waiting(records, wait, asked, size) for size in sizes}
    for size, (rate, _, _) in measured.items():
        yield Figure(
            f"commands of at most {size} KiB",
            table,
            UNIT,
            Quantity(printed[0]) if size == wait.usual_max_sectors_kb else None,
            Quantity(rate),
        )
    kept = [rate / implied for rate, implied, _ in measured.values()]
    yield within(
        "rate-from-dispatches",
        f"The rate is bytes read a dispatch over {wait.wait}, within 10 %, at every command size",
        Quantity(arithmetic_mean(kept), min(kept), max(kept)),
        0.9,
        1.1,
        why="a disk gets no more requests than kyber dispatches",
    )
    small, large = (measured[size][0] for size in wait.between_kb)
    yield within(
        "published-rate-between",
        f"Published rates lie between ours at {wait.between_kb[0]} and {wait.between_kb[1]} KiB a command",
        Quantity(arithmetic_mean(printed), min(printed), max(printed)),
        small,
        large,
        unit=UNIT,
        why="the size of the study's commands is not printed",
    )
    falls = mean_of([control / rate for rate, _, control in measured.values()])
    yield greater(
        "patched-kyber-slower",
        "The patched kyber is slower than none in buffered reads",
        Quantity(min(control / rate for rate, _, control in measured.values())),
        why=f"{falls.value:.0f} times on average over command sizes",
    )
    control_printed = published.figures(
        "patched_kyber.csv", "throughput_MBps", scheduler="none", test="buffered disk reads"
    )[0]
    yield Figure("none", table, UNIT, Quantity(control_printed), None, _UNKNOWN_HARDWARE)


def _waiting(
    records: Mapping[str, ExperimentRecord], wait: BusyWait, asked: Asked, size: int
) -> tuple[float, float, float]:
    """MiB/s of the kyber that waits, what its dispatches imply, and none's."""
    record = records[waiting_name(size)]
    label = wait.patched if asked.place == "uml" else "kyber"
    sample = record.successes(label, BUFFERED)[0]
    dispatches = requests_of(sample) or 0
    mebibytes = read_bytes(sample) / 2**20
    control = (
        rates_of(record, BUFFERED, wait.control)
        if asked.place == "uml"
        else rates_of(records[stock_name(size)], BUFFERED, "none")
    )
    return mebibytes / runtime_s(sample), mebibytes / (dispatches * wait.wait_s), control[0]


def _tunables(set_up: SetUp, records: Mapping[str, ExperimentRecord]) -> Iterator[Statement]:
    values = mebibyte_rates(records[TUNABLES_REPEATED], BUFFERED)
    for name, choice in set_up.tunables.choices.items():
        yield equal(
            f"{name}-without-effect",
            f"{name} at {set_up.tunables.values[name]} changes nothing in buffered reads",
            mean_of(paired_ratios(values, choice.label, TUNED_SCHEDULER)),
            why="one reader leaves nothing to choose from",
        )


def _busy_disk(set_up: SetUp, records: Mapping[str, ExperimentRecord]) -> Iterator[Figure]:
    samples = records[TUNABLES_BUSY].successes(workload=BUSY_DISK)
    for party in PARTIES:
        counts: dict[str, dict[int, float]] = {}
        for sample in samples:
            moved = sum(
                entry.ios for job in sample.jobs if job.name == party for entry in job.data_directions()
            )
            counts.setdefault(sample.cell.scheduler, {})[sample.cell.block] = float(moved)
        for name, choice in set_up.tunables.choices.items():
            ratios = paired_ratios(counts, choice.label, TUNED_SCHEDULER)
            yield Figure(
                f"{name} = {set_up.tunables.values[name]}",
                f"A busy disk: I/Os of the {party} over those with mq-deadline's defaults",
                "",
                None,
                mean_of(ratios) if ratios else None,
                "" if ratios else "no I/O ended",
            )
