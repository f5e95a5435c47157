"""A published study on a real kernel in virtual time."""

from __future__ import annotations

import pytest

from blklab.records.store import Store
from blklab.studies import study_named
from blklab.studies.replication.expectations import expected_of, unmet
from blklab.studies.replication.pages import SilentObserver
from blklab.studies.replication.protocol import Asked
from blklab.studies.replication.run import carry_out
from smaller_studies import with_sizes

pytestmark = pytest.mark.usefixtures("real_guest")

FEWER: dict[str, dict[str, object]] = {
    "tests": {"uml_area": "32m", "uml_cached_runtime": "20ms"},
    "runs": {"uml_as_printed": 2, "uml_repeats": 2},
    "busy_disk": {"quick_repeats": 3},
}
"""Tables of set-up.toml as far as they differ: a guest boots for every run."""


def test_fifteen_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What must come out of the study on a kernel does, with fewer and shorter runs."""
    with_sizes(monkeypatch, FEWER)
    with Store.opened("sqlite://") as store:
        finding = carry_out(study_named("hdparm-fifteen"), Asked("uml", quick=True), store, SilentObserver())
    for record in finding.records.values():
        assert [sample.error for sample in record.samples if sample.status != "ok"] == []
        assert {sample.engine["kernel"]["name"] for sample in record.samples} == {"stock"}
    assert unmet(expected_of(finding.published, "uml"), finding.result) == []
