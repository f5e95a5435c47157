"""A published study on a real kernel in virtual time."""

from __future__ import annotations

import pytest

from blklab.labs.studies import replicable_study
from blklab.labs.studies.replication.expectations import expected_of, unmet
from blklab.labs.studies.replication.options import Scaled, StudyOptions
from blklab.labs.studies.replication.run import NullRunObserver, run_study
from blklab.records.store import Store
from smaller_studies import with_sizes

pytestmark = pytest.mark.usefixtures("real_guest")

FEWER: dict[str, dict[str, object]] = {
    "tests": {"area": Scaled[str](full="32m"), "cached_runtime": Scaled[str](full="20ms")},
    "runs": {"as_printed": Scaled[int](full=2), "blocks": Scaled[int](full=2)},
    "busy_disk": {"blocks": Scaled[int](full=3)},
}
"""Tables of set-up.toml as far as they differ: a guest boots for every run."""


def test_fifteen_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The expected results appear on a kernel, with fewer and shorter runs."""
    with_sizes(monkeypatch, FEWER)
    with Store.opened("sqlite://") as store:
        finding = run_study(
            replicable_study("hdparm-fifteen"), StudyOptions("uml", quick=True), store, NullRunObserver()
        )
    for record in finding.records.values():
        assert [sample.error for sample in record.samples if sample.status != "ok"] == []
        assert {sample.engine["kernel"]["name"] for sample in record.samples} == {"stock"}
    assert unmet(expected_of(finding.folder, "uml"), finding.result) == []
