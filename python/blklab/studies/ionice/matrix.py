"""Every class and level against every other: shares, and where they have no effect."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from blklab.quantities.formatting import rounded
from blklab.records.experiment import ExperimentRecord
from blklab.studies.ionice.experiments import MATRICES, matrix_entries, pair_name, pairs_of
from blklab.studies.ionice.set_up import IoniceSetUp
from blklab.studies.ionice.shares import first_share
from blklab.studies.replication.options import StudyOptions
from blklab.studies.replication.pictures import MatrixPicture, Picture
from blklab.studies.replication.result import ComparedValue, Estimate, Statement, StudyResult
from blklab.studies.replication.statements import within

WRITE, READ, BUFFERED = "matrix-write", "matrix-read", "matrix-buffered"

SLICES = (4.3, 4.6)
"""Around 4.5: slices of 180 ms and 40 ms and commands of well below a millisecond."""
WEIGHTS = (7.0, 8.5)
"""Around 8: weights of 80 and 10 (``bfq_ioprio_to_weight``, block/bfq-wf2q.c, Linux 6.1)."""
STRICT_SHARE = 0.97
"""A turn's end lets the worse one have a request or two."""
EVEN_WITHIN = 0.02
"""Of a share."""
EVEN_WITHIN_ON_HOST = 0.2
"""A pair is run once, for seconds, and a real disk does not keep still; bfq's 8 to 1 would be 0.39."""

EQUALS_TABLE = "Share of the first of two equal processes, buffered writes"

Shares = dict[tuple[str, str], float]


def read_matrices(
    options: StudyOptions, set_up: IoniceSetUp, records: Mapping[str, ExperimentRecord]
) -> StudyResult:
    """Shares of rows against columns, and what they say."""
    entries = matrix_entries(options, set_up)
    labels = [choice.label for choice in records[WRITE].spec.schedulers]
    shares = {(name, label): _shares(records[name], label, entries) for name in MATRICES for label in labels}
    return StudyResult(
        statements=_statements(shares, records, labels, entries, on_model=options.backend != "host"),
        pictures=[_picture(WRITE, label, shares[WRITE, label], entries) for label in labels],
    )


def _shares(record: ExperimentRecord, label: str, entries: Sequence[str]) -> Shares:
    """Both ways round: each pair was run once."""
    found: Shares = {}
    for index, first in enumerate(entries):
        for second in entries[index:]:
            share = first_share(record, label, pair_name(first, second))
            if share is not None:
                found[second, first] = 1 - share
                found[first, second] = share
    return found


