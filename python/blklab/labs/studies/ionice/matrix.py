"""Reads the runs of every class and level against every other."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from blklab.labs.studies.ionice.experiments import MATRICES, matrix_entries, pair_name, pairs_of
from blklab.labs.studies.ionice.set_up import IoniceSetUp
from blklab.labs.studies.ionice.shares import first_share
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.pictures import MatrixPicture, Picture
from blklab.labs.studies.replication.result import ComparedValue, IntervalEstimate, Statement, StudyResult
from blklab.labs.studies.replication.statements import within
from blklab.quantities.formatting import rounded
from blklab.records.experiment import ExperimentRecord

WRITE, READ, BUFFERED = "matrix-write", "matrix-read", "matrix-buffered"

SLICE_RATIO_BOUNDS = (4.3, 4.6)
"""Bounds around 4.5: slices of 180 ms and 40 ms, and commands well below a millisecond."""
WEIGHT_RATIO_BOUNDS = (7.0, 8.5)
"""Bounds around 8: weights of 80 and 10 (``bfq_ioprio_to_weight``, block/bfq-wf2q.c, Linux 6.1)."""
STRICT_SHARE = 0.97
"""Least share of the better class: the end of a turn lets the other have a request or two."""
EVEN_WITHIN = 0.02
"""Difference of shares that counts as equal on a model."""
EVEN_WITHIN_ON_HOST = 0.2
"""The same on the host: each pair runs once, for seconds, and a real disk varies; bfq's 8 to 1 would be
0.39."""

EQUALS_TABLE = "Share of the first of two equal processes, buffered writes"

PairShares = dict[tuple[str, str], float]


def read_matrices(
    options: StudyOptions, set_up: IoniceSetUp, records: Mapping[str, ExperimentRecord]
) -> StudyResult:
    """Compares the shares of rows and columns."""
    entries = matrix_entries(options, set_up)
    labels = [choice.label for choice in records[WRITE].spec.schedulers]
    shares = {(name, label): _shares(records[name], label, entries) for name in MATRICES for label in labels}
    return StudyResult(
        statements=_statements(shares, records, labels, entries, on_model=options.backend != "host"),
        pictures=[_picture(WRITE, label, shares[WRITE, label], entries) for label in labels],
    )


def _shares(record: ExperimentRecord, label: str, entries: Sequence[str]) -> PairShares:
    """PairShares by pair in both orders; each pair ran once."""
    found: PairShares = {}
    for index, first in enumerate(entries):
        for second in entries[index:]:
            share = first_share(record, label, pair_name(first, second))
            if share is not None:
                found[second, first] = 1 - share
                found[first, second] = share
    return found


def _statements(
    shares: Mapping[tuple[str, str], PairShares],
    records: Mapping[str, ExperimentRecord],
    labels: Sequence[str],
    entries: Sequence[str],
    *,
    on_model: bool,
) -> list[Statement]:
    statements = []
    for label in labels:
        write = shares[WRITE, label]
        if label.startswith("cfq") and on_model:
            says = (
                f"Under {label} on a regular disk, levels 0 and 7 share in proportion to their slices, "
                "180 ms to 40 ms."
            )
            statements.append(
                within(f"{label}-slices", says, _ratio(write, "be0", "be7"), *SLICE_RATIO_BOUNDS)
            )
        if label == "bfq" and on_model:
            says = "Under bfq, levels 0 and 7 share in proportion to their weights, 80 to 10."
            statements.append(within("bfq-weights", says, _ratio(write, "be0", "be7"), *WEIGHT_RATIO_BOUNDS))
        if label == "mq-deadline" and on_model:
            statements.append(_without_classes(write))
        if (label.startswith("cfq") or label == "bfq") and on_model:
            says = (
                f"Under {label}, real time leaves best effort almost no I/O, and so does best effort to idle."
            )
            least = min(write["rt", "be0"], write["be7", "idle"])
            statements.append(
                within(
                    f"{label}-classes",
                    says,
                    IntervalEstimate(least),
                    STRICT_SHARE,
                    1.0,
                    why="the smaller share",
                )
            )
        tolerance = EVEN_WITHIN if on_model else EVEN_WITHIN_ON_HOST
        statements.append(_even(label, shares[BUFFERED, label], entries, records[BUFFERED], tolerance))
        statements.append(_alike(label, write, shares[READ, label], tolerance))
    return statements


def _even(
    label: str, shares: PairShares, entries: Sequence[str], record: ExperimentRecord, tolerance: float
) -> Statement:
    """Compares each pair of buffered writers with pairs of equals.

    In a guest kernel the first of two equals gets slightly more; see `read_block_sizes`.
    """
    equals = statistics.fmean(shares[one, one] for one in entries if (one, one) in shares)
    farthest = max(abs(shares[pair] - equals) for pair in pairs_of(entries) if pair in shares)
    return within(
        f"{label}-buffered",
        f"Under {label}, neither class nor level has an effect on buffered writes.",
        IntervalEstimate(farthest),
        0.0,
        tolerance,
        why="largest distance of the first process's share from its share between equals, "
        f"{rounded(100 * equals)} %. The processes write into the page cache; the kernel's "
        f"flusher writes to the disk later, for all files{_whose(record, label)}",
    )


def read_block_sizes(record: ExperimentRecord, sizes: Sequence[str]) -> StudyResult:
    """The lead of the first of two equal buffered writers, by block size."""
    shares = {
        (choice.label, size): share
        for choice in record.spec.schedulers
        for size in sizes
        if (share := first_share(record, choice.label, size)) is not None
    }
    small = max(abs(share - 0.5) for (_, size), share in shares.items() if size == sizes[0])
    return StudyResult(
        values=[
            ComparedValue(
                f"{label}, blocks of {size}", EQUALS_TABLE, "%", None, IntervalEstimate(100 * share)
            )
            for (label, size), share in shares.items()
        ],
        statements=[
            within(
                "equals-buffered",
                f"Two equal processes that write through the page cache in blocks of {sizes[0]} get half "
                "each.",
                IntervalEstimate(small),
                0.0,
                EVEN_WITHIN,
                why="largest distance from a half. With larger blocks the first process is ahead, whatever "
                "the "
                "classes: "
                + ", ".join(
                    f"{rounded(100 * share)} % ({label}, {size})" for (label, size), share in shares.items()
                )
                + ". The kernel throttles both by the number of dirty pages (balance_dirty_pages); probably "
                "it throttles the first process while one block less is dirty than for the second",
            )
        ],
    )


def _whose(record: ExperimentRecord, label: str) -> str:
    """The origin of the requests, if the backend records it."""
    engines = [sample.engine for sample in record.successes(label)]
    if not engines or any("background_requests" not in engine for engine in engines):
        return ""
    whole, background = (
        sum(engine[name] for engine in engines) for name in ("requests_recorded", "background_requests")
    )
    levels = sorted({level for engine in engines for level in engine["background_priorities"]})
    return (
        f": {background} of {whole} requests came from the flusher, all at {', '.join(levels)}, whatever the "
        "processes' class and level"
    )


def _without_classes(shares: PairShares) -> Statement:
    """mq-deadline serves waiting requests by class since Linux 5.14."""
    farthest = max(abs(share - 0.5) for share in shares.values())
    return within(
        "mq-deadline-classes",
        "Under mq-deadline, not even the class has an effect between two such writers.",
        IntervalEstimate(farthest),
        0.0,
        EVEN_WITHIN,
        why="largest distance of a share from a half. It serves the better class first among waiting "
        "requests, "
        "but each process has one write at a time: whenever the better one's completes, only the other's "
        "is waiting",
    )


def _alike(label: str, write: PairShares, read: PairShares, tolerance: float) -> Statement:
    """States that reads share as direct writes do."""
    farthest = max((abs(share - read[pair]) for pair, share in write.items() if pair in read), default=0.0)
    return within(
        f"{label}-reads",
        f"Under {label}, direct reads share as direct writes do.",
        IntervalEstimate(farthest),
        0.0,
        tolerance,
        why="largest difference of a share. Both are synchronous: the process waits for each",
    )


def _ratio(shares: PairShares, first: str, second: str) -> IntervalEstimate:
    share = shares[first, second]
    return IntervalEstimate(share / (1 - share))


def _picture(name: str, label: str, shares: PairShares, entries: Sequence[str]) -> Picture:
    title, _, _ = MATRICES[name]
    return MatrixPicture(
        f"{name}-{label}",
        f"Share of the row's process beside the column's, {title}, {label}",
        "In percent; rt is real time, be is best effort with its level.",
        "gets",
        "beside a process of",
        tuple(entries),
        tuple(entries),
        tuple(
            tuple(100 * shares[row, column] if (row, column) in shares else None for column in entries)
            for row in entries
        ),
        decimals=0,
        middle=50.0,
    )
