"""Recording real loop devices: completeness, cleanliness, and what a kill leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blklab.cli import run
from blklab.errors import BlklabError, ExitCode
from blklab.linux.cgroups.hierarchy import find_hierarchy
from blklab.linux.disks.disk import Disk
from blklab.linux.doctor import doctor
from blklab.linux.recording import recorder
from blklab.recordings.trace import NEVER, Trace, operation_names, read_trace
from blklab.shipped import bpf_programs
from container_root import as_container_root
from real_devices import LoopMaker
from waiting import wait_until

BLOCKS = 2000
BYTES = 4096

WORK = """
cat /sys/block/{name}/stat > {folder}/before
dd if=/dev/{name} of=/dev/null bs=4k iflag=direct count={blocks} status=none
dd if=/dev/zero of=/dev/{name} bs=4k oflag=direct conv=fsync count={blocks} status=none
dd if=/dev/{name} of=/dev/null bs=4M iflag=direct count=8 status=none
cat /sys/block/{name}/stat > {folder}/after
"""
"""The last line's I/Os are larger than a request may be, so that the kernel splits them."""


def _instances() -> set[str]:
    """Names of blklab's tracefs instances, in a mount of our own."""
    script = "mount -t tracefs none /mnt && ls /mnt/instances"
    listed = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip(f"tracefs cannot be mounted: {listed.stderr.strip()}")
    return {name for name in listed.stdout.split() if name.startswith("blklab-")}


@pytest.fixture(params=["bpf", "tracefs"])
def capture(request: pytest.FixtureRequest, needs_loop: None) -> str:
    """Each way of recording that this machine has."""
    if request.param == "tracefs":
        _instances()
    elif bpf_programs() is None:
        pytest.skip("the BPF programs are not built (scripts/build-bpf)")
    elif not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("this kernel does not describe its types (CONFIG_DEBUG_INFO_BTF)")
    return str(request.param)


@pytest.fixture
def disk(make_loop: LoopMaker) -> Iterator[Disk]:
    """A loop device that nothing uses."""
    yield make_loop(64)


