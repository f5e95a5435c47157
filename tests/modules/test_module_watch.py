"""The kernel's log beside a run with modules: a mistake ends the load that is under way."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from blklab.backends import host_modules
from blklab.backends.host_modules import HostModules
from blklab.errors import KernelMistakeError, RunFailedError
from blklab.experiment.pipeline import compare
from blklab.experiment.rounds import Rounds
from blklab.linux.load.load_process import REQUIRED_PROGRAMS, load_process
from blklab.linux.machine.kernel_mistakes import MistakeWatch
from blklab.linux.processes.programs import find_program
from blklab.progress.experiment import ProgressDisplay
from blklab.records.store import Store
from blklab.spec.request import SpecValues, build_specs

MISTAKE = "4,812,99,-;WARNING: CPU: 1 PID: 7 at block/blk-mq.c:1 blk_mq_start_request+0x1\n"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands in for the kernel's log."""
    path = tmp_path / "kmsg"
    path.write_text("")
    monkeypatch.setattr(host_modules, "MistakeWatch", lambda: MistakeWatch(path))
    return path


def test_a_mistake_ends_the_load_that_is_under_way(log: Path, tmp_path: Path) -> None:
    if any(find_program(name) is None for name in REQUIRED_PROGRAMS):
        pytest.skip("needs util-linux")
    modules = HostModules()
    modules.watch(["blklab_mine"])
    begun = time.monotonic()
    try:
        with load_process(["sleep", "60"], tmp_path, limit_s=60, too_long="too long") as process:
            with log.open("a") as lines:
                lines.write(MISTAKE)
            assert process.wait().returncode != 0
        assert time.monotonic() - begun < 30
        with pytest.raises(KernelMistakeError, match=r"module blklab_mine was loaded: WARNING: CPU: 1"):
            modules.check()
        with pytest.raises(KernelMistakeError):
            modules.check()
    finally:
        modules.close()


def test_a_mistake_is_told_at_once_and_once(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    modules = HostModules()
    modules.watch(["blklab_mine"])
    with log.open("a") as lines:
        lines.write(MISTAKE)
    time.sleep(0.9)
    modules.close()
    assert capfd.readouterr().err.count("error: the kernel reported a mistake: WARNING: CPU: 1") == 1


def test_a_mistake_is_the_error_of_a_load_that_cannot_be_killed(log: Path) -> None:
    modules = HostModules()
    modules.watch(["blklab_mine"])
    try:
        with pytest.raises(RunFailedError, match="cannot be killed"), modules.blamed():
            raise RunFailedError("fio cannot be killed")
        with log.open("a") as lines:
            lines.write(MISTAKE)
        with pytest.raises(KernelMistakeError, match="WARNING: CPU: 1"), modules.blamed():
            raise RunFailedError("fio cannot be killed")
    finally:
        modules.close()


def test_without_a_mistake_a_load_goes_on(log: Path, tmp_path: Path) -> None:
    modules = HostModules()
    modules.watch(["blklab_mine"])
    with log.open("a") as lines:
        lines.write("6,813,99,-;sd 2:0:0:0: [sda] Attached SCSI disk\n")
    time.sleep(0.6)
    modules.check()
    modules.close()
    assert modules._watch is not None and modules._watch._thread is not None
    assert not modules._watch._thread.is_alive()


def test_the_record_says_why_it_ended(tmp_path: Path) -> None:
    spec = build_specs(
        SpecValues(targets=["sim:nvme-tlc"], workloads=["many-readers"], schedulers="none,kyber", blocks=1)
    )[0]

    def stop(*_: Any, **__: Any) -> None:
        raise KernelMistakeError("the kernel reported a mistake while the module blklab_mine was loaded: BUG")

    with Store.opened(f"sqlite:///{tmp_path}/runs.sqlite") as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rounds, "run", stop)
        with pytest.raises(KernelMistakeError):
            compare(spec, store, ProgressDisplay(quiet=True))
        (summary,) = store.list_runs()
        record = store.load(summary.run_id)
    assert record.state == "failed"
    assert record.warnings[-1].startswith("the experiment was ended: the kernel reported a mistake")
