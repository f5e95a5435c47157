"""Asks all questions of one kernel once: does a scheduler serve every load at all?

Speed is no part of it. A judgement, which compares two kernels, asks about that.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from blklab.backends import THIS_MACHINE, Workers
from blklab.backends.uml import BACKEND
from blklab.errors import RunFailedError
from blklab.experiment.prerequisites import require_kernels
from blklab.guests.kernels.store import find
from blklab.labs.judgement.judge import JudgementObserver, asked_together, cell_of, open_session
from blklab.labs.judgement.questions import EVERY_QUESTION, JudgementQuestion, Scope
from blklab.spec.experiment import Conditions
from blklab.spec.machines import load_machine

_CONTROL = "none"
"""A load runs under this to see whether the scheduler is at fault."""


@dataclass(frozen=True)
class Conformance:
    """The questions that a scheduler was asked, and the first that it did not serve."""

    asked: int
    failed: JudgementQuestion | None
    error: str | None


def check_conformance(
    kernel: str,
    scheduler: str,
    observer: JudgementObserver,
    scope: Scope = EVERY_QUESTION,
    *,
    workers: Workers = THIS_MACHINE,
) -> Conformance:
    """Asks a kernel every question about one scheduler, once, until one fails.

    Raises:
        BlklabError: if there is no such kernel, or guests cannot run here.
        RunFailedError: if a load fails without a scheduler too, so that its failure says nothing.
    """
    require_kernels([kernel])
    find(kernel).require_scheduler(scheduler)
    machine = load_machine(scope.machine or BACKEND.default_machine(Conditions(), [kernel]))
    questions = scope.questions((scheduler,))
    expected, done = sum(map(len, questions.values())), 0
    for disk, of_disk in questions.items():
        for load, together in asked_together(disk, of_disk):
            with (
                open_session(disk, load, machine, (kernel,), workers) as session,
                ThreadPoolExecutor(session.parallel) as executor,
            ):
                runs = [executor.submit(session.run, cell_of(one, kernel, 0)) for one in together]
                for question, run in zip(together, runs, strict=True):
                    sample = run.result()
                    done += 1
                    observer.progressed(str(question), done, expected)
                    if sample.status == "ok":
                        continue
                    control = JudgementQuestion(disk, _CONTROL, question.load)
                    if session.run(cell_of(control, kernel, 0)).status != "ok":
                        raise RunFailedError(
                            f"the kernel {kernel} does not answer {question}, and without a scheduler it "
                            f"does not either: {sample.error}",
                            hint="see whether guests run here: blklab run uml:ssd-sata random-read-4k-qd1",
                        )
                    session.stop()
                    return Conformance(done, question, sample.error or "the run failed")
    return Conformance(done, None, None)
