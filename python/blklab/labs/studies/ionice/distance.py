"""Explains why the published ratio is below the ratio of the slices.

cfq gives level 0 slices of 180 ms and level 7 slices of 40 ms (``cfq_prio_slice``, block/cfq-iosched.c,
Linux 4.16): 4.5 to 1. But a slice starts at the first completion, and at its end cfq waits for the command in
flight. Both make a turn longer than its slice, by about the same time *c* for long and short slices, so the
ratio is about ``(180 + c) / (40 + c)``.

* dd's blocks of 1 MiB are two commands each. The second is taken from cfq while the first is under way
  (``scsi_request_fn``, drivers/scsi/scsi_lib.c), so with commands of *x* ms a turn serves whole blocks, until
  one ends after the slice.
* On a disk that stalls at random, *c* is half the ratio of the mean square to the mean of the command times
  (the mean residual time of renewal theory). The same quantity makes the total of a second scatter: its
  squared relative deviation is the mean square over the mean, per second. So *c* is half the squared relative
  deviation of the totals, times a second: the totals that iotop printed tell how far the ratio must fall.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from blklab.labs.studies.ionice.experiments import REPEATED, SSD, command_time_name, stalled_name
from blklab.labs.studies.ionice.set_up import SAMPLE_NS, IoniceSetUp, PublishedDisk
from blklab.labs.studies.ionice.shares import ratios, seconds_of
from blklab.labs.studies.replication.pictures import LinePicture, LineSeries
from blklab.labs.studies.replication.result import ComparedValue, IntervalEstimate, Statement, StudyResult
from blklab.labs.studies.replication.statements import equal, estimate_text, mean_of, within
from blklab.quantities.units import parse_duration_ns
from blklab.records.experiment import ExperimentRecord

LONG_SLICE_MS, SHORT_SLICE_MS = 180.0, 40.0
REGULAR_WITHIN = 0.03
"""Tolerance around the counted turns: a run may end in the middle of a turn."""
COMMANDS_OF_BLOCK = 2
"""dd's block of 1 MiB in commands of at most 512 KiB."""
IRREGULAR_WITHIN = 0.15
"""Tolerance around the law for stalls, which holds for slices much longer than a stall."""
IRREGULARITY_TABLE = "Irregularity of the disk"


def regular_ratio(command_ms: float) -> float:
    """Blocks of a long turn over those of a short turn, if all commands take the same time."""
    long_turn, short_turn = (
        # The slice starts when the first command of the turn is done.
        math.ceil((slice_ms / command_ms + 1) / COMMANDS_OF_BLOCK)
        for slice_ms in (LONG_SLICE_MS, SHORT_SLICE_MS)
    )
    return long_turn / short_turn


def irregular_ratio(command_ms: float, irregularity: float) -> float:
    """The same ratio on a disk whose totals scatter from second to second.

    Args:
        command_ms: Mean duration of a command.
        irregularity: Coefficient of variation of a second's total.
    """
    outside_ms = command_ms + irregularity**2 * SAMPLE_NS / 1e6 / 2
    return (LONG_SLICE_MS + outside_ms) / (SHORT_SLICE_MS + outside_ms)


