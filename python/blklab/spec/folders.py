"""The folder of a person's own data."""

from __future__ import annotations

import os
from pathlib import Path


def data_folder() -> Path:
    """The folder ``blklab`` in the XDG data folder. It need not exist."""
    data_home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data_home) / "blklab"
