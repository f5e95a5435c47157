"""Asks the questions of a judgement on a scratch device of this machine, with its real processors.

Nothing is the same to the bit here, so every question is asked in all rounds: in each, the arms run in an
order drawn anew. Beside the changed scheduler runs an unchanged copy. As long as that differs from the
original, something other than the change is at work, and the answers are not to be trusted.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from blklab.backends import SessionOptions
from blklab.backends.host import BACKEND
from blklab.errors import RefusedError, RunFailedError, UsageError
from blklab.labs.judgement.answers import JudgementAnswer, Outcome, answers_to
from blklab.labs.judgement.judge import JudgementObserver
from blklab.labs.judgement.loads import LOADS, JudgementLoad
from blklab.labs.judgement.page import answer_table
from blklab.labs.judgement.questions import VERSION, JudgementQuestion
from blklab.records.samples import RunSample
from blklab.records.store import new_run_id
from blklab.spec.plan import Cell, CellKey, derive_seed
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.targets import LoopTarget, PathTarget, Target, parse_target
from blklab.spec.workloads import Workload, parse_workload

RUNTIME_NS = 1_000_000_000
ROUNDS = 8
_SCRATCH = re.compile(r"/dev/(?:nullb|ublkb)\d+")
_SIZE = re.compile(r"^size=\w+$", re.MULTILINE)
_SMALL = "size=64m"


@dataclass(frozen=True)
class HostJudgement:
    """The answers of a changed scheduler against its original on one device."""

    target: str
    base: str
    other: str
    runtime_ns: int
    rounds: int
    asked: tuple[str, ...]
    """Loads."""
    answers: tuple[JudgementAnswer, ...]
    placebo: tuple[JudgementAnswer, ...]
    """Of the unchanged copy against the original; empty without one."""

    @property
    def withheld(self) -> bool:
        """Whether the unchanged copy differs from the original."""
        return any(answer.outcome in ("faster", "slower", "broken") for answer in self.placebo)

    @property
    def worse(self) -> bool:
        """Whether the changed scheduler is slower for anyone, or fails."""
        return any(answer.outcome in ("slower", "broken") for answer in self.answers)


def judge_on_host(
    target: str,
    arms: Sequence[SchedulerChoice],
    observer: JudgementObserver,
    loads: Sequence[str] = (),
    *,
    rounds: int = ROUNDS,
    runtime_ns: int = RUNTIME_NS,
) -> HostJudgement:
    """Asks every question that a scratch device can answer.

    Args:
        target: ``loop:SIZE``, or a device of ``null_blk`` or ``ublk``.
        arms: The original, the changed scheduler, and the unchanged copy if there is one.
        observer: Receives the progress.
        loads: The loads to ask about; none for all.
        rounds: How often each is asked.
        runtime_ns: Length of a run.

    Raises:
        RefusedError: if the target is no scratch device.
        UsageError: for a load that needs a guest.
        RunFailedError: if the original fails, or the kernel reports a mistake.
        BlklabError: if the device cannot be opened.
    """
    parsed = require_scratch(target)
    chosen = _chosen(loads)
    workloads = {name: _workload(name, runtime_ns) for name in chosen}
    options = SessionOptions(
        run_id=new_run_id(datetime.now(timezone.utc)),
        runtime_ns=runtime_ns,
        allow_writes=isinstance(parsed, PathTarget),
    )
    runs: dict[JudgementQuestion, list[list[RunSample]]] = {}
    with BACKEND.open(parsed, options) as session:
        session.check(arms, list(workloads.values()))
        session.prepare(list(workloads.values()), lambda _: None)
        expected, done = len(chosen) * rounds, 0
        for number in range(rounds):
            for name in chosen:
                question = JudgementQuestion(target, arms[0].canonical, name)
                cells = list(_cells(question, workloads[name], arms, number))
                order = list(range(len(arms)))
                random.Random(cells[0].key.seed).shuffle(order)  # noqa: S311 - not for secrets
                samples = {place: session.run(cells[place]) for place in order}
                together = [samples[place] for place in range(len(arms))]
                if together[0].status != "ok":
                    raise RunFailedError(f"{name} fails under {question.scheduler}: {together[0].error}")
                runs.setdefault(question, []).append(together)
                done += 1
                observer.progressed(f"{name}, round {number + 1}", done, expected)

    def against_original(place: int) -> tuple[JudgementAnswer, ...]:
        pairs = {question: [(one[0], one[place]) for one in asked] for question, asked in runs.items()}
        return tuple(answers_to(pairs))

    return HostJudgement(
        target,
        arms[0].canonical,
        arms[1].canonical,
        runtime_ns,
        rounds,
        tuple(chosen),
        against_original(1),
        against_original(2) if len(arms) > 2 else (),
    )


def require_scratch(target: str) -> Target:
    """The target, which the questions may overwrite.

    Raises:
        RefusedError: if it is no scratch device.
    """
    parsed = parse_target(target)
    scratch = isinstance(parsed, PathTarget) and _SCRATCH.fullmatch(parsed.path) is not None
    if not scratch and not isinstance(parsed, LoopTarget):
        raise RefusedError(
            f"{target} is not a scratch device, and the questions overwrite it",
            hint="name loop:SIZE, /dev/nullbN or /dev/ublkbN",
        )
    return parsed


def host_page(judgement: HostJudgement) -> str:
    """The answers as plain text, the worst first."""
    return "\n".join(_lines(judgement)) + "\n"


def _lines(judgement: HostJudgement) -> Iterator[str]:
    if judgement.withheld:
        yield "No verdict: an unchanged copy differs from the original, so something else is at work."
        yield from answer_table("slower", [one for one in judgement.placebo if one.outcome != "same"])
    elif judgement.worse:
        yield "Slower for somebody, or it fails."
    elif any(answer.outcome == "faster" for answer in judgement.answers):
        yield "Faster, and slower for nobody who was asked."
    else:
        yield "No difference is proven."
    yield ""
    yield f"  base   {judgement.base}"
    yield f"  judged {judgement.other}"
    yield f"  on     {judgement.target}, with this machine's processors"
    yield ""
    yield (
        f"{len(judgement.asked)} loads, {judgement.rounds} rounds of {judgement.runtime_ns / 1e9:g} s each: "
        f"{', '.join(judgement.asked)}."
    )
    order: tuple[Outcome, ...] = ("broken", "slower", "faster", "undecided", "same")
    for outcome in order:
        if found := [answer for answer in judgement.answers if answer.outcome == outcome]:
            yield ""
            yield from answer_table(outcome, found)


def _chosen(loads: Sequence[str]) -> list[str]:
    possible = [name for name, load in LOADS.items() if _needs_guest(load) is None]
    for name in loads:
        if (reason := _needs_guest(LOADS[name])) is not None:
            raise UsageError(
                f"the load {name} cannot be asked on this machine: {reason}",
                hint="`blklab kernel judge --patch FILE` asks it in a guest",
            )
    return [name for name in possible if name in (loads or possible)]


def _needs_guest(load: JudgementLoad) -> str | None:
    if load.cgroups or load.changes:
        return "it changes io.cost of the machine's root group"
    return "it replays tasks in virtual time" if "replay" in load.jobs else None


def _workload(name: str, runtime_ns: int) -> Workload:
    text = _SIZE.sub(_SMALL, LOADS[name].text_for(runtime_ns))
    return parse_workload(text, name=name, source=f"{name}.fio")


def _cells(
    question: JudgementQuestion, workload: Workload, arms: Sequence[SchedulerChoice], number: int
) -> Iterator[Cell]:
    for place, arm in enumerate(arms):
        key = CellKey(
            block=number,
            sequence=0,
            position=place,
            workload=question.load,
            scheduler=arm.canonical,
            seed=derive_seed(VERSION, "judge on host", question.load, number),
        )
        yield Cell(key, arm, workload)
