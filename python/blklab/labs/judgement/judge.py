"""Asks all questions of two kernels: a few arrangements first, more where the kernels differ.

A run in virtual time depends on kernel, load and arrangement alone. So two kernels whose runs are the same to
the bit, in arrangements drawn by chance, do the same work there, and need no statistics. A change that only
some schedulers' code sees is soon judged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from blklab.backends import THIS_MACHINE, Session, SessionOptions, Workers
from blklab.backends.uml import BACKEND
from blklab.errors import RequirementError
from blklab.experiment.prerequisites import require_kernels
from blklab.guests.kernels.build_record import PatchRecord
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.guests.kernels.store import find
from blklab.labs.judgement.answers import (
    LEVEL,
    JudgementAnswer,
    Outcome,
    answers_to,
    identical,
    require_answer,
    settled,
)
from blklab.labs.judgement.kept_runs import KeepingWorkers
from blklab.labs.judgement.loads import LOADS, JudgementLoad
from blklab.labs.judgement.questions import EVERY_QUESTION, SCHEDULERS, VERSION, JudgementQuestion, Scope
from blklab.modules.scheduler_source import schedulers_of
from blklab.records.samples import RunSample
from blklab.spec.changes import parse_changes
from blklab.spec.experiment import Conditions
from blklab.spec.machines import Machine, load_machine
from blklab.spec.plan import Cell, CellKey, derive_seed
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.targets import parse_target
from blklab.spec.workloads import parse_workload

FIRST_ROUNDS = 2
"""Arrangements in which every question is asked."""
ROUNDS = 8
"""Arrangements in which a question is asked on which the kernels differ."""
MOST_ROUNDS = 16
"""Arrangements in which it is asked if eight leave an effect open, which one that goes otherwise may hide."""
LOOKS = 2
"""Times that answers are taken, which share the chance of a false one."""


class JudgementObserver(Protocol):
    """Receives the progress of a judgement."""

    def progressed(self, what: str, done: int, expected: int) -> None:
        """Called before the first and after every pair of runs; the expected number may grow."""


@dataclass(frozen=True)
class Judgement:
    """The answers of two kernels to one version of the questions."""

    version: int
    base: KernelBuild
    other: KernelBuild
    machine: str
    asked: tuple[JudgementQuestion, ...]
    answers: tuple[JudgementAnswer, ...]
    """Only of questions on which the kernels differ at all."""
    same_bytes: bool = False
    """Whether both kernels are the same file, so that nothing was run."""

    @property
    def identical(self) -> int:
        """The number of questions to which both gave the same bits."""
        return len(self.asked) - len({answer.question for answer in self.answers})

    def of(self, *outcomes: Outcome) -> list[JudgementAnswer]:
        """The answers with one of these outcomes."""
        return [answer for answer in self.answers if answer.outcome in outcomes]

    @property
    def not_asked(self) -> dict[str, list[str]]:
        """Schedulers that both kernels have and no question was about, with the patches that change them."""
        asked = {parse_scheduler_choice(question.scheduler).name for question in self.asked}
        found: dict[str, list[str]] = {}
        for patch in _patches_of_one(self.base, self.other):
            for name in schedulers_of(patch.files):
                if name not in asked and all(name in one.schedulers for one in (self.base, self.other)):
                    found.setdefault(name, []).append(patch.name)
        return found

    @property
    def worse(self) -> bool:
        """Whether the other kernel is slower for anyone, or fails."""
        return bool(self.of("slower", "broken"))


def judge(
    base: str,
    other: str,
    observer: JudgementObserver,
    scope: Scope = EVERY_QUESTION,
    *,
    workers: Workers = THIS_MACHINE,
) -> Judgement:
    """Asks every question of two kernels.

    Args:
        base: Name of the kernel to compare with.
        other: Name of the one to be judged.
        observer: Receives the progress.
        scope: The questions to ask.
        workers: Run the guests.

    Raises:
        BlklabError: if there is no such kernel, or guests cannot run here.
        RunFailedError: if both kernels fail to answer a question.
        RequirementError: if the kernels have no scheduler in common that is asked about.
    """
    require_kernels([base, other])
    kernels = find(base), find(other)
    offered = tuple(name for name in SCHEDULERS if all(name in kernel.schedulers for kernel in kernels))
    asked = scope.questions(offered)
    if not any(asked.values()):
        raise RequirementError(
            f"the kernels {base} and {other} have no scheduler in common that is asked about"
        )
    machine = load_machine(scope.machine or BACKEND.default_machine(Conditions(), [base, other]))
    if _same_bytes(*kernels):
        every = tuple(question for of_disk in asked.values() for question in of_disk)
        return Judgement(VERSION, *kernels, machine.name, every, (), same_bytes=True)
    progress = _Counting(observer)
    progress.expect(FIRST_ROUNDS * sum(map(len, asked.values())))
    keeping = KeepingWorkers(workers, kernels[0].build_id)
    runs: dict[JudgementQuestion, list[tuple[RunSample, RunSample]]] = {}

    def in_sessions(
        chosen: Mapping[str, Sequence[JudgementQuestion]],
        ask: Callable[[_Court, list[JudgementQuestion]], None],
    ) -> None:
        for disk, questions in chosen.items():
            for load, together in asked_together(disk, questions):
                with open_session(disk, load, machine, (base, other), keeping) as session:
                    ask(_Court(session, base, other, progress), together)

    def first(court: _Court, questions: list[JudgementQuestion]) -> None:
        court.ask(questions, range(FIRST_ROUNDS), runs)
        differing = [question for question in questions if not identical(runs[question])]
        court.ask(differing, range(FIRST_ROUNDS, ROUNDS), runs)

    def further(court: _Court, questions: list[JudgementQuestion]) -> None:
        court.ask(questions, range(ROUNDS, MOST_ROUNDS), runs)

    in_sessions(asked, first)
    answers = answers_to(runs, level=LEVEL / LOOKS)
    open_questions = {answer.question for answer in answers if answer.is_open}
    in_sessions(_among(asked, open_questions), further)
    if open_questions:
        answers = settled(answers, answers_to(runs, level=LEVEL / LOOKS))
    return Judgement(VERSION, *kernels, machine.name, tuple(runs), tuple(answers))


def _among(
    asked: Mapping[str, Sequence[JudgementQuestion]], chosen: Collection[JudgementQuestion]
) -> dict[str, list[JudgementQuestion]]:
    return {disk: [one for one in questions if one in chosen] for disk, questions in asked.items()}


def _patches_of_one(base: KernelBuild, other: KernelBuild) -> list[PatchRecord]:
    """The patches that one kernel has and the other lacks."""
    both = {patch.sha256 for patch in base.record.patches} & {patch.sha256 for patch in other.record.patches}
    return [patch for kernel in (base, other) for patch in kernel.record.patches if patch.sha256 not in both]


def _same_bytes(base: KernelBuild, other: KernelBuild) -> bool:
    """Whether both are the same file and boot alike.

    A run depends on the kernel, the guest program and the request, and the last two are the same for both.
    """
    return (base.record.linux_sha256, base.boot_parameters, base.driver) == (
        other.record.linux_sha256,
        other.boot_parameters,
        other.driver,
    )


def asked_together(
    disk: str, questions: Iterable[JudgementQuestion]
) -> Iterator[tuple[JudgementLoad, list[JudgementQuestion]]]:
    """Questions about a disk that a session can ask together, with a load that stands for its conditions."""
    together: list[tuple[JudgementLoad, list[JudgementQuestion]]] = []
    for question in questions:
        load = LOADS[question.load]
        for known, asked in together:
            if _conditions(known, disk) == _conditions(load, disk):
                asked.append(question)
                break
        else:
            together.append((load, [question]))
    yield from together


def _conditions(
    load: JudgementLoad, disk: str
) -> tuple[int, Mapping[str, Mapping[str, str]], tuple[str, ...]]:
    return load.runtime_ns(disk), load.cgroups, load.changes


def open_session(
    disk: str, load: JudgementLoad, machine: Machine, kernels: tuple[str, ...], workers: Workers
) -> AbstractContextManager[Session]:
    """A session in which loads with the conditions of one can be asked about on a disk."""
    options = SessionOptions(
        run_id="judgement",
        kernels=kernels,
        machine=machine,
        runtime_ns=load.runtime_ns(disk),
        cgroups={group: dict(attributes) for group, attributes in load.cgroups.items()},
        changes=parse_changes(load.changes_on(disk)),
        arrangement="drawn",
        workers=workers,
    )
    return BACKEND.open(parse_target(f"uml:{disk}"), options)


class _Counting:
    """Counts pairs of runs for an observer."""

    def __init__(self, observer: JudgementObserver) -> None:
        self._observer = observer
        self._done = 0
        self._expected = 0

    def expect(self, more: int) -> None:
        self._expected += more

    def done(self, question: JudgementQuestion) -> None:
        self._done += 1
        self._observer.progressed(str(question), self._done, self._expected)


class _Court:
    """Runs questions on one disk."""

    def __init__(self, session: Session, base: str, other: str, progress: _Counting) -> None:
        self._session = session
        self._kernels = base, other
        self._progress = progress

    def ask(
        self,
        questions: Iterable[JudgementQuestion],
        rounds: Iterable[int],
        runs: dict[JudgementQuestion, list[tuple[RunSample, RunSample]]],
    ) -> None:
        """Asks questions in some arrangements; both kernels meet the same."""
        with ThreadPoolExecutor(self._session.parallel) as executor:
            together = list(questions)
            asked = [(question, number) for number in rounds for question in together]
            if any(number >= FIRST_ROUNDS for _, number in asked):
                self._progress.expect(len(asked))
            pairs = [
                tuple(executor.submit(self._session.run, cell) for cell in self._cells(question, number))
                for question, number in asked
            ]
            for (question, _), (base, other) in zip(asked, pairs, strict=True):
                pair = base.result(), other.result()
                require_answer(question, *pair, kernel=self._kernels[0])
                runs.setdefault(question, []).append(pair)
                self._progress.done(question)

    def _cells(self, question: JudgementQuestion, round_number: int) -> Iterator[Cell]:
        for kernel in self._kernels:
            yield cell_of(question, kernel, round_number)


def cell_of(question: JudgementQuestion, kernel: str | None, round_number: int) -> Cell:
    """The run of a question in one of its arrangements."""
    name = question.load
    workload = parse_workload(LOADS[name].text(question.disk), name=name, source=f"{name}.fio")
    choice = parse_scheduler_choice(question.scheduler).model_copy(update={"kernel": kernel})
    key = CellKey(
        block=round_number,
        sequence=0,
        position=0,
        workload=question.load,
        scheduler=question.scheduler,
        seed=derive_seed(VERSION, "judge", str(question), round_number),
    )
    return Cell(key, choice, workload)
