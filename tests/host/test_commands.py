"""Commands on real devices: figures, the state of the page cache, failures; at the end all is as before."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

import pytest

from blklab.backends import host_commands
from blklab.cli import run
from blklab.errors import (
    DeviceInUseError,
    ExitCode,
    MissingToolError,
    RefusedError,
    RunFailedError,
    SpaceError,
    UsageError,
)
from blklab.linux.disks.device_in_use import check_writable_device
from blklab.records.samples import CommandSample, JobSample, RunSample
from blklab.spec.command_options import with_command_options
from blklab.spec.schedulers import parse_scheduler_choices
from blklab.spec.workloads import Workload, load_workload, workload_of_description
from command_runs import json_of
from host.conftest import READ, RUN_ID, Filesystem, LoopDevice, cell, opened, work
from real_devices import own_loops

pytestmark = pytest.mark.root

MIB = 1 << 20
DATA = f"set_up = 'head -c {8 * MIB} /dev/urandom > data; sync data'\nspace = '24m'\n"


def command(line: str, more: str = DATA, *, beside: Path | None = None) -> Workload:
    described = workload_of_description(f"command = {line!r}\n{more}", name="it", source="it.toml")
    (workload,) = with_command_options([described], {"beside": None if beside is None else str(beside)})
    return workload


def measured(sample: RunSample) -> tuple[JobSample, CommandSample]:
    assert sample.status == "ok", sample.error
    assert sample.jobs[0].command is not None
    return sample.jobs[0], sample.jobs[0].command


def failure(target: str, workload: Workload) -> str:
    with opened(target) as session:
        session.prepare([workload], print)
        sample = session.run(cell("none", workload))
    assert sample.status == "failed"
    assert sample.jobs == []
    return sample.error or ""


def moved(counted: CommandSample, way: Literal["read", "written"]) -> int:
    """Bytes that a command read or wrote, which hosts always know."""
    found = counted.read_bytes if way == "read" else counted.written_bytes
    assert found is not None
    return found


@pytest.fixture
def loop(disk_folder: Path) -> str:
    return f"loop:64m,dir={disk_folder}"


# The state of the page cache


def test_a_cold_command_reads_its_files_again_each_time(loop: str, disk_folder: Path) -> None:
    reading = command("cat data > /dev/null", f"cold = true\n{DATA}")
    with opened(loop) as session:
        assert session.check(parse_scheduler_choices("none,bfq"), [reading]) == []
        session.prepare([reading], print)
        for scheduler in ("none", "bfq", "none"):
            job, counted = measured(session.run(cell(scheduler, reading)))
            assert 8 * MIB <= moved(counted, "read") < 9 * MIB
            assert job.runtime_ns > 0
            assert job.cpu_user_ns is not None and job.cpu_system_ns is not None
    assert own_loops(disk_folder) == []
    assert list(disk_folder.iterdir()) == []


def test_a_warm_command_finds_its_files_in_memory(loop: str) -> None:
    reading = command("cat data > /dev/null")
    with opened(loop) as session:
        session.prepare([reading], print)
        samples = [session.run(cell("none", reading)) for _ in range(4)]
        counts = [moved(measured(sample)[1], "read") for sample in samples]
        for sample, count in zip(samples, counts, strict=True):
            assert sample.events is not None
            assert (sample.events.traffic is None) == (count < MIB)
    # Another program may have dropped the machine's caches just before one of the runs.
    assert min(counts) < MIB


def test_a_directory_keeps_its_file_system_and_cold_commands_get_one_of_their_own(ext4: Filesystem) -> None:
    cold = command("cat data > /dev/null", f"cold = true\n{DATA}")
    with opened(str(ext4.folder)) as session:
        (warning,) = session.check(parse_scheduler_choices("none"), [cold])
        assert "kernel worker" in warning
        session.prepare([cold], print)
        assert len(own_loops(Path(f"/run/blklab-{RUN_ID}"))) == 1
        assert moved(measured(session.run(cell("bfq", cold)))[1], "read") >= 8 * MIB
    ext4.assert_untouched()
    assert own_loops(Path(f"/run/blklab-{RUN_ID}")) == []
    warm = command('test "$PWD" = "$BLKLAB_DIR" && test "$PWD" = {dir} && echo it > written')
    with opened(str(ext4.folder)) as session:
        session.prepare([warm], print)
        _, counted = measured(session.run(cell("none", warm)))
        assert moved(counted, "written") >= 4096
        assert [path.read_text() for path in ext4.folder.rglob("written")] == ["it\n"]
        assert own_loops(Path(f"/run/blklab-{RUN_ID}")) == []
    ext4.assert_untouched()


@pytest.mark.parametrize("more", ["cold = true\nspace = '8m'\n", "space = '1m'\n"])
def test_a_command_that_removes_its_directory_has_failed(ext4: Filesystem, more: str) -> None:
    gone = command('rmdir "$BLKLAB_DIR"', more)
    with opened(str(ext4.folder)) as session:
        session.prepare([gone], print)
        for _ in range(2):
            sample = session.run(cell("none", gone))
        assert sample.status == "failed"
        assert "is gone" in str(sample.error)
    ext4.assert_untouched()


def test_what_comes_before_each_run_is_not_measured(loop: str) -> None:
    slow = command("test -e new && rm new", "repeat_set_up = 'sleep 0.5; touch new'\nspace = '8m'\n")
    with opened(loop) as session:
        session.prepare([slow], print)
        job, counted = measured(session.run(cell("none", slow)))
    assert job.runtime_ns < 450_000_000
    assert moved(counted, "read") < MIB


# The load beside it


def test_a_load_beside_it_is_reported_too(loop: str, tmp_path: Path) -> None:
    (tmp_path / "load.fio").write_text("[reader]\nrw=randread\nbs=4k\nsize=8m\ndirect=1\nnumber_ios=1\n")
    sleeping = command("sleep 0.5", "cold = true\nspace = '8m'\n", beside=tmp_path / "load.fio")
    with opened(loop) as session:
        session.check(parse_scheduler_choices("none"), [sleeping])
        session.prepare([sleeping], print)
        for _ in range(2):
            sample = session.run(cell("mq-deadline", sleeping))
            job, _ = measured(sample)
            assert [one.name for one in sample.jobs] == ["command", "reader"]
            reader = sample.jobs[1]
            assert job.runtime_ns < reader.runtime_ns
            assert sample.events is not None and sample.events.traffic is None
            assert reader.directions[0].ios > 1


def test_a_load_that_cannot_begin_is_refused(loop: str, tmp_path: Path) -> None:
    (tmp_path / "load.fio").write_text(READ + "[second]\nstonewall\nrw=read\nsize=8m\n")
    with opened(loop) as session, pytest.raises(UsageError, match="would never begin"):
        session.check([], [command("true", "space = '8m'\n", beside=tmp_path / "load.fio")])


def test_a_command_sees_the_processes_of_its_namespace_only(loop: str) -> None:
    line = 'test "$(cat /proc/$$/comm)" = sh && test $(ls -d /proc/[0-9]* | wc -l) -lt 10'
    looking = command(line, "space = '8m'\n")
    with opened(loop) as session:
        session.prepare([looking], print)
        measured(session.run(cell("none", looking)))


# Failures


def test_a_command_that_fails_says_so_in_its_own_words(loop: str) -> None:
    said = failure(loop, command("printf on >&2; echo e >&2; echo two >&2; exit 3", "space = '8m'\n"))
    assert said == "its exit code is 3: one; two"


def test_a_command_that_takes_too_long_is_killed(loop: str) -> None:
    endless = command("sleep 1000 & sleep 1000", "time_limit = '500ms'\nspace = '8m'\n")
    assert "still ran after 500 ms" in failure(loop, endless)


def test_a_repeated_set_up_that_fails_fails_the_run(loop: str) -> None:
    said = failure(loop, command("true", "repeat_set_up = 'false'\nspace = '8m'\n"))
    assert said == "the set-up before the run failed: its exit code is 1"


def test_a_set_up_that_fails_ends_the_experiment(loop: str) -> None:
    with (
        opened(loop) as session,
        pytest.raises(RunFailedError, match="set-up of it failed: its exit code is 1"),
    ):
        session.prepare([command("true", "set_up = 'cat no-such'\nspace = '8m'\n")], print)


def test_processes_left_behind_do_not_keep_the_file_system(loop: str, disk_folder: Path) -> None:
    leaving = command("setsid sleep 1000 & exit 0", "cold = true\nspace = '8m'\n")
    with opened(loop) as session:
        session.prepare([leaving], print)
        for _ in range(2):
            assert session.run(cell("none", leaving)).status == "ok"
    assert own_loops(disk_folder) == []


def test_a_missing_program_is_named_with_its_package(loop: str) -> None:
    lacking = command("true", "space = '8m'\n[requires]\nno-such-program = 'a-package'\n")
    with opened(loop) as session, pytest.raises(MissingToolError, match="needs a-package") as raised:
        session.check([], [lacking])
    assert raised.value.hint == "apt install a-package"


def test_too_little_room_and_other_uses_of_a_device_are_refused(loop: str, raw: LoopDevice) -> None:
    with opened(loop) as session:
        with pytest.raises(SpaceError, match="commands need"):
            session.check([], [command("true", "")])
        with pytest.raises(UsageError, match="job files work on the blocks"):
            session.check([], [command("true", "space = '8m'\n"), work(READ)])
    before = raw.backing.read_bytes()
    with opened(raw.device) as session, pytest.raises(RefusedError, match="contents would be lost"):
        session.check([], [command("true", "space = '8m'\n")])
    assert raw.backing.read_bytes() == before


def test_a_device_that_may_be_overwritten_gets_a_file_system(raw: LoopDevice) -> None:
    writing = command("head -c 4096 /dev/urandom > new; sync new", "cold = true\nspace = '8m'\n")
    with opened(raw.device, allow_writes=True) as session:
        session.check(parse_scheduler_choices("none"), [writing])
        session.prepare([writing], print)
        assert moved(measured(session.run(cell("kyber", writing)))[1], "written") >= 4096
        with pytest.raises(DeviceInUseError):
            check_writable_device(Path(raw.device))
    raw.assert_unchanged()
    check_writable_device(Path(raw.device))  # free again for the next experiment


# Settings


def test_delay_accounting_is_on_during_the_runs_only(
    loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = tmp_path / "task_delayacct"
    control.write_text("0\n")
    monkeypatch.setattr(host_commands, "DELAY_ACCOUNTING", control)
    with opened(loop) as session:
        session.prepare([command("true", "space = '8m'\n")], print)
        assert control.read_text().strip() == "1"
    assert control.read_text() == "0\n"


def test_a_dry_run_shows_every_step(ext4: Filesystem, tmp_path: Path) -> None:
    (tmp_path / "load.fio").write_text(READ)
    more = f"cold = true\nrepeat_set_up = 'rm -f copy'\n{DATA}"
    copying = command("cp data copy", more, beside=tmp_path / "load.fio")
    with opened(str(ext4.folder), dry_run=True) as session:
        lines = session.commands(cell("bfq", copying))
    text = "\n".join(lines)
    steps = ("fallocate", "mkfs.ext4", "mount -t ext4", "data; sync data", "rm -f copy", "umount",
             "fio --output", "time (", "kill -INT")  # fmt: skip
    places = [text.index(step) for step in steps]
    assert places == sorted(places), text
    assert "drop_caches" not in text
    ext4.assert_untouched()


# From the command line


def test_a_comparison_has_figures_of_each_scheduler(
    loop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    arguments = ["--command", "cat data data > copy; sync copy", "--repeat-set-up", "rm -f copy", "--cold"]
    arguments += ["--set-up", "head -c 1048576 /dev/urandom > data", "--space", "24m", "-s", "none,bfq"]
    document = json_of(capsys, "compare", loop, *arguments, "-n", "2", "-q")
    assert document["failed_runs"] == []
    (workload,) = document["workloads"]
    assert workload["name"] == "cat data data > copy; sync copy"
    assert workload["command"].startswith("cold: ")
    values = {(one["scheduler"], one["metric"]): one["mean"] for one in document["results"]}
    for scheduler in ("none", "bfq"):
        assert values[scheduler, "wall_time"] > 0
        assert values[scheduler, "bytes_read"] >= MIB
        assert values[scheduler, "bytes_written"] >= 2 * MIB
    repeated = json_of(capsys, "compare", "--resume", document["run"], "--blocks", "3", "-q")
    assert {one["n"] for one in repeated["results"] if one["metric"] == "wall_time"} == {3}


def test_one_run_of_a_command(loop: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--command", "cat data > copy; sync copy", "--set-up", "head -c 1048576 /dev/urandom > data"]
    document = json_of(capsys, "run", loop, *arguments, "--scheduler", "none", "--space", "24m", "--cold")
    (job,) = document["jobs"]
    assert (document["workload"], document["scheduler"]) == ("cat data > copy; sync copy", "none")
    assert job["runtime_seconds"] > 0
    for wrong in ([], ["many-readers", "--command", "ls"]):
        assert run(["run", loop, *wrong]) == ExitCode.USAGE
        assert "one run has one workload" in capsys.readouterr().err


def test_a_command_that_always_fails_is_an_error_with_its_words(
    loop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    failing = ["--command", "ls no-such", "--space", "8m", "-s", "none,bfq", "-n", "1", "-q"]
    assert run(["compare", loop, *failing]) == ExitCode.RUN_FAILED
    assert "every run of block 0 failed: its exit code is 2: ls:" in capsys.readouterr().err


# Shipped commands

PROGRAMS = {
    "chromium-start": "chromium",
    "compile": "make",
    "git-clone": "git",
    "git-status": "git",
    "pgbench": "pgbench",
    "python-scipy-start": "python3",
    "shell-start": "bash",
    "sqlite-commits": "python3",
}
SLOW = ("git-clone", "git-status", "compile", "pgbench", "chromium-start")


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] if one in SLOW else []) for one in PROGRAMS]
)
def test_shipped_commands_run(name: str) -> None:
    if shutil.which(PROGRAMS[name]) is None:
        pytest.skip(f"{PROGRAMS[name]} is not installed")
    workload = load_workload(name)
    assert workload.command is not None
    with opened(f"loop:{workload.command.space_bytes // MIB + 64}m,dir=/dev/shm") as session:
        try:
            session.check(parse_scheduler_choices("none"), [workload])
        except MissingToolError as error:
            pytest.skip(error.message)
        session.prepare([workload], print)
        job, counted = measured(session.run(cell("none", workload)))
    assert job.runtime_ns > 0
    assert moved(counted, "read") + moved(counted, "written") > 0
