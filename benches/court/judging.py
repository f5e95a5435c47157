"""Judges patches one after the other with `blklab judge`, and keeps the answers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

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
    began = time.monotonic()
    kernel = f"court-{name}"
    source = find(base).record.source
    build = ["kernel", "build", kernel, "--source", source, "--patch", str(patch), "--quiet"]
    done = _blklab(build)
    if done.returncode == 0:
        done = _blklab(["judge", "--kernel", f"{base},{kernel}", *scope, "--json", "-", "--quiet"])
        _blklab(["kernel", "remove", kernel])
    seconds = round(time.monotonic() - began, 1)
    asked_of = " ".join(scope) or "all"
    if done.returncode not in (0, 8):
        return Judged(name, asked_of, "failed", 0, 0, (), (), seconds, done.stderr.strip())
    document = json.loads(done.stdout)
    return Judged(
        name,
        asked_of,
        document["outcome"],
        document["questions"],
        document["identical"],
        _answers(document["answers"], "slower"),
        _answers(document["answers"], "faster"),
        seconds,
        same_bytes=document["same_bytes"],
    )


def judge_all(patches: Sequence[tuple[str, Path, Sequence[str]]], base: str, results: Path) -> list[Judged]:
    """Judges patches, each with its scope; those that the file of results has already are left out."""
    known = _read(results)
    for number, (name, patch, scope) in enumerate(patches, 1):
        if name not in known:
            known[name] = judged(name, base, patch, scope)
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(known[name])) + "\n")
        one = known[name]
        complaint = f"\n{one.complaint}" if one.complaint else ""
        line = f"{number}/{len(patches)} {name}: {one.outcome}, {one.seconds:.0f} s{complaint}"
        print(line, file=sys.stderr)  # noqa: T201 - a program's progress
    return [known[name] for name, *_ in patches]


def _blklab(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "blklab", *arguments]
    return subprocess.run(command, capture_output=True, check=False, text=True, errors="replace")


def _read(results: Path) -> dict[str, Judged]:
    if not results.exists():
        return {}
    lines = results.read_text(encoding="utf-8").splitlines()
    return {one.name: one for one in (Judged(**json.loads(line)) for line in lines)}


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
