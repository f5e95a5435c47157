"""`blklab kernel bisect`: which commit made the kernel slower?"""

from __future__ import annotations

from typing import Any

import click

from blklab.cli.commands import described_command
from blklab.cli.judge import scope_options
from blklab.cli.options import json_option, quiet_option


@described_command(
    name="bisect",
    examples=(
        ("between two releases", "blklab kernel bisect --good v6.11 --bad v6.12 --repo ~/linux"),
        ("one scheduler's questions only", "blklab kernel bisect --good v6.11 --bad v6.12 -s bfq"),
        ("with the result as JSON", "blklab kernel bisect --good v6.11 --bad HEAD --json bisect.json"),
    ),
)
@click.option("--good", metavar="COMMIT", required=True, help="A commit that is fast.")
@click.option("--bad", metavar="COMMIT", required=True, help="A later one that is slower.")
@click.option("--repo", metavar="PATH", default=".", show_default=True, help="The kernel's git repository.")
@scope_options
@json_option
@quiet_option
def command(**arguments: Any) -> int:
    """Find the commit that made the kernel slower.

    git chooses the commits, in a worktree of its own; each is built from the objects of the one before and
    judged against the good one, as `blklab kernel judge` does. Commits that cannot be built are left out.
    """
    from blklab.cli import bisecting  # noqa: PLC0415 - a Tab on the flags need not wait for it

    return bisecting.bisect_and_show(**arguments)
