"""States which rates rise with the record size, and which tests are faster than others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blklab.labs.studies.iozone_raid10.experiments import DIRECT_TESTS, STDIO_TESTS
from blklab.labs.studies.iozone_raid10.rates import rises
from blklab.labs.studies.replication.result import IntervalEstimate, Statement
from blklab.labs.studies.replication.statements import greater, within
from blklab.quantities.formatting import rounded
from blklab.spec.experiment import DEFAULT_MARGIN

Means = Mapping[tuple[str, int], float]

STEP_SLACK = 0.08
"""Relative fall of a step that still counts as rising, because the published tests ran once."""
LEAST_GROWTH = 1.5
"""Least ratio from the smallest to the largest records; a row that grows less is level."""
ALIKE = 0.15
"""Relative difference within which two rates count as alike."""


def order_statements(
    ours: Means, theirs: Means, records_kib: Sequence[int], printed_kib: Sequence[int]
) -> list[Statement]:
    """Checks of our own, each with the published value beside it."""
    small, large = records_kib[0], records_kib[-1]
    middle = [size for size in records_kib if size > small]
    return [
        _rows(ours, theirs, records_kib, printed_kib),
        greater(
            "stdio-fastest",
            "Tests through the C library are faster than all others at every record size.",
            IntervalEstimate(_stdio_lead(ours, records_kib)),
            1 + DEFAULT_MARGIN,
            origin="ours",
            why="they end in the page cache, which is not written back before the clock stops; published: "
            f"at least {rounded(_stdio_lead(theirs, printed_kib))} times",
        ),
        within(
            "backward-like-random",
            f"Backward and strided reads are as fast as random ones, within {100 * ALIKE:g} %.",
            IntervalEstimate(_farthest(ours, ("backward-read", "stride-read"), "random-read", records_kib)),
            0,
            ALIKE,
            why="past the page cache the kernel does not read ahead, and flash has no arm; published: at "
            "most "
            f"{rounded(_farthest(theirs, ('backward-read', 'stride-read'), 'random-read', printed_kib))}",
        ),
        greater(
            "sequential-over-random-small",
            f"Sequential reads of {small} KiB are faster than random ones.",
            IntervalEstimate(ours["read", small] / ours["random-read", small]),
            1 + ALIKE,
            origin="ours",
            why=f"published: {rounded(theirs['read', small] / theirs['random-read', small])} times. "
            "Something below the file system read ahead there; the kernel does not for direct reads",
        ),
        within(
            "sequential-like-random-large",
            f"At {large} KiB sequential and random reads are equal within {100 * ALIKE:g} %.",
            IntervalEstimate(abs(ours["read", large] / ours["random-read", large] - 1)),
            0,
            ALIKE,
            why=f"published: {rounded(theirs['read', large] / theirs['random-read', large])} times",
        ),
        greater(
            "reads-over-writes",
            f"From {middle[0]} KiB on, sequential reads are faster than sequential writes.",
            IntervalEstimate(min(ours["read", size] / ours["write", size] for size in middle)),
            1 + DEFAULT_MARGIN,
            origin="ours",
            why="the smallest ratio over these sizes; published: "
            f"{rounded(min(theirs['read', size] / theirs['write', size] for size in middle))}. A drive "
            "with a write buffer answers small writes sooner than reads, unless the file system adds work",
        ),
    ]


def _rows(ours: Means, theirs: Means, records_kib: Sequence[int], printed_kib: Sequence[int]) -> Statement:
    rising = [test for test in DIRECT_TESTS if _grows(theirs, test, printed_kib)]
    kept = [test for test in rising if _grows(ours, test, records_kib)]
    first, last = records_kib[0], records_kib[-1]
    growth = ", ".join(f"{test} {rounded(ours[test, last] / ours[test, first])}" for test in rising)
    return Statement(
        "rows-rise",
        "Where the published rates rise with the record size, ours do.",
        "ours",
        "holds" if kept == rising else "fails",
        f"{len(kept)} of {len(rising)} tests rise; largest over smallest records: {growth}",
        "a record is one system call: larger records spread its fixed time over more bytes, and the pieces "
        "of "
        "a large record go to all disks at once",
    )


def _grows(means: Means, test: str, records_kib: Sequence[int]) -> bool:
    row = [means[test, size] for size in records_kib]
    return rises(row, STEP_SLACK) and row[-1] >= LEAST_GROWTH * row[0]


def _stdio_lead(means: Means, records_kib: Sequence[int]) -> float:
    """The slowest buffered test over the fastest direct one: the smallest ratio over the record sizes."""
    return min(
        min(means[test, size] for test in STDIO_TESTS) / max(means[test, size] for test in DIRECT_TESTS)
        for size in records_kib
    )


def _farthest(means: Means, tests: Sequence[str], base: str, records_kib: Sequence[int]) -> float:
    """The largest relative distance of the tests from the base test over the record sizes."""
    return max(abs(means[test, size] / means[base, size] - 1) for test in tests for size in records_kib)
