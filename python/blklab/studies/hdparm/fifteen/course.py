"""What one course of a machine's speed would have shown in either order.

The document's runs of a scheduler were made in one stretch. Whatever changed its machine meanwhile fell on
the scheduler whose turn it was. Here the printed figures, in the order in which they were measured, are taken
as the course of a machine on which no scheduler matters, and laid over the plan of randomised blocks: a run
gets the figure that the document's run at that place in the session has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blklab.spec.experiment import ExperimentSpec
from blklab.spec.plan import Plan


def session(rates: Mapping[str, Sequence[float]]) -> list[float]:
    """Figures of all schedulers in the order in which they were measured, the first scheduler first."""
    return [rate for runs in rates.values() for rate in runs]


def laid_over_blocks(
    course: Sequence[float], spec: ExperimentSpec, workload: str
) -> dict[str, dict[int, float]]:
    """What randomised blocks would have found of such a course, by label and block.

    Args:
        course: A value for each run of the workload, in order: a whole number of blocks.
        spec: Of randomised blocks; as many as the course has are planned.
        workload: The runs that are counted.
    """
    blocks, rest = divmod(len(course), len(spec.schedulers))
    if rest:
        raise ValueError(f"{len(course)} figures are not a whole number of blocks")
    plan = Plan(spec.model_copy(update={"blocks": blocks}))
    cells = [cell.key for block in plan.blocks() for cell in block if cell.key.workload == workload]
    found: dict[str, dict[int, float]] = {choice.label: {} for choice in spec.schedulers}
    for key, rate in zip(cells, course, strict=True):
        found[key.scheduler][key.block] = rate
    return found