def _stat(text: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Counts of ``/sys/block/NAME/stat`` (Documentation/block/stat.rst)."""
    return np.array(text.split(), np.int64)


def _io_of(trace: Trace, operation: str) -> tuple[int, int]:
    """I/Os and sectors of an operation."""
    wanted = trace.ios["operation"] == operation_names().index(operation)
    return int(wanted.sum()), int(trace.ios["bytes"][wanted].sum()) // 512


def _expected_exit(file: Path, capture: str) -> ExitCode:
    """A recording that lost events says so by its exit code.

    BPF has missed completions where other BPF programs ran or the machine was paused; tracefs misses none.
    """
    lost = read_trace(file).tally.lost
    assert lost == 0 or capture == "bpf"
    return ExitCode.PARTIAL if lost else ExitCode.OK


@pytest.mark.root
def test_a_shell_that_becomes_a_program_has_its_name(disk: Disk, capture: str, tmp_path: Path) -> None:
    file = tmp_path / "x.blkrecord"
    work = f"exec dd if={disk.dev_path} of=/dev/null bs=64k iflag=direct count=50 status=none"
    arguments = ["record", str(disk.dev_path), "--capture", capture, "--output", str(file)]
    code = run([*arguments, "--", "sh", "-c", work])
    assert code == _expected_exit(file, capture)
    trace = read_trace(file)
    names = [trace.names[number] for number in trace.ios["command"][trace.ios["bytes"] == 64 << 10]]
    assert names.count("dd") == 50
    assert "sh" not in names


@pytest.mark.root
def test_every_io_is_recorded(disk: Disk, capture: str, tmp_path: Path) -> None:
    file = tmp_path / "x.blkrecord"
    work = WORK.format(name=disk.name, folder=tmp_path, blocks=BLOCKS)
    stat = Path(f"/sys/block/{disk.name}/stat")
    outer_before = _stat(stat.read_text())
    arguments = ["record", str(disk.dev_path), "--capture", capture, "--output", str(file)]
    code = run([*arguments, "--", "sh", "-c", work])
    outer = _stat(stat.read_text()) - outer_before
    inner = _stat((tmp_path / "after").read_text()) - _stat((tmp_path / "before").read_text())
    trace = read_trace(file)
    assert trace.tally.whole
    assert code == _expected_exit(file, capture)
    # Other programs (udev) may do I/O before and after the work.
    for operation, first in (("read", 0), ("write", 4)):
        ios, sectors = _io_of(trace, operation)
        merged = (trace.ios["merged_ns"] != NEVER) & (
            trace.ios["operation"] == operation_names().index(operation)
        )
        requests = ios - int(merged.sum())
        assert inner[first + 2] <= sectors <= outer[first + 2]
        # The kernel counts a flush without data as a write.
        flushes = _io_of(trace, "flush")[0] if operation == "write" else 0
        assert inner[first] <= requests + flushes <= outer[first]
    dd = trace.names.index("dd")
    mine = {name: column[trace.ios["command"] == dd] for name, column in trace.ios.items()}
    small = (mine["bytes"] == BYTES) & (mine["split_ns"] == NEVER)
    assert int(small.sum()) == 2 * BLOCKS
    assert int((mine["split_ns"] != NEVER).sum()) >= 16
    assert set(mine["device"].tolist()) == {trace.facts.devices[0].number}
    assert trace.facts.capture == capture
    assert trace.facts.command == ["sh"]
    ordered = ["queued_ns", "issued_ns", "completed_ns"]
    times = np.stack([mine[name] for name in ordered]).astype(np.uint64)
    # Of an event that a BPF program missed, only the time is missing.
    known = (times != NEVER).all(axis=0)
    assert known.mean() > 0.99
    assert (times[0] <= times[1])[known].all()
    assert (times[1] <= times[2])[known].all()
    if capture == "bpf":
        assert all(trace.names[number].startswith("/") for number in set(mine["cgroup"].tolist()))


@pytest.mark.root
@pytest.mark.parametrize(
    ("script", "returncode", "told"),
    [
        ("exit 3", 3, "the command failed (exit code 3)"),
        ("kill -KILL $$", -9, "the command was killed by signal 9"),
    ],
)
def test_a_command_that_fails_is_told(
    disk: Disk,
    capture: str,
    script: str,
    returncode: int,
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, document = tmp_path / "x.blkrecord", tmp_path / "x.json"
    arguments = ["record", str(disk.dev_path), "--capture", capture, "--output", str(file)]
    work = f"dd if={disk.dev_path} of=/dev/null bs=4k count=100 iflag=direct status=none; {script}"
    assert run([*arguments, "--json", str(document), "--", "sh", "-c", work]) == ExitCode.RUN_FAILED
    assert told in capsys.readouterr().out.splitlines()
    assert json.loads(document.read_text())["returncode"] == returncode
    trace = read_trace(file)
    assert trace.tally.whole
    assert trace.tally.ios >= 100


@pytest.mark.root
def test_a_command_that_ctrl_c_ends_did_not_fail(disk: Disk, capture: str, tmp_path: Path) -> None:
    file, begun = tmp_path / "x.blkrecord", tmp_path / "begun"
    command = [sys.executable, "-m", "blklab", "record", str(disk.dev_path), "--capture", capture]
    command += ["--output", str(file), "--", "sh", "-c", f": > {begun}; exec sleep 600"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True) as recorder:
        wait_until(begun.exists, "the command runs", process=recorder)
        os.killpg(recorder.pid, signal.SIGINT)
        recorder.wait()
    assert recorder.returncode == _expected_exit(file, capture)


@pytest.mark.root
@pytest.mark.parametrize("step", ["start_command", "_watch", "_finished"])
def test_ctrl_c_as_a_step_ends_loses_nothing(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The signal arrives just before the step gives its result."""
    real = getattr(recorder, step)
    started: list[subprocess.Popen[bytes]] = []

    def interrupted(*arguments: Any) -> Any:
        result = real(*arguments)
        if isinstance(result, subprocess.Popen):
            started.append(result)
        os.kill(os.getpid(), signal.SIGINT)
        return result

    monkeypatch.setattr(recorder, step, interrupted)
    file = tmp_path / "x.blkrecord"
    command = ["sleep", "600" if step == "start_command" else "0"]
    arguments = ["record", str(disk.dev_path), "--capture", "tracefs", "--output", str(file)]
    assert run([*arguments, "--", *command]) == ExitCode.OK
    assert read_trace(file).tally.whole
    assert all(process.returncode is not None for process in started)


@pytest.mark.root
def test_nothing_is_left_behind(disk: Disk, capture: str, tmp_path: Path) -> None:
    before = _instances()
    file = tmp_path / "x.blkrecord"
    arguments = ["record", str(disk.dev_path), "--capture", capture, "--output", str(file), "--for", "50ms"]
    assert run(arguments) == _expected_exit(file, capture)
    assert _instances() == before
    assert run(arguments) == ExitCode.USAGE, "an existing file is not overwritten"


@pytest.mark.root
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_a_readable_file(
    disk: Disk, capture: str, tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "x.blkrecord"
    command = [sys.executable, "-m", "blklab", "record", str(disk.dev_path)]
    command += ["--capture", capture, "--output", str(file)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as recorder:
        wait_until(file.exists, "the recording begins", process=recorder)

        def recorded() -> bool:
            subprocess.run(
                ["dd", f"if={disk.dev_path}", "of=/dev/null", "bs=4k", "count=50", "iflag=direct"],
                check=True,
                capture_output=True,
            )
            try:
                return read_trace(file).tally.ios >= BLOCKS // 40
            except BlklabError:
                return False  # the first block is not written yet

        wait_until(recorded, "some I/Os are in the file", process=recorder)
        recorder.send_signal(number)
        recorder.wait()
    trace = read_trace(file)
    assert trace.tally.ios >= BLOCKS // 40
    assert trace.tally.whole == (number is not signal.SIGKILL)
    expected = {signal.SIGINT: _expected_exit(file, capture), signal.SIGTERM: 143, signal.SIGKILL: -9}
    assert recorder.returncode == expected[number]
    if number is signal.SIGKILL:
        assert any("was killed" in warning for warning in trace.warnings)
        again = tmp_path / "again.blkrecord"
        arguments = ["--capture", capture, "--output", str(again), "--for", "50ms"]
        assert run(["record", str(disk.dev_path), *arguments]) == _expected_exit(again, capture)
    left = {name for name in _instances() if name.split("-")[1] == str(recorder.pid)}
    assert not left


@pytest.mark.root
def test_forks_exits_and_arguments(disk: Disk, capture: str, tmp_path: Path) -> None:
    file = tmp_path / "x.blkrecord"
    arguments = ["record", str(disk.dev_path), "--capture", capture, "--output", str(file)]
    command = ["sh", "-c", "true secret; sleep 0; :"]
    assert run([*arguments, "--", *command]) == _expected_exit(file, capture)
    trace = read_trace(file)
    kinds = trace.tasks["kind"].tolist()
    assert 0 in kinds
    assert 1 in kinds
    assert b"secret" not in file.read_bytes()
    assert not any("secret" in name for name in trace.names)
    file.unlink()
    assert run([*arguments, "--arguments", "--", *command]) == _expected_exit(file, capture)
    assert read_trace(file).facts.command == command


_POLICIES = """
import os, sys, time
from pathlib import Path
tasks = Path(f"/proc/{os.getppid()}/task").iterdir()
recorders = [int(task.name) for task in tasks if (task / "comm").read_text().strip() == "blkcapture"]
end = time.monotonic() + 60
while any(os.sched_getscheduler(number) != os.SCHED_IDLE for number in recorders):
    assert time.monotonic() < end, "the recorder runs before others"
    time.sleep(0.01)
Path(sys.argv[1]).write_text(f"{len(recorders)} {os.sched_getscheduler(0)}")
"""


@pytest.mark.root
def test_the_recorder_runs_when_nothing_else_does_and_the_command_as_ever(
    disk: Disk, capture: str, tmp_path: Path
) -> None:
    file, policies = tmp_path / "x.blkrecord", tmp_path / "policies"
    arguments = ["record", str(disk.dev_path), "--capture", capture, "--output", str(file)]
    command = [sys.executable, "-c", _POLICIES, str(policies)]
    assert run([*arguments, "--", *command]) == _expected_exit(file, capture)
    assert policies.read_text() == f"1 {os.sched_getscheduler(0)}"


@pytest.mark.root
def test_other_disks_are_not_recorded(make_loop: LoopMaker, capture: str, tmp_path: Path) -> None:
    one, other = make_loop(16), make_loop(16)
    file = tmp_path / "x.blkrecord"
    work = f"dd if={other.dev_path} of=/dev/null bs=4k count=100 iflag=direct status=none"
    arguments = ["record", str(one.dev_path), "--capture", capture, "--output", str(file)]
    assert run([*arguments, "--", "sh", "-c", work]) == _expected_exit(file, capture)
    trace = read_trace(file)
    assert not any(trace.names[number] == "dd" for number in set(trace.ios["command"].tolist()))


def test_root_is_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert run(["record", str(tmp_path), "--output", str(tmp_path / "x")]) == ExitCode.REQUIREMENT
    assert capsys.readouterr().err.startswith("error: recording I/O needs root")


@pytest.mark.root
def test_root_without_capabilities_is_told(disk: Disk, capture: str, tmp_path: Path) -> None:
    file = tmp_path / "x.blkrecord"
    record = [sys.executable, "-m", "blklab", "record", str(disk.dev_path), "--capture", capture]
    command = as_container_root([*record, "--output", str(file), "--for", "50ms"])
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == ExitCode.REQUIREMENT, done.stderr
    assert "Traceback" not in done.stderr
    assert not file.exists()


@pytest.mark.root
def test_restore_removes_the_instance_of_a_killed_recording(
    disk: Disk, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _instances()
    command = [sys.executable, "-m", "blklab", "record", str(disk.dev_path), "--capture", "tracefs"]
    file = tmp_path / "x.blkrecord"
    with subprocess.Popen([*command, "--output", str(file)], stderr=subprocess.DEVNULL) as recorder:
        try:
            wait_until(file.exists, "the recording begins", process=recorder)
            (own,) = (name for name in _instances() if name.split("-")[1] == str(recorder.pid))
            assert run(["restore"]) == ExitCode.OK
            assert own in _instances(), "a living recorder keeps its instance"
        finally:
            recorder.kill()
    assert own in _instances()
    capsys.readouterr()
    finding = next(finding for finding in doctor.examine() if finding.subject == "killed recordings")
    assert own in finding.text
    assert finding.remedy == "blklab restore"
    assert run(["restore", "--dry-run"]) == ExitCode.OK
    assert f"tracefs instance {own} of a killed recording: would be removed" in capsys.readouterr().out
    assert own in _instances()
    assert run(["restore", "--json", "-"]) == ExitCode.OK
    assert {"name": own, "error": None} in json.loads(capsys.readouterr().out)["recordings"]
    assert own not in _instances()
    assert _instances() <= before


_READER = """
import mmap, os, sys, time
place, page = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 4096)
for number in range(50):
    os.preadv(place, [page], number * 4096)
    time.sleep(0.01)
"""


@pytest.mark.root
def test_the_weights_of_the_recorded_groups_are_kept(
    disk: Disk, capture: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hierarchy, reader = find_hierarchy(), tmp_path / "reader.py"
    attribute = "blkio.bfq.weight" if hierarchy.version == 1 else "io.bfq.weight"
    (disk.sys_path / "queue" / "scheduler").write_text("bfq")
    top = hierarchy.root / f"blklab-test-{os.getpid()}"
    folders = {name: top / name for name in ("heavy", "light")}
    top.mkdir()
    try:
        if hierarchy.version == 2:
            if "io" not in (top / "cgroup.controllers").read_text().split():
                pytest.skip("the io controller is not enabled below the root group")
            (top / "cgroup.subtree_control").write_text("+io")
        for folder, weight in zip(folders.values(), (600, 200), strict=True):
            folder.mkdir()
            if not (folder / attribute).exists():
                pytest.skip(f"this kernel has no {attribute} (CONFIG_BFQ_GROUP_IOSCHED)")
            (folder / attribute).write_text(str(weight))
        # Under tracefs, a task that ends within 20 ms of its I/O has no known group: this reads longer.
        work = f"{sys.executable} {reader} {disk.dev_path}"
        reader.write_text(_READER)
        parts = [f"sh -c 'echo $$ > {folder}/cgroup.procs; {work}; :'" for folder in folders.values()]
        file = tmp_path / "x.blkrecord"
        arguments = ["record", str(disk.dev_path), "--capture", capture, "--output", str(file)]
        assert run([*arguments, "--", "sh", "-c", "; ".join(parts)]) == _expected_exit(file, capture)
    finally:
        for folder in [*folders.values(), top]:
            if folder.exists():
                folder.rmdir()
    kept = {group.path: group.settings for group in read_trace(file).facts.cgroups}
    weights = {name: kept[f"/{top.name}/{name}"][attribute].split()[-1] for name in folders}
    assert weights == {"heavy": "600", "light": "200"}
    assert {"/", f"/{top.name}"} <= set(kept)
    capsys.readouterr()
    run(["where", str(file), "-v"])
    assert (
        f"below /{top.name}, bfq divided {disk.name} by {attribute}: heavy 600 and light 200"
        in capsys.readouterr().out
    )


@pytest.mark.root
def test_other_instances_are_not_restored() -> None:
    """Names that only begin like ours belong to someone else."""
    name = f"blklab-mine{os.getpid()}"
    script = (
        f"mount -t tracefs none /mnt && mkdir /mnt/instances/{name} && {sys.executable} -m blklab restore;"
    )
    script += f" rmdir /mnt/instances/{name}"
    _instances()
    subprocess.run(["unshare", "--mount", "sh", "-c", script], check=True, capture_output=True)


def test_models_cannot_be_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["record", "sim:ssd-sata"]) == ExitCode.USAGE
    assert "is no path of this machine" in capsys.readouterr().err


_STUBBORN = """
import os, signal, sys, time
from pathlib import Path
if sys.argv[2] == "ignores SIGTERM":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    (Path(sys.argv[1]) / "child").write_text(str(os.getpid()))
else:
    (Path(sys.argv[1]) / "command").write_text(str(os.getpid()))
while True:
    time.sleep(60)
"""


def _is_running(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.root
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("behaviour", ["heeds SIGTERM", "ignores SIGTERM"])
def test_a_command_ends_with_its_recorder(
    disk: Disk, capture: str, tmp_path: Path, number: signal.Signals, behaviour: str
) -> None:
    """The signal is sent to blklab alone, not to the group as a terminal does."""
    file, places = tmp_path / "x.blkrecord", [tmp_path / name for name in ("command", "child")]
    command = [sys.executable, "-m", "blklab", "record", str(disk.dev_path), "--capture", capture]
    command += ["--output", str(file), "--", sys.executable, "-c", _STUBBORN, str(tmp_path), behaviour]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as recorder:
        wait_until(
            lambda: all(place.exists() and place.read_text() for place in places),
            "the command runs",
            process=recorder,
        )
        recorder.send_signal(number)
        recorder.wait()
    assert not any(_is_running(int(place.read_text())) for place in places)
    ended = _expected_exit(file, capture) if number is signal.SIGINT else 128 + number
    assert recorder.returncode == ended
    assert read_trace(file).tally.whole


@pytest.mark.root
def test_a_command_ends_although_the_recording_has_ended_before(disk: Disk, tmp_path: Path) -> None:
    file, place = tmp_path / "x.blkrecord", tmp_path / "command"
    command = [sys.executable, "-m", "blklab", "record", str(disk.dev_path), "--output", str(file)]
    command += ["--for", "50ms", "--", sys.executable, "-c", _STUBBORN, str(tmp_path), "heeds SIGTERM"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as recorder:
        wait_until(lambda: place.exists() and place.read_text(), "the command runs", process=recorder)

        def is_whole() -> bool:
            try:
                return read_trace(file).tally.whole
            except BlklabError:
                return False

        wait_until(is_whole, "the recording ends", process=recorder)
        recorder.send_signal(signal.SIGTERM)
        recorder.wait()
    assert recorder.returncode == 128 + signal.SIGTERM
    assert not _is_running(int(place.read_text()))


_READS_FOR_EVER = """
import mmap, os, sys, threading
from pathlib import Path
def read(first):
    place, page = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 4096)
    while True:
        for number in range(256):
            os.preadv(place, [page], (first + number) * 4096)
            ready.write_text("reads")
ready = Path(sys.argv[2])
for task in range(8):
    threading.Thread(target=read, args=(task * 256,)).start()
"""


@pytest.mark.root
def test_a_recording_that_ends_amid_ios_misses_no_completion(
    disk: Disk, capture: str, tmp_path: Path
) -> None:
    """Programs at completions begin first and end last: only I/Os that are under way lack a part."""
    file, ready = tmp_path / "x.blkrecord", tmp_path / "ready"
    with subprocess.Popen([sys.executable, "-c", _READS_FOR_EVER, str(disk.dev_path), str(ready)]) as reader:
        try:
            wait_until(ready.exists, "the reader reads", process=reader)
            arguments = ["record", str(disk.dev_path), "--capture", capture, "--output", str(file)]
            run([*arguments, "--for", "300ms"])
        finally:
            reader.kill()
    trace = read_trace(file)
    tasks = set(trace.ios["tgid"][trace.ios["completed_ns"] == NEVER].tolist())
    assert tasks <= {reader.pid}
    assert trace.tally.lost == 0
    assert trace.tally.incomplete <= 8
    # Those of the beginning, and those that are queued while the count is read.
    assert trace.tally.unmatched <= 16
