"""Reads the runs: the published conclusion, the distance from the slices, and the other levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blklab.labs.studies.ionice.distance import read_distance
from blklab.labs.studies.ionice.experiments import BLOCK_SIZES, REPEATED, WRITERS
from blklab.labs.studies.ionice.matrix import read_block_sizes, read_matrices
from blklab.labs.studies.ionice.set_up import IoniceSetUp, PublishedDisk, published_disk
from blklab.labs.studies.ionice.shares import ratios, seconds_of
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.pictures import (
    IntervalPicture,
    IntervalRow,
    LinePicture,
    LineSeries,
    Picture,
)
from blklab.labs.studies.replication.result import ComparedValue, IntervalEstimate, Statement, StudyResult
from blklab.labs.studies.replication.statements import equal, estimate_text, greater, mean_of, within
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.quantities.formatting import rounded
from blklab.records.experiment import ExperimentRecord

RATIO_TABLE = "Write speed of level 0 over level 7"
DD_TABLE = "dd's reports"
CFQ = "cfq"
PUBLISHED_LABEL = "published (cfq, 3.10)"
WITHOUT_LEVELS = ("mq-deadline", "deadline", "noop", "kyber", "anticipatory", "none")
"""Schedulers without priority levels (block/*-iosched.c, Linux 2.6.32, 4.16 and 6.1)."""
NO_EFFECT_MARGIN = 0.15
"""anticipatory serves a process for a quarter of a second, and the published disk stalls for half of it: a
run of some tens of seconds varies by a fifth. The others stay within a thousandth."""
RIGHT_RATIO = (2.2, 4.6)
"""From the lower end of the published interval to the ratio of the slices, 180 ms to 40 ms."""


def read(options: StudyOptions, folder: StudyFolder, records: Mapping[str, ExperimentRecord]) -> StudyResult:
    """Figures, statements and pictures."""
    set_up = folder.set_up(IoniceSetUp)
    disk = published_disk(folder)
    ratio = published_ratio(folder)
    labels = [choice.label for choice in records[WRITERS].spec.schedulers]
    repeated = {label: mean_of(found) for label in labels if (found := ratios(records[REPEATED], label))}
    values = [
        *_ratio_values(ratio, labels, repeated, records[WRITERS]),
        *_dd_values(options, folder, records[WRITERS], labels[0]),
    ]
    statements = _writer_statements(repeated)
    pictures: list[Picture] = [
        _seconds_picture(folder, records[WRITERS], labels),
        IntervalPicture(
            "ratios",
            "Write speed of level 0 over level 7",
            "Repeated runs with 95 % intervals; the published ratio comes from four samples of one run.",
            "times",
            (
                IntervalRow(PUBLISHED_LABEL, ratio.value, ratio.low, ratio.high, published=True),
                *(IntervalRow(label, one.value, one.low, one.high) for label, one in repeated.items()),
            ),
            marks=((1.0, "no effect"),),
        ),
    ]
    if options.backend == "sim":
        part = read_distance(records, set_up, disk, ratio)
        values += part.values
        statements += part.statements
        pictures += part.pictures
    matrices = read_matrices(options, set_up, records)
    statements += matrices.statements
    if options.backend == "uml":
        part = read_block_sizes(records[BLOCK_SIZES], set_up.matrix.uml_block_sizes)
        values += part.values
        statements += part.statements
    return StudyResult(
        values,
        statements,
        [*pictures, *matrices.pictures],
        _remarks(options, folder, disk),
    )


def published_ratio(folder: StudyFolder) -> IntervalEstimate:
    """Level 0 over level 7 in iotop's samples of both processes."""
    lines = folder.rows("iotop_processes.csv")
    speeds = {(line["sample_index"], line["ionice_prio"]): float(line["disk_write_Mps"]) for line in lines}
    samples = sorted({sample for sample, _ in speeds})
    return mean_of(
        [
            speeds[sample, "0"] / speeds[sample, "7"]
            for sample in samples
            if (sample, "0") in speeds and (sample, "7") in speeds
        ]
    )


def _ratio_values(
    ratio: IntervalEstimate,
    labels: Sequence[str],
    repeated: Mapping[str, IntervalEstimate],
    once: ExperimentRecord,
) -> list[ComparedValue]:
    values = []
    for label in labels:
        counterpart = ratio if label == CFQ else None
        seconds = [found for one in once.successes(label) if (found := seconds_of(one).ratios)]
        if seconds:
            name = f"{label}, one run, by the second"
            values.append(ComparedValue(name, RATIO_TABLE, "", counterpart, mean_of(seconds[0])))
        if label in repeated:
            values.append(
                ComparedValue(f"{label}, repeated runs", RATIO_TABLE, "", counterpart, repeated[label])
            )
    return values


def _dd_values(
    options: StudyOptions, folder: StudyFolder, once: ExperimentRecord, label: str
) -> list[ComparedValue]:
    """Elapsed time of each process, as dd reports it; the disk model has the speed of both together."""
    elapsed = folder.values("dd_summary.csv", "elapsed_s")
    samples = once.successes(label)
    if not samples:
        return []
    ours = [job.runtime_ns / 1e9 for job in samples[0].jobs]
    known = options.backend != "host"
    return [
        ComparedValue(
            f"level {level}, {label}",
            DD_TABLE,
            "s",
            IntervalEstimate(theirs) if label == CFQ else None,
            IntervalEstimate(own),
            not_asked="" if known else "another disk",
        )
        for level, theirs, own in zip((0, 7), elapsed, ours, strict=True)
    ]


def _writer_statements(repeated: Mapping[str, IntervalEstimate]) -> list[Statement]:
    found = []
    if CFQ in repeated:
        found += [
            greater("level-0-faster", "Under cfq, level 0 writes faster than level 7.", repeated[CFQ]),
            within(
                "cfq-ratio",
                f"Under cfq, level 0 gets {RIGHT_RATIO[0]:g} to {RIGHT_RATIO[1]:g} times what level 7 gets.",
                repeated[CFQ],
                *RIGHT_RATIO,
            ),
        ]
    if "cfq-2.6.32" in repeated:
        found.append(
            within(
                "cfq-2.6.32-ratio",
                "The cfq of 2.6.32, without groups and workload types, does the same.",
                repeated["cfq-2.6.32"],
                *RIGHT_RATIO,
            )
        )
    if "bfq" in repeated:
        found.append(
            greater(
                "bfq-level-0-faster",
                "Under bfq, level 0 writes faster than level 7.",
                repeated["bfq"],
                origin="ours",
            )
        )
    return found + [_without_effect(label, repeated[label]) for label in WITHOUT_LEVELS if label in repeated]


def _without_effect(label: str, ratio: IntervalEstimate) -> Statement:
    says = f"Under {label}, the level has no effect."
    return equal(f"{label}-no-effect", says, ratio, margin=NO_EFFECT_MARGIN)


def _seconds_picture(folder: StudyFolder, once: ExperimentRecord, labels: Sequence[str]) -> LinePicture:
    """Iotop's samples, and the same view of our run."""
    series = []
    for level in ("0", "7"):
        lines = folder.rows("iotop_processes.csv", ionice_prio=level)
        series.append(
            LineSeries(
                f"published, level {level}",
                tuple(float(line["sample_index"]) for line in lines),
                tuple(float(line["disk_write_Mps"]) * 1.048576 for line in lines),
                dashed=True,
            )
        )
    label = labels[0]
    for sample in once.successes(label):
        for level, job in zip(("0", "7"), sample.jobs, strict=True):
            if job.rates is not None:
                step = job.rates.window_ns / 1e9
                values = job.rates.bytes_per_second
                series.append(
                    LineSeries(
                        f"{label}, level {level}",
                        tuple((index + 1) * step for index in range(len(values))),
                        tuple(value / 1e6 for value in values),
                    )
                )
    return LinePicture(
        "per-second",
        "Two writers of 2 GiB, second by second",
        "As iotop shows it: the process at level 0 finishes first, then level 7 has the disk to itself.",
        "seconds",
        "MB/s",
        tuple(series),
    )


def _remarks(options: StudyOptions, folder: StudyFolder, disk: PublishedDisk) -> list[str]:
    elapsed = folder.values("dd_summary.csv", "elapsed_s")
    moved = folder.values("dd_summary.csv", "bytes_copied")[0]
    both, alone = min(elapsed), max(elapsed) - min(elapsed)
    rest = moved - alone * disk.bytes_per_second
    before = (
        "dd's two reports do not name their process; we take the first, which "
        f"ended {alone:.2f} s before the other, to be level 0. "
    )
    steady = (
        "At a constant disk speed, level 7 would have "
        f"written {rest / 1e9:.2f} GB in the {both:.2f} s in which both were at work, and level 0 "
        f"{moved / rest:.2f} times as much. That is less than in iotop's samples "
        f"({estimate_text(published_ratio(folder))}), so the disk was faster with one process alone."
    )
    if options.backend == "host":
        return [before + steady]
    model = (
        "The modelled disk has the mean speed of both dd processes together "
        f"({rounded(disk.bytes_per_second / 1e6)} MB/s) and scatters as iotop's totals do. So the later of "
        "dd's two end times is right by construction, up to chance; the end time of level 0 is a result."
    )
    low, high = disk.irregularity_interval
    roughly = (
        f"{disk.nr_totals} totals give only a rough estimate of the published disk's irregularity: "
        f"{100 * disk.irregularity:.0f} % [{100 * low:.0f}, {100 * high:.0f}]."
    )
    return [before + steady, model, roughly]
