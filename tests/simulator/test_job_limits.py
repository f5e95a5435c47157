"""Jobs that nothing ends, jobs that end within their ramp time, and runtimes given beside the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.cli import run
from blklab.errors import ExitCode, JobFileError
from blklab.linux.scratch.amounts import refuse_endless
from blklab.spec.workloads import load_workload, parse_workload
from plain_simulation import simulate

CASES = Path(__file__).parent.parent / "cases" / "job_files"
FAST = "sim:fixed,latency=100us,depth=32,capacity=64m"


def test_a_job_that_nothing_ends_is_refused_with_its_amount() -> None:
    work = load_workload(str(CASES / "no-end.fio"))
    with pytest.raises(JobFileError, match=r"comes to 1\.00 TiB, 268 million I/Os") as caught:
        refuse_endless(work, 1 << 40)
    assert caught.value.hint is not None
    assert "runtime" in caught.value.hint
    refuse_endless(work, 1 << 30)
    for limit in ("size=2t", "runtime=1", "number_ios=9", "io_size=1m"):
        refuse_endless(parse_workload(f"[a]\n{limit}\n", name="a", source="a"), 1 << 41)


def test_a_job_that_ends_within_its_ramp_is_named_beside_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(CASES / "ramp-longer-than-job.fio")
    assert run(["run", FAST, path]) == ExitCode.OK
    output = " ".join(capsys.readouterr().out.split())
    assert "job short ended within its ramp_time of 9.00 s" in output
    store = f"sqlite:///{tmp_path / 'runs.db'}"
    run(["compare", FAST, "-s", "none,mq-deadline", "-w", path, "--blocks", "2", "--store", store])
    output = " ".join(capsys.readouterr().out.split())
    assert "ramp-longer-than-job: job short ended within its ramp_time" in output


def test_a_runtime_beside_the_file_counts_for_time_based_jobs_without_one() -> None:
    text = (CASES / "time-based-without-runtime.fio").read_text(encoding="utf-8")
    device = "fixed,latency=100us,depth=32,capacity=64m"
    alone = simulate(device, text, scheduler="none")
    timed = simulate(device, text, scheduler="none", runtime="200ms")
    assert alone.job("a").directions[0].ios == 256
    assert timed.job("a").directions[0].ios == 2000


def test_several_files_are_simulated_buffered_and_direct() -> None:
    for direct in (0, 1):
        jobs = f"[a]\nrw=read\nbs=16k\nsize=6m\nnrfiles=3\ndirect={direct}\n"
        result = simulate("hdd-7200", jobs, scheduler="mq-deadline")
        assert result.job("a").directions[0].ios == 384
    rounds = [
        simulate("hdd-7200", f"[a]\nrw=read\nbs=16k\nsize=6m\n{options}\n", scheduler="mq-deadline")
        .job("a")
        .runtime_ns
        for options in ("", "nrfiles=3\nfile_service_type=sequential", "nrfiles=3")
    ]
    # Each file has its own readahead, so that taking turns costs seeks and not the readahead itself.
    assert rounds[0] <= rounds[1] < rounds[2] < 30 * rounds[0]


def test_blocks_of_any_size_are_simulated_where_they_are_buffered() -> None:
    jobs = "[journal]\nrw=write\nbs=2300\nfdatasync=1\nsize=200k\n"
    result = simulate("ssd-sata", jobs, scheduler="none")
    writes, syncs = result.job("journal").directions
    assert (writes.ios, writes.bytes) == (89, 89 * 2300)
    assert syncs.ios == 89
