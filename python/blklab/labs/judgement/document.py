"""A judgement as JSON, ``blklab.judgement/1``: without times and paths, so that it repeats to the byte."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.labs.judgement.answers import JudgementAnswer, Outcome
from blklab.labs.judgement.judge import Judgement

AnswersOutcome = Literal["same", "faster", "slower", "mixed", "undecided", "broken"]
_NEWS: tuple[Outcome, ...] = ("slower", "faster", "undecided")
"""The worst first."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class KernelPart(_Part):
    """A kernel, by what it was built from."""

    version: str
    build: str
    patches: list[str]
    """File names and SHA-256 digests."""
    instruments: list[str]


class AnswerPart(_Part):
    """The answer for one metric of one job."""

    disk: str
    scheduler: str
    load: str
    job: str | None
    """None if the kernel failed."""
    metric: str | None
    outcome: Outcome
    speed: float | None
    """As a multiple of the base's."""
    interval: list[float] | None
    rounds: int
    error: str | None = None
    """The kernel's failure."""

    @staticmethod
    def of(answer: JudgementAnswer) -> AnswerPart:
        """Describes an answer."""
        return AnswerPart(
            disk=answer.question.disk,
            scheduler=answer.question.scheduler,
            load=answer.question.load,
            job=answer.job,
            metric=answer.metric,
            outcome=answer.outcome,
            speed=answer.speed,
            interval=None if answer.interval is None else list(answer.interval),
            rounds=answer.rounds,
            error=answer.error,
        )


class JudgementDocument(_Part):
    """The document that `blklab kernel judge --json` prints."""

    schema_: Literal["blklab.judgement/1"] = Field("blklab.judgement/1", alias="schema")
    questions_version: int
    machine: str
    base: KernelPart
    other: KernelPart
    outcome: Literal["identical", AnswersOutcome]
    questions: int
    identical: int
    same_bytes: bool = False
    """Whether both kernels are the same file, so that nothing was run."""
    answers: list[AnswerPart]

    @staticmethod
    def of(judgement: Judgement) -> JudgementDocument:
        """Describes a judgement."""
        return JudgementDocument(
            questions_version=judgement.version,
            machine=judgement.machine,
            base=_kernel(judgement.base),
            other=_kernel(judgement.other),
            outcome=outcome_of(judgement),
            questions=len(judgement.asked),
            identical=judgement.identical,
            same_bytes=judgement.same_bytes,
            answers=[AnswerPart.of(answer) for answer in judgement.answers],
        )


def outcome_of(judgement: Judgement) -> Literal["identical", AnswersOutcome]:
    """One word for all answers."""
    return outcome_of_answers(judgement.answers) if judgement.answers else "identical"


def outcome_of_answers(answers: Iterable[JudgementAnswer]) -> AnswersOutcome:
    """One word for some answers; the worst news first."""
    found = {answer.outcome for answer in answers}
    if "broken" in found:
        return "broken"
    if {"slower", "faster"} <= found:
        return "mixed"
    for outcome in _NEWS:
        if outcome in found:
            return outcome
    return "same"


def _kernel(kernel: KernelBuild) -> KernelPart:
    return KernelPart(
        version=kernel.version,
        build=kernel.build_id,
        patches=[f"{patch.name} {patch.sha256}" for patch in kernel.record.patches],
        instruments=list(kernel.instruments),
    )
