"""A judgement as JUnit XML, for `blklab kernel judge --junit`. It repeats to the byte, like the page."""

from __future__ import annotations

from blklab.labs.judgement.answers import JudgementAnswer
from blklab.labs.judgement.judge import Judgement
from blklab.labs.judgement.page import answer_text
from blklab.labs.judgement.questions import JudgementQuestion
from blklab.report.monitoring.junit import TestCase, TestSuite


def judgement_suite(judgement: Judgement) -> TestSuite:
    """One statement for each question: the judged kernel is slower for nobody, and does not fail."""
    return TestSuite(
        name="blklab judge",
        cases=[_case(judgement, question) for question in judgement.asked],
        properties={
            "questions_version": str(judgement.version),
            "machine": judgement.machine,
            "base": judgement.base.build_id,
            "judged": judgement.other.build_id,
        },
    )


def _case(judgement: Judgement, question: JudgementQuestion) -> TestCase:
    answers = [one for one in judgement.answers if one.question == question]
    worse = [one for one in answers if one.outcome in ("slower", "broken")]
    undecided = [one for one in answers if one.outcome == "undecided"]
    return TestCase(
        f"{question} is not slower",
        _lines(answers) or "the same to the bit",
        failure=_lines(worse) or None,
        skipped=_lines(undecided) or None,
    )


def _lines(answers: list[JudgementAnswer]) -> str:
    return "\n".join(f"{one.outcome}: {answer_text(one)}" for one in answers)
