"""`blklab kernel judge`: builds what is asked for, judges it, and shows the page."""

from __future__ import annotations

import shlex
from itertools import chain

from blklab.backends import Workers
from blklab.cli.judge_module import judge_module
from blklab.cli.judgement_progress import JudgementDisplay
from blklab.cli.output import print_error, require_writable, write_text
from blklab.errors import (
    BlklabError,
    ExitCode,
    KernelBuildError,
    KernelLacksError,
    KernelSourceError,
    PatchError,
    UsageError,
)
from blklab.experiment.prerequisites import require_kernels
from blklab.labs.judgement.building import build_patched, build_source
from blklab.labs.judgement.document import JudgementDocument
from blklab.labs.judgement.judge import Judgement, judge
from blklab.labs.judgement.junit import judgement_suite
from blklab.labs.judgement.loads import TARGET
from blklab.labs.judgement.page import page_of
from blklab.labs.judgement.questions import Scope
from blklab.progress.build import BuildDisplay
from blklab.report.monitoring.junit import junit_xml
from blklab.report.terminal import console_err, console_out, print_note

BISECT_SKIP = 125
"""`git bisect run` leaves a commit out that exits with this."""
BISECT_STOP = 128
"""`git bisect run` stops at this and above."""


def judge_and_show(
    *,
    kernels: str,
    patches: tuple[str, ...],
    source: str | None,
    module: str | None,
    target: str | None,
    no_gate: bool,
    scope: Scope,
    output: str | None,
    for_bisect: bool,
    workers: Workers,
    json_file: str | None,
    junit_file: str | None,
    quiet: bool,
) -> int:
    """Judges, and prints and writes the page."""
    require_writable(output, json_file, junit_file)
    if module is not None:
        refused = {
            "--patch": patches,
            "--source": source,
            "--disk": scope.disks,
            "--scheduler": scope.schedulers,
            "--machine": scope.machine,
            "--bisect": for_bisect,
            "--junit": junit_file,
        }
        if given := [flag for flag, value in refused.items() if value]:
            raise UsageError(f"--module runs on this machine, and {given[0]} is for guests")
        return judge_module(
            module, target or TARGET, scope.loads, output, json_file, no_gate=no_gate, quiet=quiet
        )
    if target is not None:
        raise UsageError("--on names the device for a module", hint="add --module NAME")
    try:
        base, other = _kernels(kernels, patches, source, quiet=quiet)
        with JudgementDisplay(quiet=quiet) as display:
            judgement = judge(base, other, display, scope, workers=workers)
    except BlklabError as error:
        if not for_bisect:
            raise
        print_error(error.message, error.hint)
        unbuildable = (KernelBuildError, KernelLacksError, KernelSourceError, PatchError)
        return BISECT_SKIP if isinstance(error, unbuildable) else BISECT_STOP + error.exit_code
    if junit_file is not None:
        write_text(junit_file, junit_xml([judgement_suite(judgement)]))
    prints = "-" not in (output, json_file, junit_file)
    _show(judgement, output, json_file, prints=prints)
    if prints and not quiet:
        if output:
            print_note(f"page: {output}")
        tested = _tested(judgement.other.name, patches, source)
        step = _next_step(judgement, scope, tested, kept=output is not None)
        console_err().print(f"next: {step}", soft_wrap=True)
    if for_bisect:
        return int(judgement.worse)
    return ExitCode.SLOWER if judgement.worse else ExitCode.OK


def _kernels(kernels: str, patches: tuple[str, ...], source: str | None, *, quiet: bool) -> tuple[str, str]:
    """The names of both kernels; builds the other one if that was asked for."""
    base, *others = kernels.split(",")
    if len(others) + bool(patches) + (source is not None) != 1 or len(others) > 1:
        raise UsageError(
            "there is one kernel to judge",
            hint="name it (--kernel BASE,OTHER), or have it built with --patch FILE or --source DIR",
        )
    if others:
        return base, others[0]
    require_kernels([base])
    with BuildDisplay(quiet=quiet) as display:
        if source is not None:
            return base, build_source(base, source, display)
        return base, build_patched(base, patches, display)


def _next_step(judgement: Judgement, scope: Scope, tested: str, *, kept: bool) -> str:
    """The next step: ask what was left out, keep the page, or look for mistakes."""
    if left := list(judgement.not_asked):
        narrowed = [
            *(("--scheduler", name) for name in left),
            *(("--disk", name) for name in scope.disks),
            *(("--load", name) for name in scope.loads),
            *([("--machine", scope.machine)] if scope.machine else []),
        ]
        kernels = f"{judgement.base.name},{judgement.other.name}"
        return shlex.join(["blklab", "kernel", "judge", "--kernel", kernels, *chain(*narrowed)])
    if not kept:
        return "--output FILE keeps this page, to attach to a mail"
    if judgement.worse:
        return "change it and judge it again, in half the time: runs of the base are kept"
    return f"blklab kernel torture {tested} looks for mistakes"


def _tested(name: str, patches: tuple[str, ...], source: str | None) -> str:
    """The arguments with which a kernel is tortured; one of a patch or a tree is built with its checks."""
    if source is not None:
        return shlex.join(["--source", source])
    return shlex.join(list(chain(*(("--patch", patch) for patch in patches))) or [name])


def _show(judgement: Judgement, output: str | None, json_file: str | None, *, prints: bool) -> None:
    page = page_of(judgement)
    if output is not None:
        write_text(output, page)
    if json_file is not None:
        document = JudgementDocument.of(judgement)
        write_text(json_file, document.model_dump_json(by_alias=True, indent=1) + "\n")
    if prints:
        console_out().lines(page.removesuffix("\n"))
