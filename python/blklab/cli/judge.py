"""`blklab kernel judge`: is a change to the kernel faster, slower or the same, and for whom?"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from blklab.cli.commands import described_command
from blklab.cli.gate import no_gate_option
from blklab.cli.options import cluster_option, json_option, junit_option, output_option, quiet_option
from blklab.guests.kernels.names import DEFAULT_NAME
from blklab.labs.judgement.loads import LOADS, RUNTIME_NS, TARGET
from blklab.labs.judgement.questions import SCHEDULERS, Scope

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
def command(**arguments: Any) -> int:
    """Judge a change to the kernel by a fixed set of questions in virtual time.

    Each question is a load on a modelled disk under a scheduler, and every job of it is judged apart. The
    same change gives the same bytes everywhere. Exits with 8 if it is slower for anyone, or fails.

    With --module the questions are asked on a scratch device with this machine's real processors, eight
    rounds of each, beside an unchanged copy that must be equal to the original.
    """
    from blklab.cli import judging  # noqa: PLC0415 - a Tab on the flags need not wait for it

    return judging.judge_and_show(**arguments)
