"""Reads the runs: schedulers compared, rates along record sizes, orders among the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blklab.labs.studies.iozone_raid10.contrast import contrast_statements
from blklab.labs.studies.iozone_raid10.experiments import DIRECT_TESTS, PRINTED, REPEATED, STDIO_TESTS
from blklab.labs.studies.iozone_raid10.orders import order_statements
from blklab.labs.studies.iozone_raid10.pictures import pictures_of, record_label
from blklab.labs.studies.iozone_raid10.rates import (
    Rates,
    mean_rates,
    measured_rates,
    overall_ratio,
    published_rates,
    test_ratio,
)
from blklab.labs.studies.iozone_raid10.set_up import IozoneSetUp
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.result import ComparedValue, IntervalEstimate, Statement, StudyResult
from blklab.labs.studies.replication.statements import equal, estimate_text, greater
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.quantities.formatting import rounded
from blklab.records.experiment import ExperimentRecord
from blklab.simulator.benchmark_emulation import IOZONE_TESTS
from blklab.spec.experiment import DEFAULT_MARGIN

ALL_TESTS = "all tests"


def read(options: StudyOptions, folder: StudyFolder, records: Mapping[str, ExperimentRecord]) -> StudyResult:
    """Compares the records with the published values."""
    set_up = folder.set_up(IozoneSetUp)
    ours, theirs = measured_rates(records[REPEATED]), published_rates(folder)
    once = measured_rates(records[PRINTED])
    counterparts = set_up.counterparts(options)
    records_kib = [
        size
        for size in set_up.iozone.records_kib.under(options)
        if all((one, "read", size) in ours for one in counterparts.values())
    ]
    printed_kib = sorted({size for _, _, size in theirs})
    statements = [
        *_scheduler_statements(ours, theirs, counterparts, records_kib, printed_kib),
        *order_statements(mean_rates(ours), mean_rates(theirs), records_kib, printed_kib),
        *contrast_statements(records),
    ]
    values = [
        *_scheduler_values(ours, theirs, counterparts, records_kib, printed_kib),
        *_growth_values(mean_rates(ours), mean_rates(theirs), records_kib),
        *_sequence_values(mean_rates(ours), mean_rates(theirs), records_kib),
    ]
    pictures = [
        *pictures_of("published", theirs, "deadline", "noop", printed_kib),
        *pictures_of("run once", once, counterparts["deadline"], counterparts["noop"], records_kib),
    ]
    return StudyResult(values, statements, pictures, _remarks(options, set_up, theirs))


def _scheduler_statements(
    ours: Rates,
    theirs: Rates,
    counterparts: Mapping[str, str],
    records_kib: Sequence[int],
    printed_kib: Sequence[int],
) -> list[Statement]:
    found = []
    for other in ("noop", "cfq"):
        ratio = overall_ratio(ours, counterparts["deadline"], counterparts[other], records_kib)
        printed = estimate_text(overall_ratio(theirs, "deadline", other, printed_kib))
        says = f"{_named('deadline', counterparts)} is faster than {_named(other, counterparts)}."
        why = f"by more than the {100 * DEFAULT_MARGIN:g} % margin; the published ratio is {printed}"
        found.append(greater(f"deadline-over-{other}", says, ratio, 1 + DEFAULT_MARGIN, why=why))
    why = "iozone has one I/O in flight at any time, so a scheduler has no choice to make"
    for one in ("deadline", "cfq"):
        ratio = overall_ratio(ours, counterparts[one], counterparts["noop"], records_kib)
        printed = estimate_text(overall_ratio(theirs, one, "noop", printed_kib))
        says = f"{_named(one, counterparts)} and {_named('noop', counterparts)} are equal within 2 %."
        found.append(equal(f"{one}-equals-noop", says, ratio, why=f"{why}; published: {printed}"))
    return found


def _scheduler_values(
    ours: Rates,
    theirs: Rates,
    counterparts: Mapping[str, str],
    records_kib: Sequence[int],
    printed_kib: Sequence[int],
) -> list[ComparedValue]:
    found = []
    for one in ("deadline", "cfq"):
        table = f"{_named(one, counterparts)} over {_named('noop', counterparts)}"
        pair = counterparts[one], counterparts["noop"]
        for test in IOZONE_TESTS:
            printed = IntervalEstimate(test_ratio(theirs, one, "noop", test, printed_kib))
            found.append(
                ComparedValue(
                    test, table, "", printed, IntervalEstimate(test_ratio(ours, *pair, test, records_kib))
                )
            )
        whole = overall_ratio(theirs, one, "noop", printed_kib)
        found.append(ComparedValue(ALL_TESTS, table, "", whole, overall_ratio(ours, *pair, records_kib)))
    return found


def _growth_values(
    ours: Mapping[tuple[str, int], float],
    theirs: Mapping[tuple[str, int], float],
    records_kib: Sequence[int],
) -> list[ComparedValue]:
    first, last = records_kib[0], records_kib[-1]
    table = f"Rate at {record_label(last)} over rate at {record_label(first)}"
    return [
        ComparedValue(
            test,
            table,
            "",
            IntervalEstimate(theirs[test, last] / theirs[test, first]),
            IntervalEstimate(ours[test, last] / ours[test, first]),
        )
        for test in IOZONE_TESTS
    ]


def _sequence_values(
    ours: Mapping[tuple[str, int], float],
    theirs: Mapping[tuple[str, int], float],
    records_kib: Sequence[int],
) -> list[ComparedValue]:
    return [
        ComparedValue(
            record_label(size),
            "Sequential over random reads",
            "",
            IntervalEstimate(theirs["read", size] / theirs["random-read", size]),
            IntervalEstimate(ours["read", size] / ours["random-read", size]),
        )
        for size in records_kib
    ]


def _named(published_name: str, counterparts: Mapping[str, str]) -> str:
    ours = counterparts[published_name]
    return ours if ours == published_name else f"{ours} (today's {published_name})"


def _remarks(options: StudyOptions, set_up: IozoneSetUp, theirs: Rates) -> list[str]:
    direct = max(rate for (_, test, _), rate in theirs.items() if test in DIRECT_TESTS)
    through_memory = min(rate for (_, test, _), rate in theirs.items() if test in STDIO_TESTS)
    remarks = [
        (
            "iozone's command is not given, but the published rates reveal it: the nine tests outside the C "
            f"library stay below {rounded(direct)} MB/s, even where they read the same data a second time, "
            f"and the other four lie above {rounded(through_memory)} MB/s. So the nine bypassed the page "
            "cache (`-I`), as they do here."
        ),
        (
            "Speeds depend on the disks. The model has other disks, so we compare ratios and orders with the "
            "published ones, not speeds."
        ),
        f"The file is {rounded(set_up.file_bytes(options) / 2**20)} MiB; the published one has 2048 MiB.",
    ]
    if options.backend == "sim":
        remarks.append(
            "The simulator has the array and the page cache but no btrfs: no checksums, no copy on write."
        )
    if options.backend == "uml":
        remarks.append(
            "btrfs chooses the copy to read by the process ID, so one reader uses two of the disks."
        )
    if options.backend == "host":
        remarks.append(
            "The array is the storage beneath the folder."
            if options.directory_named
            else "The array is btrfs over four loop devices; their files lie on one disk."
        )
    return remarks
