"""`blklab kernel bisect`: builds and judges commits until the first slower one is known."""

from __future__ import annotations

import json
from pathlib import Path

from blklab.cli.judgement_progress import JudgementDisplay
from blklab.cli.output import require_writable, write_text
from blklab.errors import ExitCode, KernelBuildError, KernelLacksError, KernelSourceError, RunFailedError
from blklab.guests.kernels.building import BuildRequest, build
from blklab.labs.judgement.bisection import Found, Step, bisect
from blklab.labs.judgement.judge import judge
from blklab.labs.judgement.questions import Scope
from blklab.progress.build import BuildDisplay
from blklab.report.terminal import console_out, print_note

BASE, STEP = "bisect-good", "bisect-step"
"""Names of the kernels that are built on the way."""
SCHEMA = "blklab.bisect/1"


def bisect_and_show(
    *, good: str, bad: str, repo: str, scope: Scope, json_file: str | None, quiet: bool
) -> int:
    """Finds the commit, and prints and writes it."""
    require_writable(json_file)

    def judge_tree(tree: Path, commit: str) -> Step:
        try:
            with BuildDisplay(quiet=quiet) as display:
                build(BuildRequest(STEP, str(tree)), display)
        except (KernelBuildError, KernelLacksError, KernelSourceError) as error:
            print_note(f"{commit[:12]} is left out: {error.message}")
            return "skip"
        with JudgementDisplay(quiet=quiet) as progress:
            judged = judge(BASE, STEP, progress, scope)
        step: Step = "bad" if judged.worse else "good"
        if not quiet:
            print_note(f"{commit[:12]} is {'slower' if judged.worse else 'not slower'}")
        return step

    found = bisect(Path(repo), good, bad, lambda tree: _build_base(tree, quiet=quiet), judge_tree)
    _show(found, json_file)
    return ExitCode.OK


def _build_base(tree: Path, *, quiet: bool) -> None:
    with BuildDisplay(quiet=quiet) as display:
        build(BuildRequest(BASE, str(tree)), display)


def _show(found: Found, json_file: str | None) -> None:
    if json_file is not None:
        steps = [{"commit": commit, "step": step} for commit, step in found.steps]
        content = {
            "schema": SCHEMA,
            "first_slower": found.commit,
            "candidates": list(found.candidates),
            "steps": steps,
        }
        write_text(json_file, json.dumps(content, indent=1) + "\n")
    if json_file == "-":
        return
    if found.commit is None:
        raise RunFailedError(
            "the first slower commit is one of those that cannot be built: " + ", ".join(found.candidates)
        )
    console_out().print(f"{found.commit} is the first slower commit", soft_wrap=True)
