"""The study's findings about scaling, each as a statement about rates that can be tried on any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cells import SCHEDULERS, Cell, Rates


@dataclass(frozen=True)
class Finding:
    """A statement, and whether it is true of given rates."""

    text: str
    holds: Callable[[Rates], bool]


def _rate(rates: Rates, figure: str, scheduler: str, jobs: int = 1, depth: int = 1) -> float:
    depth = 128 if figure == "7" else depth
    return rates[Cell(figure, 10 if figure in "57" else 1, jobs, depth, scheduler)]


FINDINGS = (
    Finding(
        "One I/O at a time: no scheduler costs more than 6 %.",
        lambda r: all(_rate(r, "2", s) > 0.94 * _rate(r, "2", "none") for s in SCHEDULERS),
    ),
    Finding(
        "One processor is full at a depth of 32: at 64, no scheduler does over 6 % more.",
        lambda r: all(_rate(r, "2", s, depth=64) < 1.06 * _rate(r, "2", s, depth=32) for s in SCHEDULERS),
    ),
    Finding(
        "One processor, full: none, then mq-deadline, then kyber, then bfq, at every depth from 32.",
        lambda r: all(
            _rate(r, "2", "none", depth=d)
            > _rate(r, "2", "mq-deadline", depth=d)
            > _rate(r, "2", "kyber", depth=d)
            > _rate(r, "2", "bfq", depth=d)
            for d in (32, 64, 128, 256)
        ),
    ),
    Finding(
        "One processor: 256 jobs do fewer I/Os than 16, under every scheduler by a fifth or more.",
        lambda r: all(_rate(r, "3", s, jobs=256) < 0.8 * _rate(r, "3", s, jobs=16) for s in SCHEDULERS),
    ),
    Finding(
        "Ten processors: kyber reaches 97 % of none from 3 jobs of depth 128 on.",
        lambda r: all(
            _rate(r, "7", "kyber", jobs=j) > 0.97 * _rate(r, "7", "none", jobs=j)
            for j in (3, 4, 5, 6, 8, 10, 15)
        ),
    ),
    Finding(
        "Ten processors: bfq gains less than 40 % from any number of jobs of depth 128.",
        lambda r: (
            max(_rate(r, "7", "bfq", jobs=j) for j in (2, 3, 4, 5, 6, 8, 10, 15)) < 1.4 * _rate(r, "7", "bfq")
        ),
    ),
    Finding(
        "Ten processors: mq-deadline is best with 3 jobs, and falls by 10 % or more with 10.",
        lambda r: _rate(r, "7", "mq-deadline", jobs=10) < 0.9 * _rate(r, "7", "mq-deadline", jobs=3),
    ),
    Finding(
        "Ten processors, 10 jobs of depth 128: bfq costs 55 to 70 % of what none does.",
        lambda r: 0.3 < _rate(r, "7", "bfq", jobs=10) / _rate(r, "7", "none", jobs=10) < 0.45,
    ),
    Finding(
        "Ten processors, 256 jobs of depth 1: mq-deadline does 45 to 65 % of none's I/Os, kyber over 97 %.",
        lambda r: (
            0.45 < _rate(r, "5", "mq-deadline", jobs=256) / _rate(r, "5", "none", jobs=256) < 0.65
            and _rate(r, "5", "kyber", jobs=256) > 0.97 * _rate(r, "5", "none", jobs=256)
        ),
    ),
    Finding(
        "Ten processors, depth 1: bfq falls a fifth behind none with 32 jobs, mq-deadline only with 64.",
        lambda r: (
            _rate(r, "5", "bfq", jobs=32) < 0.8 * _rate(r, "5", "none", jobs=32)
            and _rate(r, "5", "mq-deadline", jobs=32) > 0.9 * _rate(r, "5", "none", jobs=32)
            and _rate(r, "5", "mq-deadline", jobs=64) < 0.8 * _rate(r, "5", "none", jobs=64)
        ),
    ),
)
