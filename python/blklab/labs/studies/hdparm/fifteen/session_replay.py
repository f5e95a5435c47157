"""Replays the published session in randomised blocks, on the assumption that no scheduler matters.

The document measured all runs of a scheduler in one stretch, so a change of the machine during that stretch
looks like an effect of the scheduler. Here the printed values, in the order of measurement, serve as the
drift of a machine on which no scheduler matters. A randomised run gets the value that the document measured
at the same position of its session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blklab.spec.experiment import ExperimentSpec
from blklab.spec.plan import Plan


def session_values(rates: Mapping[str, Sequence[float]]) -> list[float]:
    """Values of all schedulers in the order of measurement, the first scheduler first."""
    return [rate for runs in rates.values() for rate in runs]


def replay_in_blocks(
    values: Sequence[float], spec: ExperimentSpec, workload: str
) -> dict[str, dict[int, float]]:
    """Assigns the session's values to randomised blocks; returns them by label and block.

    Args:
        values: One value for each run of the workload, in order; a whole number of blocks.
        spec: The experiment in randomised blocks; its number of blocks follows from `values`.
        workload: Only runs of this workload get a value.
    """
    blocks, rest = divmod(len(values), len(spec.schedulers))
    if rest:
        raise ValueError(f"{len(values)} values are not a whole number of blocks")
    plan = Plan(spec.model_copy(update={"blocks": blocks}))
    cells = [cell.key for block in plan.blocks() for cell in block if cell.key.workload == workload]
    found: dict[str, dict[int, float]] = {choice.label: {} for choice in spec.schedulers}
    for key, rate in zip(cells, values, strict=True):
        found[key.scheduler][key.block] = rate
    return found
