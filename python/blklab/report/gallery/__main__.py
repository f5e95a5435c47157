"""Draws the gallery and fills it into a page: ``python -m blklab.report.gallery PAGE``.

A picture's position in the page is ``<!-- picture: SCHEDULER -->`` … ``<!-- end -->``. The files go to
``images/schedulers`` beside the page.
"""

from __future__ import annotations

import sys
from pathlib import Path

from blklab.report.gallery.page import filled, pictures

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m blklab.report.gallery PAGE")
    page = Path(sys.argv[1])
    text = page.read_text(encoding="utf-8")
    for name, drawing in pictures(text).items():
        file = page.parent / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(drawing, encoding="utf-8")
    page.write_text(filled(text), encoding="utf-8")
