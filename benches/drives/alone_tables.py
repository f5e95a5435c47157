"""Tables of figures 1 to 10: errors of the drive of today and of that before, cells, and findings."""

from __future__ import annotations

from alone import FIGURES, Alone, AloneResults
from cells import SCHEDULERS
from tables import QUANTITIES, Finding, error_text, factors_of, finding_rows, pair_text, parts_of

from blklab.quantities.units import parse_size_bytes

_TOGETHER = "all"


def alone_error_rows(real: AloneResults, before: AloneResults, now: AloneResults) -> list[str]:
    """By how many times predictions are off, before → now, and the number of cells."""
    lines = [
        "| Cells | Number | Rate | Mean | p99 | Rate as a part of none |",
        "|---" * 6 + "|",
    ]
    for figure in (*FIGURES, _TOGETHER):
        for scheduler in SCHEDULERS:
            cells = [
                cell for cell in real if cell.scheduler == scheduler and figure in (cell.figure, _TOGETHER)
            ]
            if not cells:
                continue
            columns = []
            for name in ("batch", "mean", "p99"):
                errors = [
                    error_text(factors_of(cells, real, model, QUANTITIES[name])) for model in (before, now)
                ]
                columns.append(" → ".join(errors))
            shares = [
                error_text(parts_of(cells, real, model, QUANTITIES["batch"])) for model in (before, now)
            ]
            columns.append("-" if scheduler == "none" else " → ".join(shares))
            lines.append(f"| {figure}, {scheduler} | {len(cells)} | {' | '.join(columns)} |")
    return lines


def alone_cell_rows(real: AloneResults, model: AloneResults) -> list[str]:
    """Rate of all jobs, mean and p99 in microseconds, as measured → predicted."""
    lines = [
        "| Figure | Drives | Jobs | Depth | Size | Scheduler | I/Os a second | Mean, µs | p99, µs |",
        "|---" * 9 + "|",
    ]
    figures, sizes = list(FIGURES), sorted({cell.size for cell in real}, key=parse_size_bytes)
    cells = sorted(
        real,
        key=lambda cell: (
            figures.index(cell.figure),
            cell.drives,
            sizes.index(cell.size),
            cell.jobs,
            cell.depth,
            SCHEDULERS.index(cell.scheduler),
        ),
    )
    for cell in cells:
        texts = [pair_text(QUANTITIES[name](real[cell]), QUANTITIES[name](model[cell])) for name in _ORDER]
        mark = "\\*" if cell.is_fitted else ""
        lines.append(
            f"| {cell.figure} | {cell.drives} | {cell.jobs} | {cell.depth} | {cell.size} "
            f"| {cell.scheduler}{mark} | {' | '.join(texts)} |"
        )
    return lines


_ORDER = ("batch", "mean", "p99")


def _rate(
    r: AloneResults, figure: str, scheduler: str, jobs: int, depth: int = 128, drives: int = 1
) -> float:
    return r[Alone(figure, scheduler, jobs, depth, drives)].batch_iops or 0.0


def _part(
    r: AloneResults, figure: str, scheduler: str, jobs: int, depth: int = 128, drives: int = 1
) -> float:
    own, none = (_rate(r, figure, name, jobs, depth, drives) for name in (scheduler, "none"))
    return own / none


_OTHERS = SCHEDULERS[1:]
ALONE_FINDINGS: tuple[Finding[AloneResults], ...] = (
    Finding(
        "One drive is full with four jobs of depth 64: more depth adds less than 2 % (1).",
        lambda r: _rate(r, "1", "none", 4, 256) < 1.02 * _rate(r, "1", "none", 4, 64),
    ),
    Finding(
        "Ten processors get less than half of what nine drives can do (1).",
        lambda r: _rate(r, "1", "none", 10, 256, 9) < 0.5 * 9 * _rate(r, "1", "none", 4, 256),
    ),
    Finding(
        "One processor, from depth 32 on: none, then mq-deadline, then kyber, then bfq (2).",
        lambda r: all(
            _rate(r, "2", "none", 1, depth)
            > _rate(r, "2", "mq-deadline", 1, depth)
            > _rate(r, "2", "kyber", 1, depth)
            > _rate(r, "2", "bfq", 1, depth)
            for depth in (32, 64, 128, 256)
        ),
    ),
    Finding(
        "One processor: 256 jobs do a fifth less than 16, under every scheduler (3).",
        lambda r: all(_rate(r, "3", s, 256, 1) < 0.8 * _rate(r, "3", s, 16, 1) for s in SCHEDULERS),
    ),
    Finding(
        "256 jobs of depth 1: mq-deadline does 45 to 65 % of none's I/Os, kyber over 97 % (5).",
        lambda r: (
            0.45 < _part(r, "5", "mq-deadline", 256, 1) < 0.65 and _part(r, "5", "kyber", 256, 1) > 0.97
        ),
    ),
    Finding(
        "bfq gains less than 40 % from any number of jobs of depth 128 (7).",
        lambda r: (
            max(_rate(r, "7", "bfq", cell.jobs) for cell in r if cell.figure == "7")
            < 1.4 * _rate(r, "7", "bfq", 1)
        ),
    ),
    Finding(
        "Three drives: bfq and mq-deadline do less than half of none's I/Os, kyber over 98 % (9).",
        lambda r: (
            max(_part(r, "9", s, 10, drives=3) for s in ("bfq", "mq-deadline")) < 0.5
            and _part(r, "9", "kyber", 10, drives=3) > 0.98
        ),
    ),
    Finding(
        "Five drives fill the processors under none: eight do at most 2 % more (9).",
        lambda r: _rate(r, "9", "none", 10, drives=8) < 1.02 * _rate(r, "9", "none", 10, drives=5),
    ),
    Finding(
        "Eight drives: kyber does 75 to 85 % of none's I/Os (9).",
        lambda r: 0.75 < _part(r, "9", "kyber", 10, drives=8) < 0.85,
    ),
    Finding(
        "Eight drives: 14 jobs do at most 2 % more than 10, under every scheduler (10).",
        lambda r: all(
            _rate(r, "10", s, 14, drives=8) < 1.02 * _rate(r, "10", s, 10, drives=8) for s in SCHEDULERS
        ),
    ),
    Finding(
        "Eight drives: every scheduler does less than none with any number of jobs, bfq least (10).",
        lambda r: all(
            _rate(r, "10", "bfq", jobs, drives=8)
            < min(_rate(r, "10", s, jobs, drives=8) for s in ("kyber", "mq-deadline"))
            and all(_part(r, "10", s, jobs, drives=8) < 1 for s in _OTHERS)
            for jobs in sorted({cell.jobs for cell in r if cell.figure == "10"})
        ),
    ),
)


def alone_finding_rows(real: AloneResults, before: AloneResults, now: AloneResults) -> list[str]:
    """Whether each finding holds in the data, with the drive of before, and with that of today."""
    columns = {"Measured": real, "Before": before, "Now": now}
    return finding_rows(ALONE_FINDINGS, columns, heading="Finding (figure)")
