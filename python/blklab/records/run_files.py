"""Files that belong to one run; a run's name never leads out of their folder."""

from __future__ import annotations

from pathlib import Path

from blklab.records.locations import default_report_folder
from blklab.records.run_ids import check_run_id
from blklab.spec.folders import data_folder


def run_files_folder(run_id: str) -> Path:
    """The folder of the files that belong to a run: ``blklab/runs/RUN`` in the XDG data folder.

    Raises:
        DataError: if the text cannot be the name of a run.
    """
    return data_folder() / "runs" / check_run_id(run_id)


def default_report_file(run_id: str) -> Path:
    """The run's report: ``blklab/reports/RUN.html`` in the XDG data folder.

    Raises:
        DataError: if the text cannot be the name of a run.
    """
    return default_report_folder() / f"{check_run_id(run_id)}.html"
