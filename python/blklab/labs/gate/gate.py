"""The gate before the host: a changed scheduler meets all loads and a torture in a guest first.

A mistake in a module is a mistake in the running kernel. In a guest of the same changes it costs nothing, and
a seed shows it again. So a guest kernel is built with the kernel's own checks, it is asked every question of
a judgement under that scheduler, and then it is tortured. Slower is no mistake: that is for the host to say.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from blklab.backends import THIS_MACHINE, Workers
from blklab.errors import BlklabError, RefusedError
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.guests.kernels.source import locate
from blklab.guests.kernels.store import find
from blklab.labs.gate import SEEDS
from blklab.labs.gate.sources import GuestSource, nearest_source
from blklab.labs.judgement.conformance import check_conformance
from blklab.labs.judgement.questions import SCHEDULERS, VERSION
from blklab.labs.torture.building import build_with_checks
from blklab.labs.torture.document import MistakePart
from blklab.labs.torture.torture import TortureRequest, torture
from blklab.modules.gate_results import GateFailure, GateResult, keep_result, kept_result
from blklab.modules.record import ChangesRecord
from blklab.modules.store import BuiltModule

GATED = "gated"
"""Name of the guest kernel with the changes; the next gate replaces it."""
UNCHANGED = "gated-unchanged"
"""Name of the one without, which is built only if a mistake was found."""
WAY_AROUND = "--no-gate takes the module as it is: a mistake of it is one of the running kernel"

_ADDED_OPTION = re.compile(rb"^\+config (\w*IOSCHED\w*)", re.MULTILINE)
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


class GateObserver(Protocol):
    """Receives the progress of a gate: of the build, of the questions, of the torture."""

    def announce(self, line: str) -> None:
        """Called when a stage begins."""

    def progressed(self, steps_done: int, steps_expected: int | None, remaining_ns: int | None) -> None:
        """Called after each step of the compilation; unknown expectations are None."""

    def asked(self, question: str, done: int, expected: int) -> None:
        """Called after each question."""

    def ended(self, scheduler: str, seed: int, done: int, total: int, mistakes: int) -> None:
        """Called after each seed."""


@dataclass(frozen=True)
class _Questions:
    observer: GateObserver

    def progressed(self, what: str, done: int, expected: int) -> None:
        self.observer.asked(what, done, expected)


def pass_gate(
    module: BuiltModule, observer: GateObserver, *, seeds: int = SEEDS, workers: Workers = THIS_MACHINE
) -> GateResult | None:
    """Puts a module's changes through the gate, or finds the kept result.

    Returns:
        The result, which has passed; None for an unchanged copy, which has nothing to show.

    Raises:
        RefusedError: if the scheduler makes a mistake; the message has the command that shows it again.
        BlklabError: if no guest of it can be built or run here.
    """
    changes = module.record.changes
    if changes is None:
        return None
    try:
        source = nearest_source(module.record)
        digest = locate(str(source.path)).sha256
        result = kept_result(changes.sha256, digest, VERSION)
        if result is None or (result.passed and result.seeds < seeds):
            result = _ask(module, changes, source, digest, observer, seeds, workers)
            keep_result(result)
    except BlklabError as error:
        hint = f"{error.hint}; {WAY_AROUND}" if error.hint else WAY_AROUND
        name = module.record.name
        raise type(error)(
            f"{name} cannot pass the gate before the host: {error.message}", hint=hint
        ) from error
    if result.failure is not None:
        raise _refusal(module, result, result.failure)
    return result


def gate_summary(result: GateResult) -> str:
    """A result that has passed, for people."""
    summary = (
        f"through the gate on Linux {result.release}: {result.questions} loads and {result.seeds} seeds of "
        "torture without a mistake"
    )
    own = "; ".join(result.excused)
    return f"{summary} of its own (the unchanged scheduler makes as well: {own})" if own else summary


def _refusal(module: BuiltModule, result: GateResult, failure: GateFailure) -> RefusedError:
    what = (
        f"does not serve {failure.place}"
        if failure.part == "questions"
        else f"makes a mistake under torture, {failure.place}"
    )
    first = failure.message.splitlines()[0] if failure.message else "no reason given"
    return RefusedError(
        f"{module.record.name} stays out of this machine's kernel: in a guest of Linux {result.release} it "
        f"{what}: {first}",
        hint=f"see it again: {failure.command}; {WAY_AROUND}",
    )


def _ask(
    module: BuiltModule,
    changes: ChangesRecord,
    source: GuestSource,
    digest: str,
    observer: GateObserver,
    seeds: int,
    workers: Workers,
) -> GateResult:
    observer.announce(f"building a guest of Linux {source.release} with the changes")
    files = [str(module.folder / name) for name in changes.files]
    kernel = _build(GATED, files, changes, source, observer)
    observer.announce(f"asking {changes.scheduler} all questions in a guest of Linux {kernel.version}")
    conformance = check_conformance(GATED, changes.scheduler, _Questions(observer), workers=workers)
    failure, excused = None, list[str]()
    if conformance.failed is not None:
        question = conformance.failed
        command = f"blklab kernel build {GATED} {_of_build(changes, files, source)}"
        if changes.scheduler in SCHEDULERS:
            command += (
                f" && blklab kernel judge --kernel stock,{GATED} -s {changes.scheduler} "
                f"--disk {question.disk} --load {question.load}"
            )
        failure = GateFailure(
            part="questions",
            place=str(question),
            message=conformance.error or "",
            seed=None,
            command=command,
        )
    else:
        observer.announce(f"torturing {changes.scheduler} in a guest of Linux {kernel.version}")
        mistake, excused = _torture(changes, source, observer, seeds, workers)
        if mistake is not None:
            failure = GateFailure(
                part="torture",
                place=f"seed {mistake.seed}",
                message=mistake.message,
                seed=mistake.seed,
                command=f"blklab kernel torture {GATED} {_of_build(changes, files, source)} "
                f"-s {changes.scheduler} --seed {mistake.seed}",
            )
    return GateResult(
        changes_sha256=changes.sha256,
        source_sha256=digest,
        questions_version=VERSION,
        scheduler=changes.scheduler,
        release=kernel.version,
        build=kernel.build_id,
        questions=conformance.asked,
        seeds=0 if conformance.failed is not None else seeds,
        excused=excused,
        failure=failure,
        decided_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )


def _build(
    name: str, files: list[str], changes: ChangesRecord | None, source: GuestSource, observer: GateObserver
) -> KernelBuild:
    is_file = changes is not None and changes.kind == "file"
    options = {option for file in files for option in _ADDED_OPTION.findall(Path(file).read_bytes())}
    with TemporaryDirectory(prefix="blklab-gate-") as folder:
        fragment = Path(folder) / "added.config"
        fragment.write_text(
            "".join(f"CONFIG_{one.decode()}=y\n" for one in sorted(options)), encoding="utf-8"
        )
        build_with_checks(
            name,
            observer,
            patches=() if is_file else files,
            scheduler_files=files if is_file else (),
            fragments=[str(fragment)] if options and not is_file else (),
            source=str(source.path),
        )
    return find(name)


def _torture(
    changes: ChangesRecord, source: GuestSource, observer: GateObserver, seeds: int, workers: Workers
) -> tuple[MistakePart | None, list[str]]:
    """The first mistake that the unchanged scheduler does not make, and those that it makes as well."""
    request = TortureRequest(GATED, (changes.scheduler,), seeds=seeds)
    found = torture(request, observer, workers).mistakes
    if not found or changes.scheduler not in SCHEDULERS:
        return (found[0] if found else None), []
    observer.announce("looking whether the unchanged scheduler makes that mistake as well")
    _build(UNCHANGED, [], None, source, observer)
    usual = torture(
        TortureRequest(UNCHANGED, (changes.scheduler,), seeds=seeds, keep_going=True), observer, workers
    )
    known = {kind_of(one) for one in usual.mistakes}
    if kind_of(found[0]) not in known:
        return found[0], []
    every = torture(
        TortureRequest(GATED, (changes.scheduler,), seeds=seeds, keep_going=True), observer, workers
    ).mistakes
    return first_of_its_own(every, usual.mistakes)


def first_of_its_own(
    changed: Iterable[MistakePart], usual: Iterable[MistakePart]
) -> tuple[MistakePart | None, list[str]]:
    """The first mistake that the unchanged scheduler does not make, and the others, for people."""
    known = {kind_of(one) for one in usual}
    excused = []
    for mistake in changed:
        if kind_of(mistake) not in known:
            return mistake, []
        excused.append(f"seed {mistake.seed}, {mistake.kind}")
    return None, excused


def kind_of(mistake: MistakePart) -> tuple[str, str]:
    """A mistake without what differs between seeds and lines of code: its kind, and its first line."""
    first = mistake.message.splitlines()[0] if mistake.message else ""
    return mistake.kind, _NUMBER.sub("#", first)


def _of_build(changes: ChangesRecord, files: list[str], source: GuestSource) -> str:
    """The flags of a command that builds the guest again."""
    flag = "--scheduler-file" if changes.kind == "file" else "--patch"
    words = [word for file in files for word in (flag, file)]
    return shlex.join([*words, "--source", str(source.path)])
