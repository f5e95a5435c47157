"""A published study on a real kernel in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.experiment.blocks import NullRunObserver
from blklab.labs.studies.replication.expectations import expected_of
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.run import run_study
from blklab.records.store import Store
from smaller_studies import smaller_copy
from study_expectations import unmet

pytestmark = pytest.mark.usefixtures("real_guest")

FEWER = {
    'uml = "128m"': 'uml = "32m"',
    'uml = "100ms"': 'uml = "20ms"',
    "blocks = { full = 15, quick = 8, uml = 3 }": "blocks = 2",
    "blocks = { full = 15, quick = 8, uml = 8 }": "blocks = 3",
}
"""Texts of study.toml as far as they differ: a guest boots for every run."""


def test_fifteen_runs(tmp_path: Path) -> None:
    """The expected results appear on a kernel, with fewer and shorter runs, from a folder of one's own."""
    study = smaller_copy(tmp_path, "hdparm-fifteen", FEWER)
    with Store.opened("sqlite://") as store:
        finding = run_study(study, StudyOptions("uml", quick=True), store, NullRunObserver())
    for record in finding.records.values():
        assert [sample.error for sample in record.samples if sample.status != "ok"] == []
        assert {sample.engine["kernel"]["name"] for sample in record.samples} == {"stock"}
    assert unmet(expected_of(finding.folder, "uml"), finding.result) == []
