"""Published studies on this machine: a loop device, its own schedulers, hdparm where it is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.backends import host
from blklab.experiment.blocks import NullRunObserver
from blklab.experiment.pipeline import compare
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.run import run_study
from blklab.linux.load.hdparm import find_hdparm
from blklab.records.store import Store
from host.conftest import READ, Filesystem, opened, work
from real_devices import own_loops
from smaller_studies import smaller_copy

pytestmark = pytest.mark.root

BLOCKS = 3
AGREEMENT, BUFFERED, BUFFERED_JOB = "hdparm-and-job", "buffered-reads", "buffered-reads-as-job"


def test_a_study_on_a_loop_device(disk_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without hdparm, whose tests take three seconds at any size."""
    monkeypatch.setattr(host, "find_hdparm", lambda: None)
    study = smaller_copy(
        tmp_path,
        "hdparm-fifteen",
        {
            'host_scratch = "1g"': 'host_scratch = "96m"',
            'host = "1g" }': 'host = "48m" }',
            'host = "3s" }': 'host = "0s" }',
            'quick = "500ms", uml = "100ms" }': 'quick = "100ms" }',
            "blocks = { full = 15, quick = 5, uml = 2 }": "blocks = 2",
            "blocks = { full = 15, quick = 8, uml = 3 }": "blocks = 2",
            "blocks = { full = 15, quick = 8, uml = 8 }": "blocks = 2",
            'host = "256m" }': 'host = "16m" }',
            'host = "5s" }': 'host = "200ms" }',
        },
    )
    options = StudyOptions("host", quick=True, directory=str(disk_folder))
    with Store.opened("sqlite://") as store:
        finding = run_study(study, options, store, NullRunObserver())
    for record in finding.records.values():
        assert [sample.error for sample in record.samples if sample.status != "ok"] == []
        for sample in record.samples:
            in_force = [value for name, value in sample.settings.items() if name.endswith("/scheduler")]
            assert in_force == [sample.cell.scheduler.removesuffix("-tuned")]
            idle = [value for name, value in sample.settings.items() if name.endswith("/slice_idle")]
            assert idle == {"bfq": ["8"], "bfq-tuned": ["20"]}.get(sample.cell.scheduler, [])
        assert any("hdparm is not installed" in one for one in record.warnings) == (
            record is not finding.records["busy-disk"]
        )
    assert finding.result.statement("order-made-the-order").outcome == "holds"
    for value in finding.result.values:
        if value.ours is None:
            # A job beside others on a busy machine may end no I/O within its 200 ms.
            assert value.not_asked == "no I/O ended"
        else:
            assert value.ours.value >= 0
    assert own_loops(disk_folder) == []


@pytest.mark.slow
def test_hdparm_and_its_job_are_compared_in_pairs(disk_folder: Path, tmp_path: Path) -> None:
    """Both read a loop device over a file on the disk.

    How well they agree depends on the machine's other work; `blklab study run` reports it.
    """
    if find_hdparm() is None:
        pytest.skip("hdparm is not installed")
    study = smaller_copy(
        tmp_path,
        "hdparm-four-schedulers",
        {
            'host_scratch = "1g"': 'host_scratch = "256m"',
            'values = { area = "1g"': 'values = { area = "256m"',
            "blocks = { full = 12, quick = 4 }": f"blocks = {BLOCKS}",
        },
    )
    options = StudyOptions("host", quick=True, directory=str(disk_folder))
    found = study.experiments(options, study.files())
    spec = next(one.spec for one in found if one.name == AGREEMENT)
    with Store.opened("sqlite://") as store:
        record = compare(spec, store, NullRunObserver())
    assert [sample.error for sample in record.samples if sample.status != "ok"] == []
    engines = {(one.cell.workload, one.engine["name"]) for one in record.samples}
    assert engines == {(BUFFERED, "hdparm -t"), (BUFFERED_JOB, "fio")}
    result = study.read(options, study.files(), {AGREEMENT: record})
    statement = result.statement("job-like-hdparm")
    assert statement.found
    assert statement.why.startswith(f"{2 * BLOCKS} pairs")
    ratio = result.value("hdparm -t and the job that emulates it", "the job over hdparm -t, in pairs").ours
    assert ratio is not None and ratio.value > 0
    assert own_loops(disk_folder) == []


def test_files_are_no_device_for_hdparm(ext4: Filesystem) -> None:
    """In a directory the job of such a workload runs, and a warning says so."""
    workload = work(f"; tool: hdparm -t\n{READ}")
    with opened(str(ext4.folder)) as session:
        warnings = session.check([], [workload])
    assert any("fio jobs emulate hdparm -t instead" in one for one in warnings)
