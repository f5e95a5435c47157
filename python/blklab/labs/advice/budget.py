"""The longest time that `blklab advise` proposes for its comparison."""

from __future__ import annotations

from blklab.experiment.outlook import budget_for_an_answer
from blklab.experiment.pipeline import planned_outlook
from blklab.labs.advice.questions import USUAL_BUDGET
from blklab.quantities.sample_units import rough_budget
from blklab.spec.experiment import ExperimentSpec


def suggested_budget(spec: ExperimentSpec, watched_ns: int | None) -> str:
    """Ten minutes, or what an answer needs if that is more.

    Args:
        spec: On this machine, with a budget of ten minutes.
        watched_ns: Length of a recording that is still to be made: each replay takes about as long.
    """
    settled, outlook = planned_outlook(spec)
    if watched_ns is not None:
        enough_ns = budget_for_an_answer(settled, [watched_ns])
    else:
        enough_ns = 0 if outlook.shortage is None else outlook.shortage.enough_ns
    usual_ns = spec.budget_ns or 0
    return rough_budget(enough_ns) if enough_ns > usual_ns else USUAL_BUDGET
