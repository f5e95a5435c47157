"""The study iozone-raid10 in a guest: btrfs raid10 over four modelled disks."""

from __future__ import annotations

import pytest

from blklab.errors import MissingToolError
from blklab.experiment.blocks import NullRunObserver
from blklab.experiment.pipeline import compare
from blklab.guests.programs import program_files
from blklab.labs.studies import replicable_study
from blklab.labs.studies.iozone_raid10.experiments import DIRECT_TESTS, experiments
from blklab.labs.studies.iozone_raid10.rates import measured_rates
from blklab.labs.studies.replication.expectations import expected_of
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.report.html import render_studies_html
from blklab.labs.studies.replication.run import run_study
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.records.store import Store
from blklab.spec.schedulers import parse_scheduler_choices
from study_expectations import unmet

NAME = "iozone-raid10"


@pytest.fixture(autouse=True)
def btrfs(real_guest: object) -> None:
    try:
        program_files(["mkfs.btrfs"])
    except MissingToolError as error:
        pytest.skip(error.message)


def test_all_four_disks_share_the_work() -> None:
    """A tiny version: one record size under two schedulers, once."""
    printed, *_ = experiments(StudyOptions("uml", quick=True), StudyFolder(NAME))
    spec = printed.spec.model_copy(
        update={
            "schedulers": parse_scheduler_choices("none,bfq"),
            "workloads": [one for one in printed.spec.workloads if one.name == "direct-1024k"],
        }
    )
    with Store.opened("sqlite://") as store:
        record = compare(spec, store, NullRunObserver())
    for sample in record.samples:
        assert sample.error is None
        served = [member["requests"] for member in sample.engine["members"]]
        assert len(served) == 4
        # One process reads one copy of everything: half of the disks do the reading, all do the writing.
        assert min(served) > 0.2 * max(served)
    rates = measured_rates(record)
    none, bfq = (choice.label for choice in record.spec.schedulers)
    for test in DIRECT_TESTS:
        assert rates[bfq, test, 1024] == pytest.approx(rates[none, test, 1024], rel=0.05)


@pytest.mark.slow
def test_what_must_come_out_does() -> None:
    with Store.opened("sqlite://") as store:
        finding = run_study(replicable_study(NAME), StudyOptions("uml", quick=True), store, NullRunObserver())
    assert unmet(expected_of(finding.folder, "uml"), finding.result) == []
    page = render_studies_html([finding])
    # Heat maps of rates and differences and a surface, of the published figures and of ours.
    assert len(finding.result.pictures) == 6
    assert all(picture.title in page for picture in finding.result.pictures)
