"""Reads the records: published order, randomised blocks, tuning in pairs, and the effect of the order."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from blklab.labs.studies.hdparm.fifteen.claims import claim_statements, tuning_statements
from blklab.labs.studies.hdparm.fifteen.experiments import BUSY_DISK, PRINTED, RANDOMISED
from blklab.labs.studies.hdparm.fifteen.session_replay import replay_in_blocks, session_values
from blklab.labs.studies.hdparm.fifteen.set_up import BFQ, TUNED, FifteenSetUp, published_rates
from blklab.labs.studies.hdparm.findings import interval_row, matters
from blklab.labs.studies.hdparm.jobs import BUSY_JOBS, TESTS
from blklab.labs.studies.hdparm.timing_tests import (
    arithmetic_mean,
    job_ios,
    mebibyte_rates,
    paired_ratios,
    rates_of,
    unpaired_ratio,
)
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.pictures import IntervalPicture, LinePicture, LineSeries, Picture
from blklab.labs.studies.replication.result import ComparedValue, Estimate, Statement, StudyResult
from blklab.labs.studies.replication.statements import estimate_text, mean_of
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.records.experiment import ExperimentRecord

ORDER_TABLE = "The document's own speeds in its order and in randomised blocks"
BUSY_TABLE = "A busy disk: I/Os under the tuned bfq relative to the default bfq"
TUNING_TABLE = "The tuned bfq relative to the default bfq"

RatesByLabel = Mapping[str, Sequence[float]]


def read(options: StudyOptions, folder: StudyFolder, records: Mapping[str, ExperimentRecord]) -> StudyResult:
    """Compares the records with the published values."""
    set_up = folder.set_up(FifteenSetUp)
    theirs = {test: published_rates(folder, set_up, test) for test in TESTS}
    ours = {
        test: {label: rates_of(records[PRINTED], test, label) for label in set_up.labels} for test in TESTS
    }
    randomised = records[RANDOMISED]
    tuning = [
        ComparedValue(
            printed,
            TUNING_TABLE,
            "",
            unpaired_ratio(theirs[test][TUNED], theirs[test][BFQ]),
            mean_of(paired_ratios(mebibyte_rates(randomised, test), TUNED, BFQ)),
        )
        for test, printed in TESTS.items()
    ]
    order = [_in_either_order(test, theirs[test], randomised) for test in TESTS]
    busy = list(_busy_disk(records[BUSY_DISK]))
    statements = [
        *claim_statements(randomised),
        *tuning_statements(randomised),
        _order_statement(order),
        matters(
            "tuning-matters",
            "On a busy disk the same settings do matter: they change the I/O of at least one job",
            {one.name: one.ours for one in busy},
            why="bfq idles up to 20 instead of 8 ms for a process's next read, and serves a process for "
            "up to 160 instead of 125 ms",
        ),
    ]
    values = [value for test in TESTS for value in _test_values(test, theirs[test], ours[test])]
    return StudyResult(
        [*values, *tuning, *order, *busy],
        statements,
        [
            *(_session_picture(test, theirs[test], ours[test]) for test in TESTS),
            *_ratio_pictures(tuning, busy),
        ],
        _remarks(options),
    )


def _test_values(test: str, theirs: RatesByLabel, ours: RatesByLabel) -> Iterator[ComparedValue]:
    """Means and deviations as in the document's tables, relative to its hardware's speed."""
    first, *others = theirs
    for label in others:
        yield ComparedValue(
            f"{label} over {first}",
            f"{TESTS[test].capitalize()}, in the published order: means",
            "",
            Estimate(arithmetic_mean(theirs[label]) / arithmetic_mean(theirs[first])),
            Estimate(arithmetic_mean(ours[label]) / arithmetic_mean(ours[first])),
        )
    for label in theirs:
        yield ComparedValue(
            label,
            f"{TESTS[test].capitalize()}, in the published order: standard deviation over the mean",
            "%",
            Estimate(_deviation_percent(theirs[label])),
            Estimate(_deviation_percent(ours[label])),
        )


def _deviation_percent(runs: Sequence[float]) -> float:
    """Deviation in percent of the mean, rounded to 0.01 % so that rounding errors of equal values vanish."""
    return round(100 * statistics.stdev(runs) / statistics.fmean(runs), 2)


def _in_either_order(test: str, theirs: RatesByLabel, randomised: ExperimentRecord) -> ComparedValue:
    """The fastest over the slowest as printed, and with the same session replayed in randomised blocks."""
    means = {label: arithmetic_mean(runs) for label, runs in theirs.items()}
    best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    found = replay_in_blocks(session_values(theirs), randomised.spec, test)
    return ComparedValue(
        f"{TESTS[test]}: {best} over {worst}",
        ORDER_TABLE,
        "",
        unpaired_ratio(theirs[best], theirs[worst]),
        mean_of(paired_ratios(found, best, worst)),
    )


def _order_statement(order: Sequence[ComparedValue]) -> Statement:
    """States that the replayed session shows no difference between fastest and slowest."""
    inside = [
        one.ours is not None and (one.ours.low or 0.0) <= 1.0 <= (one.ours.high or math.inf) for one in order
    ]
    return Statement(
        "order-made-the-order",
        "Replayed in randomised blocks, as the drift of a machine on which no scheduler matters, the "
        "document's "
        "own speeds leave no difference between the schedulers that it found furthest apart",
        "ours",
        "holds" if all(inside) else "fails",
        "; ".join(f"{one.name} {estimate_text(one.ours)}" for one in order if one.ours is not None),
        "runs of a scheduler in one stretch share whatever the machine does during it: five cached reads in "
        "a "
        "row were slow under bfq, and randomised blocks spread such a slow spell over all schedulers",
    )


def _busy_disk(record: ExperimentRecord) -> Iterator[ComparedValue]:
    for job in BUSY_JOBS:
        ratios = paired_ratios(job_ios(record, job), TUNED, BFQ)
        yield ComparedValue(
            job, BUSY_TABLE, "", None, mean_of(ratios) if ratios else None, "" if ratios else "no I/O ended"
        )


def _session_picture(test: str, theirs: RatesByLabel, ours: RatesByLabel) -> LinePicture:
    """Both sessions run by run, relative to the mean of each."""
    series = []
    for origin, runs, dashed in (("published", theirs, False), ("ours", ours, True)):
        mean, begun = arithmetic_mean(session_values(runs)), 0
        pieces = runs.items() if origin == "published" else [(origin, session_values(runs))]
        for label, values in pieces:
            numbers = tuple(float(begun + index + 1) for index in range(len(values)))
            series.append(LineSeries(label, numbers, tuple(value / mean for value in values), dashed=dashed))
            begun += len(values)
    return LinePicture(
        f"{test}-session",
        f"{TESTS[test].capitalize()}, run by run in the published order",
        "Each scheduler ran in one stretch of the session and so absorbed whatever the machine did during "
        "it.",
        "run of the session",
        "relative to the mean of the session",
        tuple(series),
        counts=True,
    )


def _ratio_pictures(tuning: Sequence[ComparedValue], busy: Sequence[ComparedValue]) -> list[Picture]:
    rows = []
    for one in tuning:
        for origin, quantity in (("published", one.published), ("ours", one.ours)):
            if quantity is not None:
                theirs = origin == "published"
                rows.append(interval_row(f"{one.name}, {origin}", quantity, published=theirs))
    rows += [interval_row(f"busy disk, {one.name}", one.ours) for one in busy if one.ours is not None]
    return [
        IntervalPicture(
            "tuning",
            "The tuned bfq relative to the default bfq",
            "Tuning changes nothing in hdparm's two tests (ours in pairs); on a busy disk it does.",
            "times",
            tuple(rows),
            marks=((1.0, "no effect"),),
        )
    ]


def _remarks(options: StudyOptions) -> list[str]:
    remarks = [
        "The document measured the tuned bfq last; so does our run in the published order.",
        ("hdparm -T counts its bytes twice (BUFCACHE_FACTOR in hdparm.c), so we compare ratios, not speeds."),
    ]
    if options.backend == "sim":
        remarks.append(
            "By construction the modelled disk has the mean speed and the scatter of the published buffered "
            "reads, and its page cache has no scatter. All runs of a block have the same stalls, so only the "
            "scheduler could make them differ."
        )
    if options.backend == "uml":
        remarks.append(
            "A guest's clock is exact and its runs are short: the disk does not stall, and a few runs show "
            "as "
            "much as fifteen."
        )
    return remarks
