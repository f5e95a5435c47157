"""`blklab kernel module`: a scheduler as a module of the running kernel, and the lists of such modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from blklab.cli.commands import described_command
from blklab.cli.gate import no_gate_option
from blklab.cli.options import json_option, quiet_option
from blklab.labs.gate import SEEDS
from blklab.modules.scheduler_source import STOCK


@described_command(
    name="module",
    examples=(
        ("a patched kyber beside the stock one", "blklab kernel module mine --patch my-idea.patch"),
        ("an unchanged copy, as a placebo", "blklab kernel module copy --scheduler kyber"),
        (
            "what would be built, from which files",
            "blklab kernel module mine --patch my-idea.patch --dry-run",
        ),
    ),
)
@click.argument("name")
@click.option(
    "--patch",
    "patches",
    metavar="FILE",
    multiple=True,
    help="Patch to the scheduler's files, mailbox or folder of patches. Repeatable; applied in that order.",
)
@click.option(
    "-s",
    "--scheduler",
    type=click.Choice(list(STOCK)),
    help="Scheduler that the module is a variant of. Default: the one that the patches change.",
)
@click.option("--scheduler-file", metavar="FILE.c", help="Scheduler that is one file, instead of a patch.")
@click.option(
    "--source",
    metavar="DIR|ARCHIVE",
    help="Source that the kernel was built from. Default: the distribution's package of that version.",
)
@click.option(
    "--headers",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Headers of the kernel. Default: /lib/modules/RELEASE/build.",
)
@click.option("--release", metavar="R", help="Kernel that the module is for. Default: the running one.")
@click.option(
    "--btf",
    "types",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Type information of that kernel, or its vmlinux. Default: /sys/kernel/btf/vmlinux.",
)
@click.option(
    "--unproven",
    is_flag=True,
    help="Build even if nothing proves that the headers fit the kernel; such a module may corrupt memory.",
)
@click.option(
    "--dry-run", is_flag=True, help="Show what would be built, and from which files; build nothing."
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=SEEDS,
    show_default=True,
    help="Seeds of torture that the gate asks for.",
)
@no_gate_option
@quiet_option
@json_option
def module_command(**arguments: Any) -> None:
    """Build a patched scheduler as a module of the running kernel, under the name NAME.

    Building takes seconds and needs no reboot: the module is loaded beside the original, and `blklab compare
    -s kyber,kyber@NAME` switches between them. The headers are compared with the kernel's own type
    information first. Then the same changes pass the gate: a guest of the nearest release serves all loads of
    `blklab kernel judge` and a torture. That takes minutes once, and ends with 4 if there is a mistake;
    --no-gate leaves it to the comparison.
    """
    from blklab.cli import module_builds  # noqa: PLC0415 - a Tab on the flags need not wait for it

    module_builds.build_and_show(**arguments)
