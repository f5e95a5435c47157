"""A judgement on this machine as JSON, ``blklab.host-judgement/1``: measured figures, which do not repeat."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from blklab.labs.judgement.document import AnswerPart, AnswersOutcome, outcome_of_answers
from blklab.labs.judgement.on_host import HostJudgement


class HostJudgementDocument(BaseModel):
    """The document that `blklab kernel judge --module --json` prints."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["blklab.host-judgement/1"] = Field("blklab.host-judgement/1", alias="schema")
    release: str
    """Of the running kernel."""
    target: str
    base: str
    """The original scheduler."""
    other: str
    """The module."""
    build: str
    """Of the module."""
    outcome: Literal["withheld", AnswersOutcome]
    """``withheld`` if the unchanged copy differs from the original."""
    loads: list[str]
    rounds: int
    runtime_ns: int
    answers: list[AnswerPart]
    """Of the module against the original."""
    placebo: list[AnswerPart]
    """Of the unchanged copy against the original; empty without one."""

    @staticmethod
    def of(judgement: HostJudgement, *, release: str, build: str) -> HostJudgementDocument:
        """Describes a judgement."""
        return HostJudgementDocument(
            release=release,
            target=judgement.target,
            base=judgement.base,
            other=judgement.other,
            build=build,
            outcome="withheld" if judgement.withheld else outcome_of_answers(judgement.answers),
            loads=list(judgement.asked),
            rounds=judgement.rounds,
            runtime_ns=judgement.runtime_ns,
            answers=[AnswerPart.of(answer) for answer in judgement.answers],
            placebo=[AnswerPart.of(answer) for answer in judgement.placebo],
        )
