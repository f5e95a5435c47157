"""Writes man pages and completion scripts: ``python -m blklab.cli.reference SHARE``.

SHARE is laid out as ``PREFIX/share``, where a package installs its content.
"""

from __future__ import annotations

import sys
from pathlib import Path

from blklab.cli.reference.installed import write_shared_files

if len(sys.argv) != 2:
    sys.exit("usage: python -m blklab.cli.reference FOLDER")
write_shared_files(Path(sys.argv[1]))
