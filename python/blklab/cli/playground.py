"""`blklab playground`: a page in which simulated disks and schedulers can be watched and changed."""

from __future__ import annotations

import shlex

import click

from blklab.cli.output import console_out, require_writable, write_text
from blklab.playground.page import render_playground


@click.command(name="playground")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    default="playground.html",
    show_default=True,
    help="File to write; - for standard output.",
)
def command(*, output: str) -> None:
    """Write the playground, a self-contained page that shows a simulated disk and its scheduler at work.

    Open the file in a browser; it needs no network. Its lessons set scenes and say what to watch.
    """
    require_writable(output)
    write_text(output, render_playground())
    if output != "-":
        console_out().print(f"page: {shlex.quote(output)}", soft_wrap=True)
