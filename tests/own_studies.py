"""Studies of a reader's own: a folder with a description, and what a quick run of it finds."""

from __future__ import annotations

from pathlib import Path

from blklab.experiment.blocks import NullRunObserver
from blklab.labs.studies import study_in
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.report.finding import StudyFinding
from blklab.labs.studies.replication.run import run_study
from blklab.records.store import Store


def study_folder(folder: Path, *, claims: str, study: str, job: str, table: str) -> Path:
    """Makes a folder with ``readers.fio`` and the published values ``iops.csv``."""
    (folder / "published").mkdir(parents=True)
    for name, text in (
        ("claims.toml", claims),
        ("study.toml", study),
        ("readers.fio", job),
        ("published/iops.csv", table),
    ):
        (folder / name).write_text(text, "utf-8")
    return folder


def quick_run(folder: Path) -> StudyFinding:
    """A quick run on the simulator."""
    with Store.opened("sqlite://") as store:
        return run_study(study_in(folder), StudyOptions(quick=True), store, NullRunObserver())
