"""The document that `blklab advise --json` prints."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from blklab.experiment.outlook import Outlook
from blklab.labs.advice.questions import Wish
from blklab.report.documents.comparison import RecommendationPart
from blklab.report.documents.parts import Part

ADVISE_SCHEMA: Literal["blklab.advise/1"] = "blklab.advise/1"


class PlanPart(Part):
    """The comparison before its first run."""

    commands: list[str]
    """The `blklab compare` that does the same, and the `blklab record` before it where work is watched."""
    schedulers: int
    workloads: list[str]
    budget_ns: int | None
    blocks: int | None
    enough_ns: int | None
    """A budget that would suffice, if the one given cannot; else null."""


class AdviseDocument(Part):
    """The answers, the plan, and the advice."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    schema_: Literal["blklab.advise/1"] = Field(default=ADVISE_SCHEMA, alias="schema")
    use: str
    target: str
    aim: str
    plan: PlanPart
    run: str | None
    """Name of the stored run, for `blklab report`; null if nothing was started."""
    answer: str | None
    """The advice in a sentence."""
    recommendation: RecommendationPart | None
    apply_command: str | None
    """Applies the advice, where there is something to apply."""
    applied: bool


def plan_part(wish: Wish, outlook: Outlook) -> PlanPart:
    """The plan as a part of the document."""
    return PlanPart(
        commands=wish.commands,
        schedulers=outlook.schedulers,
        workloads=wish.workloads,
        budget_ns=outlook.budget_ns,
        blocks=outlook.blocks,
        enough_ns=None if outlook.shortage is None else outlook.shortage.enough_ns,
    )
