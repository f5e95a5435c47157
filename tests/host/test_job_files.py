"""Job files of other people on a real block device: fio's own examples, and the logs that they ask for."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from blklab.cli import run
from blklab.errors import ExitCode
from blklab.records.run_files import run_files_folder
from blklab.spec.workloads import parse_workload
from fio_examples import FOLDER, smaller
from host.conftest import RUN_ID, Filesystem, cell, opened, work

pytestmark = pytest.mark.root

TARGET = "loop:64m,dir=/dev/shm"
EXAMPLES = (
    "backwards-read", "basic-verify", "butterfly", "cmdprio-bssplit", "enospc-pressure", "exitwhat",
    "fio-seq-RW", "flow", "fsx", "jesd219", "numa", "tiobench-example", "waitfor",
)  # fmt: skip
LOGGING = (
    "[a]\nrw=randread\nsize=1m\nnumjobs=2\nwrite_bw_log=/elsewhere/mine\nwrite_lat_log\nwrite_iolog=ios\n"
)


@pytest.mark.skipif(not FOLDER.is_dir(), reason="fio's examples are not installed (Debian: fio-examples)")
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_fios_runs(name: str) -> None:
    run_example(name, TARGET)


@pytest.mark.skipif(not FOLDER.is_dir(), reason="fio's examples are not installed (Debian: fio-examples)")
def test_an_example_that_allocates_space_runs_on_files(ext4: Filesystem) -> None:
    run_example("falloc", str(ext4.folder))


def run_example(name: str, target: str) -> None:
    workload = parse_workload(smaller(name), name=name, source=f"{name}.fio")
    with opened(target) as session:
        session.prepare([workload], lambda _: None)
        sample = session.run(cell("none", workload))
    assert sample.status == "ok", sample.error
    assert [job.name for job in sample.jobs] == [job.name for job in workload.jobs]
    assert all(job.directions for job in sample.jobs if not any(other.exitall for other in workload.jobs))


def test_logs_are_kept_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    workload = work(LOGGING)
    with opened(TARGET) as session:
        session.prepare([workload], lambda _: None)
        sample = session.run(cell("none", workload))
    (kept,) = run_files_folder(RUN_ID).iterdir()
    assert kept.is_relative_to(tmp_path)
    assert [warning for warning in sample.warnings if str(kept) in warning]
    names = {path.name for path in kept.iterdir()}
    assert {"mine_bw.1.log", "mine_bw.2.log", "a_clat.1.log", "a_clat.2.log", "ios.1", "ios.2"} <= names
    for clone in (1, 2):
        lines = (kept / f"ios.{clone}").read_text().splitlines()
        assert sum(" read " in line for line in lines) == 256


def test_removing_a_run_removes_its_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    file = tmp_path / "mine.fio"
    file.write_text(LOGGING)
    store = f"sqlite:///{tmp_path / 'runs.db'}"
    arguments = ["compare", TARGET, "-s", "none,mq-deadline", "-w", str(file), "--blocks", "2"]
    run([*arguments, "--store", store])
    kept = [path for path in tmp_path.rglob("ios.*") if path.is_file()]
    assert len(kept) == 2 * 2 * 2, capsys.readouterr()
    (folder,) = {next(itertools.islice(path.parents, 1, None)) for path in kept}
    assert run(["runs", "--remove", folder.name, "--store", store]) == ExitCode.OK
    assert not folder.exists()
