"""The course of an experiment in sentences: why it stopped, which schedulers left early, and its noise."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.quantities.formatting import count_of, join_names
from blklab.quantities.sample_units import BLOCKS, SampleUnit
from blklab.report.documents.conduct import DeparturePart, NoisePart, StoppingPart

NOTABLE_P = 0.01
"""Reports mention an effect in the noise below this p value. No such effect changes a verdict."""
NOTABLE_CHANGE = 0.01
MOST_OUTLIERS_NAMED = 3


def stopping_sentence(
    part: StoppingPart,
    *,
    still_open: bool,
    units: Sequence[SampleUnit] = (BLOCKS,),
    good_enough: str | None = None,
) -> str | None:
    """Why blocks or rounds stopped being added; None for a fixed number of blocks.

    Args:
        part: The stopping rule and who left early.
        still_open: Whether a workload that counts is undecided.
        units: Kinds of samples that the experiment has.
        good_enough: A scheduler that is known to be close enough to the best, if one is.
    """
    if part.rule == "fixed":
        return None
    added = " and ".join(f"{unit.name}s" for unit in units).capitalize()
    text = f"{added} were added until everything was settled"
    if good_enough is not None and part.good_enough is not None:
        text = f"{added} were added until {good_enough} was known to be good enough"
    elif still_open:
        text = f"{added} were added until the budget was used up or could no longer settle the rest"
    return "; ".join([text, *_departure_clauses(part.departures)]) + "."


def _departure_clauses(departures: Sequence[DeparturePart]) -> list[str]:
    """A clause for each group of schedulers that left the same workloads after as many blocks or rounds."""
    leavers: dict[tuple[str, str], list[str]] = {}
    for one in departures:
        unit = "round" if one.switched else "block"
        leavers.setdefault((one.workload, count_of(one.blocks, unit)), []).append(one.scheduler)
    workloads: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (workload, made), names in leavers.items():
        workloads.setdefault((made, tuple(names)), []).append(workload)
    return [
        f"{join_names(names)} left {join_names(found)} after {made}"
        for (made, names), found in workloads.items()
    ]


def noise_kinds(parts: Sequence[NoisePart]) -> list[str]:
    """The kinds of notable noise in an experiment, each with the number of workloads it was found in."""
    correlated = [part for part in parts if _is_correlated(part)]
    neighbours = " and ".join(sorted({f"{_unit(part).name}s" for part in correlated}))
    kinds = {
        "drift": [_notable(part.drift, part.drift_p) for part in parts],
        "effects of order": [_notable(part.first_run, part.first_run_p) for part in parts],
        f"correlated {neighbours}": [_is_correlated(part) for part in parts],
        "outliers": [bool(part.outliers) for part in parts],
    }
    return [f"{kind} in {count_of(sum(found), 'workload')}" for kind, found in kinds.items() if any(found)]


def noise_sentences(parts: Sequence[NoisePart], workload: str) -> list[str]:
    """A sentence for each notable effect in the noise of a workload; usually none."""
    part = next((part for part in parts if part.workload == workload), None)
    if part is None:
        return []
    block, run = _unit(part).name, _unit(part).part
    sentences = []
    if _notable(part.drift, part.drift_p):
        sentences.append(
            f"drift: {_percent(part.drift)} from the first {block} to the last (it cancels out in "
            f"comparisons within {block}s)"
        )
    if _notable(part.first_run, part.first_run_p):
        sentences.append(
            f"order: the first {run} of a {block} is at {_percent(part.first_run)} against the others; "
            "something warms up or fills up"
        )
    if _is_correlated(part):
        sentences.append(
            f"correlation: neighbouring {block}s are alike (up to {part.correlation:.2f}, of the log "
            f"ratios), so intervals were widened up to {part.widened_by:.1f} times"
        )
    if part.outliers:
        named = [
            f"{block} {one.block + 1} {one.scheduler} ({one.ratio:.2g} of its median)"
            for one in part.outliers[:MOST_OUTLIERS_NAMED]
        ]
        more = len(part.outliers) - len(named)
        if more:
            named.append(f"{more} more")
        sentences.append(f"outliers, which count like any other {run}: {join_names(named)}")
    return sentences


def _unit(part: NoisePart) -> SampleUnit:
    return SampleUnit(part.slot_ns)


def _is_correlated(part: NoisePart) -> bool:
    return part.widened_by > 1 and part.correlation is not None


def _notable(change: float | None, p: float | None) -> bool:
    return change is not None and p is not None and p < NOTABLE_P and abs(change) > NOTABLE_CHANGE


def _percent(change: float | None) -> str:
    return f"{100 * (change or 0):+.3g} %"
