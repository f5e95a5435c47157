"""Requests that guest kernels or other targets cannot fulfil are refused at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.cli import run
from blklab.cli.apply import resolve_run
from blklab.errors import RefusedError
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.records.store import Store
from blklab.testing.experiments import SchedulerBehaviour, make_experiment, make_spec


def _fails(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    assert run(list(arguments)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return " ".join(captured.err.split())


READS = "random-read-4k-qd32"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--kernel", "stock"), "does not run in a guest kernel, so it cannot use the kernel stock"),
        (("-s", "none,kyber@mine"), "it cannot use the kernel mine"),
        (("--generator", "fio"), "does not run in a guest kernel, so generator cannot be chosen"),
        (("--memory", "1g"), "does not run in a guest kernel, so memory cannot be chosen"),
    ],
)
def test_other_targets_have_no_guests(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert words in _fails(capsys, 2, "compare", "sim:fixed", "-w", READS, *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--kernel", "no-such-kernel"), "there is no kernel no-such-kernel"),
        (("--kernel", "stock,stock"), "'stock' is listed twice"),
        (("--kernel", "st:ock"), "does not name a kernel"),
        (("-s", "none@"), "does not name a kernel"),
        (("--generator", "dd"), "a guest's generator must be blkguest or fio, not 'dd'"),
        (("--time", "local"), "a guest's time must be virtual or host"),
        (("--filesystem", "vfat"), "a guest's filesystem must be ext4 or xfs or btrfs"),
        (("--memory", "1m"), "a guest's memory must be between 64.0 MiB and 64.0 GiB"),
        (("--precondition",), "--precondition works only on flash, and this device is of kind fixed"),
    ],
)
def test_bad_values(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str) -> None:
    assert words in _fails(capsys, 2, "compare", "uml:fixed", "-w", READS, *arguments)


def test_a_missing_kernel_names_the_command_that_builds_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said = _fails(capsys, 2, "compare", "uml:fixed")
    assert "there is no kernel stock" in said
    assert "`blklab kernel build` builds it" in said


@pytest.mark.usefixtures("real_guest")
def test_a_scheduler_that_no_kernel_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert "has no scheduler cfq" in _fails(capsys, 3, "run", "uml:fixed", READS, "--scheduler", "cfq")


@pytest.mark.usefixtures("real_guest")
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (("-s", "none,bfq:no_such_tunable=1"), "tunable no_such_tunable of bfq: no such option"),
        (("-s", "none,bfq:slice_idle=-1"), "slice_idle = -1: the kernel refused it"),
        (("-s", "none,bfq", "--queue", "nr_requests=100000"), "nr_requests = 100000: the kernel"),
        (("-s", "none,bfq", "--cgroup", "a:io.max=riops=9"), "no job joins the control group 'a'"),
    ],
)
def test_settings_are_judged_before_anything_is_stored(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, setting: tuple[str, ...], words: str
) -> None:
    store = f"{tmp_path}/store.db"
    assert words in _fails(capsys, 2, "compare", "uml:fixed", "-w", READS, "--store", store, *setting)
    with Store.opened(store) as opened:
        assert opened.list_runs() == []


@pytest.mark.usefixtures("real_guest")
def test_a_limit_that_the_kernel_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    job = tmp_path / "limited.fio"
    job.write_text("[a]\ncgroup=a\nrw=randread\nsize=1m\n", encoding="utf-8")
    limit = ("--cgroup", "a:io.max=riops=much")
    assert "the kernel refused io.max" in _fails(
        capsys, 2, "run", "uml:fixed", str(job), "--scheduler", "none", *limit
    )


POLLING = "[a]\nrw=randread\nioengine={engine}\ndirect=1\niodepth=4\nsize=1m\nnumber_ios=9\n{option}\n"


@pytest.mark.usefixtures("real_guest")
@pytest.mark.parametrize(
    ("engine", "option"),
    [("io_uring", "hipri"), ("io_uring", "sqthread_poll=1"), ("libaio", "iodepth_batch_complete_min=0")],
)
def test_fio_may_not_stop_the_clock(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, engine: str, option: str
) -> None:
    job = tmp_path / "polling.fio"
    job.write_text(POLLING.format(engine=engine, option=option))
    said = _fails(capsys, 2, "run", "uml:fixed", str(job), "--scheduler", "none", "--generator", "fio")
    assert f"polling.fio:8: with {option.partition('=')[0]} fio polls" in said


@pytest.mark.usefixtures("real_guest")
def test_what_stands_for_io_uring_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    job = tmp_path / "uring.fio"
    job.write_text(POLLING.format(engine="io_uring", option=""))
    assert run(["run", "uml:fixed", str(job), "--scheduler", "none", "-q"]) == 0
    assert "ioengine=io_uring: the guest submits through" in capsys.readouterr().err


@pytest.mark.usefixtures("real_guest")
def test_a_tunable_that_the_kernel_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = _fails(
        capsys, 2, "run", "uml:fixed", READS, "--scheduler", "none", "--queue", "nr_requests=100000"
    )
    assert "nr_requests" in said


def test_dry_run_prints_boot_command_and_request(
    capsys: pytest.CaptureFixture[str], kernel: KernelBuild, real_guest: Path
) -> None:
    assert run(["run", "uml:fixed", READS, "--scheduler", "bfq:low_latency=0", "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "./linux time-travel=inf-cpu" in printed
    assert str(kernel.linux) in printed
    assert '"low_latency": "0"' in printed
    assert '"driver": "ublk"' in printed


def test_apply_takes_no_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    said = _fails(capsys, 2, "apply", "kyber@mine", "--device", "/dev/null")
    assert "a disk uses the running kernel's own scheduler" in said


def test_apply_says_what_a_verdict_between_kernels_means(tmp_path: Path) -> None:
    spec = make_spec(["kyber@stock", "kyber@mine"], target="uml:nvme-tlc")
    record = make_experiment(spec, behaviours={"kyber@mine": SchedulerBehaviour(speed=1.5)})
    store = tmp_path / "store.db"
    with Store.opened(str(store)) as opened:
        opened.begin(record)
        for sample in record.samples:
            opened.add_sample(record.run_id, sample)
    with pytest.raises(RefusedError, match="the scheduler kyber of the kernel mine"):
        resolve_run(record.run_id, str(store), force=False)
