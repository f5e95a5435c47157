"""`blklab kernel judge`: is a change to the kernel faster, slower or the same, and for whom?"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from blklab.backends import Workers
from blklab.cli.commands import described_command
from blklab.cli.gate import no_gate_option
from blklab.cli.judge_module import judge_module
from blklab.cli.judgement_progress import JudgementDisplay
from blklab.cli.options import cluster_option, json_option, junit_option, output_option, quiet_option
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
from blklab.guests.kernels.names import DEFAULT_NAME
from blklab.labs.judgement.building import build_patched, build_source
from blklab.labs.judgement.document import JudgementDocument
from blklab.labs.judgement.judge import Judgement, judge
from blklab.labs.judgement.junit import judgement_suite
from blklab.labs.judgement.loads import LOADS, RUNTIME_NS
from blklab.labs.judgement.on_host import TARGET
from blklab.labs.judgement.page import page_of
from blklab.labs.judgement.questions import SCHEDULERS, Scope
from blklab.progress.build import BuildDisplay
from blklab.report.monitoring.junit import junit_xml
from blklab.report.terminal import console_out, print_note

BISECT_SKIP = 125
"""`git bisect run` leaves a commit out that exits with this."""
BISECT_STOP = 128
"""`git bisect run` stops at this and above."""

_SCOPE = (
    (("--disk",), "disks", RUNTIME_NS, "about this modelled disk"),
    (("-s", "--scheduler"), "schedulers", SCHEDULERS, "about this scheduler"),
    (("--load",), "loads", LOADS, "with this load"),
)


def scope_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the options that narrow a judgement; the command gets the argument `scope`."""

    @functools.wraps(command)
    def with_scope(
        *,
        disks: tuple[str, ...],
        schedulers: tuple[str, ...],
        loads: tuple[str, ...],
        machine: str | None,
        **others: Any,
    ) -> int:
        return command(scope=Scope(disks, schedulers, loads, machine), **others)

    with_machine = click.option(
        "--machine",
        metavar="NAME|FILE",
        help="Cost table of the guests' processor, such as zero-cpu-time. Default: ordinary where both "
        "kernels can take one.",
    )
    decorated = with_machine(with_scope)
    for flags, name, choices, what in reversed(_SCOPE):
        # The names of loads are too many for one word, which is what a choice's usual placeholder is.
        help_text = f"Ask only {what}: {', '.join(choices)}. Repeatable. Default: all."
        option = click.option(
            *flags, name, type=click.Choice(list(choices)), metavar="NAME", multiple=True, help=help_text
        )
        decorated = option(decorated)
    return decorated


@described_command(
    name="judge",
    examples=(
        ("two guest kernels", "blklab kernel judge --kernel stock,mine"),
        ("a patch, which is built first", "blklab kernel judge --patch my-idea.patch -o judgement.txt"),
        ("a module of this machine, on a loop device", "blklab kernel judge --module mine"),
        (
            "one scheduler on one disk",
            "blklab kernel judge --kernel stock,mine -s mq-deadline --disk hdd-7200",
        ),
    ),
)
@click.option(
    "--kernel",
    "kernels",
    metavar="BASE[,OTHER]",
    default=DEFAULT_NAME,
    show_default=True,
    help="Guest kernel to compare with, and the one to judge.",
)
@click.option(
    "--patch",
    "patches",
    metavar="FILE",
    multiple=True,
    help="Judge BASE with this patch, mailbox or folder of patches. Repeatable.",
)
@click.option("--source", metavar="DIR", help="Judge this source tree as it is now, against BASE.")
@click.option(
    "--module",
    "module",
    metavar="NAME",
    help="Judge this module against its original, on a scratch device of this machine instead of guests; as "
    "root.",
)
@click.option(
    "--on",
    "target",
    metavar="TARGET",
    help=f"That device: loop:SIZE, /dev/nullbN or /dev/ublkbN. Default: {TARGET}.",
)
@no_gate_option
@scope_options
@output_option("Write the page to FILE too, to attach to a mail.")
@click.option(
    "--bisect",
    "for_bisect",
    is_flag=True,
    help="Exit as `git bisect run` expects: 0 not slower, 1 slower, 125 cannot be built.",
)
@cluster_option
@json_option
@junit_option
@quiet_option
def command(
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
    """Judge a change to the kernel by a fixed set of questions in virtual time.

    Each question is a load on a modelled disk under a scheduler, and every job of it is judged apart. The
    same change gives the same bytes everywhere. Exits with 8 if it is slower for anyone, or fails.

    With --module the questions are asked on a scratch device with this machine's real processors, eight
    rounds of each, beside an unchanged copy that must be equal to the original.
    """
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
        print_note(
            f"page: {output}" if output else "next: --output FILE keeps this page, to attach to a mail"
        )
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


def _show(judgement: Judgement, output: str | None, json_file: str | None, *, prints: bool) -> None:
    page = page_of(judgement)
    if output is not None:
        write_text(output, page)
    if json_file is not None:
        document = JudgementDocument.of(judgement)
        write_text(json_file, document.model_dump_json(by_alias=True, indent=1) + "\n")
    if prints:
        console_out().lines(page.removesuffix("\n"))
