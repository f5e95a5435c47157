"""`blklab kernel judge --module`: a module against its original on a scratch device of this machine."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import partial

from blklab.cli.judgement_progress import JudgementDisplay
from blklab.cli.output import write_text
from blklab.errors import ExitCode, RefusedError, UsageError
from blklab.labs.gate.arms import gate_module
from blklab.labs.judgement.host_document import HostJudgementDocument
from blklab.labs.judgement.on_host import host_page, judge_on_host, require_scratch
from blklab.linux.machine.requirements import require_root
from blklab.modules.loading import build_copies, find_arms
from blklab.modules.store import find_module
from blklab.progress.build import BuildDisplay
from blklab.progress.gate import GateDisplay
from blklab.report.terminal import console_out
from blklab.spec.schedulers import COPY, copy_name, parse_scheduler_choice


def judge_module(
    name: str,
    target: str,
    loads: Sequence[str],
    output: str | None,
    json_file: str | None,
    *,
    no_gate: bool,
    quiet: bool,
) -> int:
    """Asks the questions, prints the page, and gives the exit code.

    Raises:
        UnknownNameError: if there is no such module for the running kernel.
        RefusedError: if it has no original, or does not pass the gate.
        BlklabError: if the questions cannot be asked here.
    """
    require_scratch(target)
    scheduler, _, variant = name.partition("@")
    if variant:
        known = copy_name(scheduler) if variant == COPY else variant
        raise UsageError(
            f"--module takes the name of a module, and {name} is how an arm is written",
            hint=f"write --module {known}",
        )
    record = find_module(name).record
    if record.is_new:
        raise RefusedError(
            f"{name} is a scheduler of its own, so there is no original to judge it against",
            hint=f"compare it with others: blklab compare {target} -s mq-deadline,{record.scheduler}@{name}",
        )
    require_root("judging a module", instead="judge the patch in a guest: blklab kernel judge --patch FILE")
    original = parse_scheduler_choice(record.scheduler)
    arms = [original, parse_scheduler_choice(f"{record.scheduler}@{name}")]
    (module,) = find_arms(arms).modules
    if not no_gate:
        gate_module(module, partial(GateDisplay, quiet=quiet))
    if record.changes is not None:
        arms.append(parse_scheduler_choice(f"{record.scheduler}@copy"))
        with BuildDisplay(quiet=quiet) as building:
            build_copies(arms, building.announce)
    with JudgementDisplay(quiet=quiet) as display:
        judgement = judge_on_host(target, arms, display, loads)
    page = host_page(judgement)
    if output is not None:
        write_text(output, page)
    if json_file is not None:
        document = HostJudgementDocument.of(judgement, release=platform.release(), build=module.record.sha256)
        write_text(json_file, document.model_dump_json(by_alias=True, indent=1) + "\n")
    if "-" not in (output, json_file):
        console_out().lines(page.removesuffix("\n"))
    return ExitCode.SLOWER if judgement.worse and not judgement.withheld else ExitCode.OK
