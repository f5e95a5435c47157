"""A judgement as a page of plain text, to attach to a mail."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from blklab.analysis.metrics import metric_named
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.labs.judgement.answers import LEVEL, MARGIN, JudgementAnswer, Outcome
from blklab.labs.judgement.document import outcome_of
from blklab.labs.judgement.judge import Judgement
from blklab.labs.judgement.questions import JudgementQuestion
from blklab.quantities.formatting import count_of, join_names, percent_text

_SENTENCES = {
    "identical": "The same to the bit: no question runs code that differs, or that code does the same.",
    "same": "The kernels run differently, and equally fast.",
    "faster": "Faster, and slower for nobody who was asked.",
    "slower": "Slower, and faster for nobody who was asked.",
    "mixed": "Slower for some, faster for others.",
    "undecided": "No difference is proven, and some are not excluded.",
    "broken": "The kernel fails.",
}
_SAME_BYTES = "The same bytes: both kernels are the same file, so nothing was run."
_ORDER: tuple[Outcome, ...] = ("broken", "slower", "faster", "undecided", "same")
_MAIL_WIDTH = 76
_HARDLY_ANY = 0.01
_NAMES = {"iops": "I/Os a second", "latency_mean": "mean latency", "latency_p99": "p99 latency"}


def page_of(judgement: Judgement) -> str:
    """The page: verdict, counts, then every answer that is not the same to the bit, the worst first."""
    return "\n".join(_lines(judgement)) + "\n"


def _lines(judgement: Judgement) -> Iterator[str]:
    yield _SAME_BYTES if judgement.same_bytes else _SENTENCES[outcome_of(judgement)]
    yield ""
    yield f"  base   {_title(judgement.base)}"
    yield f"  judged {_title(judgement.other)}"
    yield ""
    yield from textwrap.wrap(_counts(judgement), _MAIL_WIDTH)
    for scheduler, patches in judgement.not_asked.items():
        yield from textwrap.wrap(_not_asked(scheduler, patches), _MAIL_WIDTH, break_on_hyphens=False)
    for outcome in _ORDER:
        if answers := judgement.of(outcome):
            yield ""
            yield from answer_table(outcome, answers)
    yield ""
    yield from textwrap.wrap(_about(judgement), _MAIL_WIDTH)


def _counts(judgement: Judgement) -> str:
    """How many questions had which answers; the jobs of one question may have several."""
    asked, identical = len(judgement.asked), judgement.identical
    counts = [count_of(asked, "question"), f"{identical} the same to the bit"]
    found = {outcome: len(_questions(judgement.of(outcome))) for outcome in _ORDER}
    found = {outcome: number for outcome, number in found.items() if number}
    if sum(found.values()) <= asked - identical:
        return ", ".join([*counts, *(f"{outcome} in {number}" for outcome, number in found.items())]) + "."
    kinds = ", ".join(f"some {outcome} in {number}" for outcome, number in found.items())
    return f"{', '.join(counts)}. Of the jobs in the other {asked - identical}: {kinds}."


def _not_asked(scheduler: str, patches: Sequence[str]) -> str:
    changes = "changes" if len(patches) == 1 else "change"
    return (
        f"{join_names(patches)} {changes} {scheduler}, which no question was about: "
        f"ask with `--scheduler {scheduler}`."
    )


def _about(judgement: Judgement) -> str:
    return (
        f"Questions of version {judgement.version}, on modelled disks in virtual time, cost table "
        f"{judgement.machine}. Speeds are multiples of the base's, of I/Os or of the inverse of latencies. "
        f"Intervals are at {percent_text(1 - LEVEL)}, the chance of any false answer is at most "
        f"{percent_text(LEVEL)}, and less than {percent_text(MARGIN)} counts as the same. "
        "Anyone who repeats this gets the same bytes."
    )


def _questions(answers: Iterable[JudgementAnswer]) -> set[JudgementQuestion]:
    return {answer.question for answer in answers}


def _title(kernel: KernelBuild) -> str:
    patches = "".join(f" + {patch.name}" for patch in kernel.record.patches)
    return f"Linux {kernel.version}{patches} (build {kernel.build_id[:12]})"


def answer_table(outcome: Outcome, answers: Sequence[JudgementAnswer]) -> Iterator[str]:
    """The answers of one outcome, a line each, beneath their disk and scheduler: a mail has few columns."""
    titles = ("load", "job", "metric", "speed", "interval")
    rows = [_row(answer) for answer in answers]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        return ("    " + "  ".join(map(str.ljust, cells, widths))).rstrip()

    yield f"{outcome.capitalize()}:"
    yield line(titles)
    before: tuple[str, str] | None = None
    for answer, row in zip(answers, rows, strict=True):
        place = (answer.question.disk, answer.question.scheduler)
        if place != before:
            yield f"  {place[0]}, {place[1]}"
        before = place
        yield line(row)


def answer_text(answer: JudgementAnswer) -> str:
    """An answer in one line, without its question."""
    return " ".join(part for part in _row(answer)[1:] if part)


def _row(answer: JudgementAnswer) -> tuple[str, ...]:
    question = answer.question
    if answer.speed is None or answer.interval is None or answer.metric is None:
        return (question.load, "", answer.error or "", "", "")
    low, high = answer.interval
    name = _NAMES.get(answer.metric, metric_named(answer.metric).name.replace("_", " "))
    interval = f"[{_speed(low)}, {_speed(high)}]"
    return (question.load, answer.job or "", name, _speed(answer.speed), interval)


def _speed(speed: float) -> str:
    """``0.448``, and of hardly any speed ``1/3850``."""
    if not 0 < speed < _HARDLY_ANY:
        return f"{speed:.3g}"
    return f"1/{float(f'{1 / speed:.3g}'):.0f}"