def read_distance(
    records: Mapping[str, ExperimentRecord], set_up: IoniceSetUp, disk: PublishedDisk, ratio: IntervalEstimate
) -> StudyResult:
    """Compares regular disks with counted turns, and irregular disks with the law and the published ratio."""
    label = set_up.distance.schedulers[0]
    command_ms = disk.command_ns(1024 * set_up.disk.max_sectors_kb) / 1e6
    times_ms = {one: parse_duration_ns(one) / 1e6 for one in set_up.distance.command_times}
    regular = [mean_of(ratios(records[command_time_name(one)], label)).value for one in times_ms]
    counted = [regular_ratio(time_ms) for time_ms in times_ms.values()]
    irregular = [_point(records[stalled_name(percent)], label) for percent in set_up.distance.stalled_percent]
    law = [irregular_ratio(command_ms, deviation) for deviation, _ in irregular]
    spread = _irregularity(records[REPEATED], label)
    return StudyResult(
        values=[
            ComparedValue(
                "standard deviation of a second's total, over the mean",
                IRREGULARITY_TABLE,
                "",
                IntervalEstimate(disk.irregularity),
                spread,
            )
        ],
        statements=[
            _regular_statement(regular, counted, command_ms, ratio, set_up),
            _law_statement(irregular, law),
            _irregular_statement(records[REPEATED], label, spread, disk, ratio, command_ms),
            equal(
                "cfq-ssd",
                "On a SATA SSD the level has no effect under cfq.",
                mean_of(ratios(records[SSD], label)),
                why="a process that writes past the page cache has no request waiting when its write "
                "completes, "
                "and cfq does not idle for its next one on a non-rotational disk that takes several "
                "commands (cfq_should_idle): the turn passes to the other process after each write",
            ),
            equal(
                "none-no-effect",
                "On a SATA SSD the level has no effect under none.",
                mean_of(ratios(records[SSD], "none")),
            ),
        ],
        pictures=[
            LinePicture(
                "command-time",
                "Level 0 over level 7 under cfq, by the duration of a command",
                "A turn serves blocks of two commands until one ends after its slice.",
                "ms per command",
                "times",
                (
                    LineSeries("simulated", tuple(times_ms.values()), tuple(regular)),
                    LineSeries("counted", tuple(times_ms.values()), tuple(counted), dashed=True),
                ),
            ),
            LinePicture(
                "irregularity",
                "Level 0 over level 7 under cfq, by the irregularity of the disk",
                f"Disks with the same mean speed and stalls of {set_up.distance.stall} in a growing share of "
                "the "
                "time; the law; and the published run.",
                "standard deviation of a second's total, %",
                "times",
                (
                    LineSeries("simulated", *_columns([(100 * x, y) for x, y in irregular])),
                    LineSeries(
                        "law",
                        *_columns([(100 * x, y) for (x, _), y in zip(irregular, law, strict=True)]),
                        dashed=True,
                    ),
                    LineSeries("published", (100 * disk.irregularity,), (ratio.value,)),
                ),
            ),
        ],
    )


def _regular_statement(
    regular: list[float],
    counted: list[float],
    command_ms: float,
    ratio: IntervalEstimate,
    set_up: IoniceSetUp,
) -> Statement:
    distance = max(abs(one / other - 1) for one, other in zip(regular, counted, strict=True))
    times = set_up.distance.command_times
    return within(
        "distance-command-time",
        "On a regular disk a turn under cfq serves blocks of two commands until one ends after its slice.",
        IntervalEstimate(distance),
        0.0,
        REGULAR_WITHIN,
        why=f"largest relative distance of the ratio, over commands of {times[0]} to {times[-1]}. At the "
        f"published speed, {command_ms:.2f} ms per command, the ratio would be "
        f"{regular_ratio(command_ms):.2f}: the duration of a command does not explain {estimate_text(ratio)}",
    )


def _law_statement(irregular: list[tuple[float, float]], law: list[float]) -> Statement:
    distance = max(abs(found / wanted - 1) for (_, found), wanted in zip(irregular, law, strict=True))
    return within(
        "distance-irregularity-law",
        "On an irregular disk the ratio is (180 + c)/(40 + c), with c half the squared relative deviation of "
        "a second's total, times 1000 ms.",
        IntervalEstimate(distance),
        0.0,
        IRREGULAR_WITHIN,
        why="largest relative distance of the ratio. A stalled command delays the end of a short turn by as "
        "much "
        "as that of a long one",
    )


def _irregular_statement(
    record: ExperimentRecord,
    label: str,
    spread: IntervalEstimate,
    disk: PublishedDisk,
    ratio: IntervalEstimate,
    command_ms: float,
) -> Statement:
    law = irregular_ratio(command_ms, disk.irregularity)
    return within(
        "distance-irregular",
        "On a disk as irregular as the published totals, the ratio lies in the published interval.",
        mean_of(ratios(record, label)),
        ratio.low or 0.0,
        ratio.high or ratio.value,
        why=f"the totals that iotop printed scatter by {100 * disk.irregularity:.0f} % from second to "
        f"second, for which the law gives {law:.2f}; the simulated ones by {100 * spread.value:.0f} %. "
        f"Published: {estimate_text(ratio)}. Irregularity alone is enough to explain the published ratio, "
        "but one "
        "run cannot show that it was the cause",
    )


def _point(record: ExperimentRecord, label: str) -> tuple[float, float]:
    return _irregularity(record, label).value, mean_of(ratios(record, label)).value


def _irregularity(record: ExperimentRecord, label: str) -> IntervalEstimate:
    found = [seconds_of(sample).irregularity for sample in record.successes(label)]
    return mean_of([value for value in found if value])


def _columns(points: list[tuple[float, float]]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(x for x, _ in points), tuple(y for _, y in points)
