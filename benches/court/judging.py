"""Judges patches one after the other with `blklab kernel judge`, and keeps the answers."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from blklab.guests.kernels.store import find

SCHEDULER_FILES = {
    "bfq": ("block/bfq-iosched.c", "block/bfq-wf2q.c"),
    "kyber": ("block/kyber-iosched.c",),
    "mq-deadline": ("block/mq-deadline.c",),
}
"""Files whose code only runs under one scheduler."""


@dataclass(frozen=True)
class Judged:
    """A judgement of one patch."""

    name: str
    asked_of: str
    """The options that narrow the questions, or "all"."""
    outcome: str
    """As in blklab.judgement/1; "failed" if there is none, for instance because the patch does not build."""
    questions: int
    identical: int
    slower: tuple[str, ...]
    """DISK/SCHEDULER/LOAD JOB METRIC xSPEED, the worst first."""
    faster: tuple[str, ...]
    seconds: float
    """Of the build and the judgement together."""
    build_processor_seconds: float = 0.0
    """Time of processors, user and system, of the build with all that it starts."""
    judge_processor_seconds: float = 0.0
    """The same of the judgement, guests included."""
    complaint: str = ""
    same_bytes: bool = False
    """Whether both kernels are the same file, so that nothing was run."""

    @property
    def detected(self) -> bool:
        """Whether somebody is slower or faster."""
        return bool(self.slower or self.faster) or self.outcome == "broken"


def judged(name: str, base: str, patch: Path, scope: Sequence[str]) -> Judged:
    """Builds the base with a patch, and judges it.

    Args:
        name: Of the patch, for the results.
        base: Name of the kernel to compare with.
        patch: A patch, a mailbox or a folder of patches.
        scope: Options that narrow the questions.
    """
    began, began_processor = time.monotonic(), _processor_seconds()
    kernel = f"court-{name}"
    source = find(base).record.source
    build = ["kernel", "build", kernel, "--source", source, "--patch", str(patch), "--quiet"]
    done = _blklab(build)
    built_processor = _processor_seconds()
    if done.returncode == 0:
        done = _blklab(["judge", "--kernel", f"{base},{kernel}", *scope, "--json", "-", "--quiet"])
        _blklab(["kernel", "remove", kernel])
    spent = (
        round(time.monotonic() - began, 1),
        round(built_processor - began_processor, 1),
        round(_processor_seconds() - built_processor, 1),
    )
    if done.returncode not in (0, 8):
        return Judged(name, asked_of(scope), "failed", 0, 0, (), (), *spent, complaint=done.stderr.strip())
    document = json.loads(done.stdout)
    return Judged(
        name,
        asked_of(scope),
        document["outcome"],
        document["questions"],
        document["identical"],
        _answers(document["answers"], "slower"),
        _answers(document["answers"], "faster"),
        *spent,
        same_bytes=document["same_bytes"],
    )


def judge_all(patches: Sequence[tuple[str, Path, Sequence[str]]], base: str, results: Path) -> list[Judged]:
    """Judges patches, each with its scope, and writes each answer to the file of results at once.

    Those that the file already has, asked with the same scope, are left out.
    """
    known = _read(results)
    chosen = []
    for number, (name, patch, scope) in enumerate(patches, 1):
        one = known.get((name, asked_of(scope)))
        if one is None:
            one = judged(name, base, patch, scope)
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(one)) + "\n")
        chosen.append(one)
        complaint = f"\n{one.complaint}" if one.complaint else ""
        line = f"{number}/{len(patches)} {name}: {one.outcome}, {one.seconds:.0f} s{complaint}"
        print(line, file=sys.stderr)  # noqa: T201 - a program's progress
    return chosen


def asked_of(scope: Sequence[str]) -> str:
    """A scope as the results name it."""
    return " ".join(scope) or "all"


def processor_minutes(answers: Sequence[Judged]) -> str:
    """A line that says how much time of processors the answers took."""
    builds = sum(answer.build_processor_seconds for answer in answers) / 60
    judgements = sum(answer.judge_processor_seconds for answer in answers) / 60
    return f"Processor time: {builds:.1f} min of builds, {judgements:.1f} min of judgements"


def _processor_seconds() -> float:
    """Time of processors of all programs that were started here, and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _blklab(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "blklab", *arguments]
    return subprocess.run(command, capture_output=True, check=False, text=True, errors="replace")


def _read(results: Path) -> dict[tuple[str, str], Judged]:
    if not results.exists():
        return {}
    found = [_judged_of(json.loads(line)) for line in results.read_text(encoding="utf-8").splitlines()]
    return {(one.name, one.asked_of): one for one in found}


def _judged_of(fields: dict[str, Any]) -> Judged:
    lists = {name: tuple(fields[name]) for name in ("slower", "faster")}
    return Judged(**{**fields, **lists})


def only_scheduler(patch: Path) -> str | None:
    """The scheduler whose files are all that a patch touches; None if there are others."""
    lines = patch.read_text(encoding="utf-8").splitlines()
    touched = {line.removeprefix("+++ b/") for line in lines if line.startswith("+++ b/")}
    owners = [name for name, files in SCHEDULER_FILES.items() if touched and touched <= set(files)]
    return owners[0] if owners else None


def _answers(answers: list[dict[str, object]], outcome: str) -> tuple[str, ...]:
    chosen = [answer for answer in answers if answer["outcome"] == outcome]
    chosen.sort(key=lambda answer: float(str(answer["speed"])), reverse=outcome == "faster")
    return tuple(
        f"{answer['disk']}/{answer['scheduler']}/{answer['load']} {answer['job']} {answer['metric']} "
        f"x{float(str(answer['speed'])):.2f}"
        for answer in chosen
    )
