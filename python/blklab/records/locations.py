"""Where runs and reports are kept unless a person says otherwise."""

from __future__ import annotations

import os
from pathlib import Path

STORE_VARIABLE = "BLKLAB_STORE"


def default_store_url() -> str:
    """The store named by ``BLKLAB_STORE``, else ``blklab/runs.sqlite`` in the XDG data folder."""
    if named := os.environ.get(STORE_VARIABLE):
        return named
    return f"sqlite:///{_data_folder() / 'runs.sqlite'}"


def default_report_folder() -> Path:
    """The folder ``blklab/reports`` in the XDG data folder."""
    return _data_folder() / "reports"


def _data_folder() -> Path:
    data_home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data_home) / "blklab"
