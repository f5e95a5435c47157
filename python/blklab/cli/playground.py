"""`blklab playground`: a page in which simulated disks and schedulers can be watched and changed."""

from __future__ import annotations

import shlex

from blklab.cli.browser import open_page
from blklab.cli.commands import described_command
from blklab.cli.options import open_option, output_option
from blklab.cli.output import require_own_page, require_writable, write_text
from blklab.labs.playground.page import render_playground
from blklab.report.terminal import console_out

_PAGE = "playground.html"


@described_command(
    name="playground",
    examples=(
        ("the page, in this folder", "blklab playground"),
        ("under another name, opened in the browser", "blklab playground -o lesson.html --open"),
        ("the page on standard output", "blklab playground -o -"),
    ),
)
@output_option(f"File to write; - for standard output. Default: {_PAGE}.")
@open_option
def command(*, output: str | None, opens: bool) -> None:
    """Write the playground, a self-contained page that shows a simulated disk and its scheduler at work.

    Open the file in a browser; it needs no network. Its lessons set scenes and say what to watch.
    """
    require_writable(output)
    if output is None:
        require_own_page(_PAGE, "--output")
        output = _PAGE
    write_text(output, render_playground())
    if output != "-":
        opening = "" if opens else " (open it in a browser)"
        console_out().print(f"page: {shlex.quote(output)}{opening}", soft_wrap=True)
        if opens:
            open_page(output)
