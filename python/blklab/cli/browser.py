"""Opens a page that was written, for ``--open``."""

from __future__ import annotations

from pathlib import Path

from blklab.report.terminal import print_note


def open_page(file: str) -> None:
    """Opens a page in the desktop's browser; without one, says where the page is."""
    import webbrowser  # noqa: PLC0415 - needed only here

    try:
        opened = webbrowser.open(Path(file).resolve().as_uri())
    except webbrowser.Error:
        opened = False
    if not opened:
        print_note(f"there is no browser to open {file} with")