def _statements(
    shares: Mapping[tuple[str, str], Shares],
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
            says = f"Under {label} on a regular disk, levels 0 and 7 share as their slices, 180 ms to 40 ms."
            statements.append(within(f"{label}-slices", says, _ratio(write, "be0", "be7"), *SLICES))
        if label == "bfq" and on_model:
            says = "Under bfq, levels 0 and 7 share as their weights, 80 to 10."
            statements.append(within("bfq-weights", says, _ratio(write, "be0", "be7"), *WEIGHTS))
        if label == "mq-deadline" and on_model:
            statements.append(_without_classes(write))
        if (label.startswith("cfq") or label == "bfq") and on_model:
            says = f"Under {label}, real time leaves best effort next to nothing, and best effort idle."
            least = min(write["rt", "be0"], write["be7", "idle"])
            statements.append(
                within(f"{label}-classes", says, Estimate(least), STRICT_SHARE, 1.0, why="the smaller share")
            )
        tolerance = EVEN_WITHIN if on_model else EVEN_WITHIN_ON_HOST
        statements.append(_even(label, shares[BUFFERED, label], entries, records[BUFFERED], tolerance))
        statements.append(_alike(label, write, shares[READ, label], tolerance))
    return statements


def _even(
    label: str, shares: Shares, entries: Sequence[str], record: ExperimentRecord, tolerance: float
) -> Statement:
    """Buffered writes: each pair against pairs of equals, in which only the order of the two counts.

    A guest's kernel lets the first of two equals get a little further; see `read_block_sizes`.
    """
    equals = statistics.fmean(shares[one, one] for one in entries if (one, one) in shares)
    farthest = max(abs(shares[pair] - equals) for pair in pairs_of(entries) if pair in shares)
    return within(
        f"{label}-buffered",
        f"Under {label}, no class and no level has an effect on buffered writes.",
        Estimate(farthest),
        0.0,
        tolerance,
        why="largest distance of the first one's share from what it is between equals, "
        f"{rounded(100 * equals)} %. The processes write into the page cache; the kernel's "
        f"flusher writes to the disk later, for all files{_whose(record, label)}",
    )


def read_block_sizes(record: ExperimentRecord, sizes: Sequence[str]) -> StudyResult:
    """How far the first of two equal buffered writers gets ahead, by the size of their blocks."""
    shares = {
        (choice.label, size): share
        for choice in record.spec.schedulers
        for size in sizes
        if (share := first_share(record, choice.label, size)) is not None
    }
    small = max(abs(share - 0.5) for (_, size), share in shares.items() if size == sizes[0])
    return StudyResult(
        values=[
            ComparedValue(f"{label}, blocks of {size}", EQUALS_TABLE, "%", None, Estimate(100 * share))
            for (label, size), share in shares.items()
        ],
        statements=[
            within(
                "equals-buffered",
                f"Two equal processes that write through the page cache in blocks of {sizes[0]} get a half "
                "each.",
                Estimate(small),
                0.0,
                EVEN_WITHIN,
                why="largest distance from a half. With larger blocks the first one is ahead, whatever the "
                "classes: "
                + ", ".join(
                    f"{rounded(100 * share)} % ({label}, {size})" for (label, size), share in shares.items()
                )
                + ". Probably the kernel, which holds up both by how much is dirty (balance_dirty_pages), "
                "judges the first one while a block less is dirty than for the second",
            )
        ],
    )


def _whose(record: ExperimentRecord, label: str) -> str:
    """Who sent the requests, where the backend tells."""
    engines = [sample.engine for sample in record.successes(label)]
    if not engines or any("background_requests" not in engine for engine in engines):
        return ""
    whole, background = (
        sum(engine[name] for engine in engines) for name in ("requests_recorded", "background_requests")
    )
    levels = sorted({level for engine in engines for level in engine["background_priorities"]})
    return (
        f": {background} of {whole} requests were the flusher's, all at {', '.join(levels)} whatever the "
        "processes' class and level"
    )


def _without_classes(shares: Shares) -> Statement:
    """mq-deadline puts waiting requests in order of class, since Linux 5.14."""
    farthest = max(abs(share - 0.5) for share in shares.values())
    return within(
        "mq-deadline-classes",
        "Under mq-deadline, not even the class has an effect between two such writers.",
        Estimate(farthest),
        0.0,
        EVEN_WITHIN,
        why="largest distance of a share from a half. It serves the better class first of those that wait, "
        "but each process has one write at a time: whenever the better one's is done, the other's is all "
        "that waits",
    )


def _alike(label: str, write: Shares, read: Shares, tolerance: float) -> Statement:
    """Reads do as direct writes do."""
    farthest = max((abs(share - read[pair]) for pair, share in write.items() if pair in read), default=0.0)
    return within(
        f"{label}-reads",
        f"Under {label}, direct reads share as direct writes do.",
        Estimate(farthest),
        0.0,
        tolerance,
        why="largest difference of a share. Both are synchronous: the process waits for each",
    )


def _ratio(shares: Shares, first: str, second: str) -> Estimate:
    share = shares[first, second]
    return Estimate(share / (1 - share))


def _picture(name: str, label: str, shares: Shares, entries: Sequence[str]) -> Picture:
    title, _, _ = MATRICES[name]
    return MatrixPicture(
        f"{name}-{label}",
        f"Share of the row's process against the column's, {title}, {label}",
        "In percent; rt is real time, be best effort with its level.",
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
