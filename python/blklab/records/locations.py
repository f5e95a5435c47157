"""Default places of stored runs and reports."""

from __future__ import annotations

import os
from pathlib import Path

from blklab.spec.folders import data_folder

STORE_VARIABLE = "BLKLAB_STORE"


def default_store_url() -> str:
    """The store named by ``BLKLAB_STORE``, else ``blklab/runs.sqlite`` in the XDG data folder."""
    if named := os.environ.get(STORE_VARIABLE):
        return named
    return f"sqlite:///{data_folder() / 'runs.sqlite'}"


def default_report_folder() -> Path:
    """The folder ``blklab/reports`` in the XDG data folder."""
    return data_folder() / "reports"
