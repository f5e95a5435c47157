"""`blklab top` on processes that really do I/O."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from blklab.cli import run, top_waits
from blklab.cli.top_groups import UNKNOWN, WAIT_ORDERS, waits_by_group
from blklab.cli.top_screen import screen_of
from blklab.cli.top_tasks import TopSample
from blklab.errors import ExitCode, RequirementError
from blklab.labs.studies.ionice.reading import WITHOUT_LEVELS
from blklab.linux.processes.io_priority import IoClass, priority_of, priority_support
from blklab.linux.processes.task_io import TaskRate, TaskReader, by_process, rates
from blklab.recordings.waits import Distribution, TaskWaits
from blklab.report.terminal import Terminal
from blklab.report.waits.text import task_name
from waiting import wait_until

WRITER = """
import os, sys, threading, time
def write(name):
    file = os.open(name, os.O_WRONLY | os.O_CREAT, 0o600)
    while True:
        # A new page each time, without waiting for a disk that other programs may keep busy.
        os.write(file, bytes(4096))
        time.sleep(0.005)
threads = [threading.Thread(target=write, args=(f"{sys.argv[1]}.{n}",), daemon=True) for n in range(2)]
for thread in threads:
    thread.start()
print("going", flush=True)
threads[0].join()
"""


@contextmanager
def _writer(file: Path, *, priority: list[str]) -> Iterator[int]:
    """Starts a process of two writing threads, and returns its number."""
    if not Path("/proc/self/io").exists():
        pytest.skip("this kernel does not count I/O by task")
    if shutil.which("ionice") is None:
        pytest.skip("ionice is not installed (util-linux)")
    command = ["ionice", *priority, sys.executable, "-c", WRITER, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "going\n"
            yield process.pid
        finally:
            process.kill()


def test_classes_and_levels_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (
        _writer(tmp_path / "level", priority=["-c2", "-n7"]) as level,
        _writer(tmp_path / "idle", priority=["-c3"]) as idle,
    ):
        sample: dict[str, Any] = {}

        def all_wrote() -> bool:
            """Whether all four threads wrote between two readings; a busy machine may prevent that."""
            assert run(["top", "-n", "1", "-d", "500ms", "--json"]) == ExitCode.OK
            sample.update(json.loads(capsys.readouterr().out))
            return sum(row["process"] in (level, idle) for row in sample["tasks"]) == 4

        wait_until(all_wrote, "all four threads are shown")
    assert sample["schema"] == "blklab.top/1"
    assert sample["seconds"] >= 0.5
    rows = {(row["process"], row["io_class"], row["io_level"]) for row in sample["tasks"]}
    assert (level, "best_effort", 7) in rows
    assert (idle, "idle", 7) in rows or (idle, "idle", 0) in rows
    threads = [row for row in sample["tasks"] if row["process"] == level]
    assert len(threads) == 2
    assert all(row["write_bytes_per_second"] > 0 and not row["inherited"] for row in threads)


def test_names_of_processes_steer_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any user can call a process anything, and root looks at it."""
    hostile = "\x1b]0;own\x07\n  1 be/4 root [red]forged"
    row = TaskRate(
        task=1,
        process=1,
        command=hostile,
        user=hostile,
        priority=None,
        read_bytes_per_second=1.0,
        write_bytes_per_second=1.0,
        io_delay_fraction=0.0,
    )
    monkeypatch.setattr("blklab.cli.top_tasks.rates", lambda *_: [row])
    for arguments in ([], ["--json"], ["--json", str(tmp_path / "x.json")]):
        assert run(["top", "-b", "-n", "1", "-d", "1ms", *arguments]) == ExitCode.OK
        shown = capsys.readouterr().out
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)
        assert not re.search(r"^ +1 be/4", shown, re.MULTILINE)
        if not arguments:
            assert r"\x1b]0;own\x07\n  1 be/4 root [red]forged" in shown
    assert json.loads((tmp_path / "x.json").read_text("utf-8"))["tasks"][0]["command"] == hostile


def test_batch_mode_keeps_its_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine: list[list[str]] = []

    def wrote_in_both() -> bool:
        assert run(["top", "--batch", "-n", "2", "-d", "300ms", "--processes"]) == ExitCode.OK
        lines = capsys.readouterr().out.splitlines()
        assert sum(line.startswith("sample ") for line in lines) == 2
        mine[:] = [line.split() for line in lines if line.split()[:1] == [str(process)]]
        return len(mine) == 2

    with _writer(tmp_path / "file", priority=["-c2", "-n3"]) as process:
        wait_until(wrote_in_both, "the process is shown in both samples")
    assert all(words[1] == "be/3" for words in mine)


def test_the_heading_says_what_the_priorities_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    headings: list[str] = []

    def told() -> bool:
        assert run(["top", "--batch", "-n", "1", "-d", "300ms"]) == ExitCode.OK
        headings[:] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("sample ")]
        return "by priority: " in headings[0]

    with _writer(tmp_path / "file", priority=["-c2", "-n3"]):
        wait_until(told, "the rate of a priority is told")
    assert "((" not in headings[0]


def test_processes_are_the_sum_of_their_threads(tmp_path: Path) -> None:
    reader = TaskReader()
    with _writer(tmp_path / "file", priority=["-c2", "-n5"]) as process:
        before = reader.read()
        threads: list[TaskRate] = []

        def both_wrote() -> bool:
            threads[:] = [row for row in rates(before, reader.read(), reader) if row.process == process]
            return len(threads) == 2

        wait_until(both_wrote, "both threads wrote")
    (whole,) = by_process(threads)
    assert whole.write_bytes_per_second == pytest.approx(sum(row.write_bytes_per_second for row in threads))
    assert whole.priority is not None
    assert whole.priority.text == "be/5"


def test_priority_follows_nice_where_none_is_set() -> None:
    with subprocess.Popen(["nice", "-n", "19", "sleep", "60"]) as process:
        try:
            found = priority_of(process.pid, nice=19, policy=0)
        finally:
            process.kill()
    assert found is not None
    assert (found.io_class, found.level, found.inherited) == (IoClass.BEST_EFFORT, 7, True)
    assert priority_of(2**22 + 1, nice=0, policy=0) is None


def test_priorities_that_schedulers_honour() -> None:
    assert [priority_support(name) for name in ("bfq", "mq-deadline", "kyber", "none")] == [
        "classes and levels",
        "classes only",
        "no priorities",
        "no priorities",
    ]


def test_studies_agree_on_schedulers_with_levels() -> None:
    """Studies do not import this machine's controls, so the study ionice has its own list."""
    assert "classes and levels" not in map(priority_support, WITHOUT_LEVELS)


def test_bad_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["top", "-d", "soon"]) == ExitCode.USAGE
    assert run(["top", "-n", "0"]) == ExitCode.USAGE
    assert run(["top", "-n", "1", "-d", "10ms", "--json", str(tmp_path)]) == ExitCode.REQUIREMENT
    assert "cannot be written" in capsys.readouterr().err


def test_a_kernel_that_does_not_count(tmp_path: Path) -> None:
    with pytest.raises(RequirementError, match="does not count"):
        TaskReader(tmp_path).read()


def test_the_root_group_is_not_written_behind_a_name() -> None:
    fields: dict[str, Any] = {"tgid": 7, "command": "dd", "cgroup": "/"}
    in_root = TaskWaits.model_construct(**fields)
    assert task_name(in_root) == "dd[7]"
    assert task_name(in_root.model_copy(update={"cgroup": "/a.slice"})) == "dd[7] /a.slice"


class _Sample:
    """Tasks with long names, on a busy disk."""

    columns = top_waits.COLUMNS
    orders = WAIT_ORDERS

    def heading(self) -> list[Text]:
        return [Text("sample 1")]

    def rows_of_cells(self, order: str | None = None) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [
            (
                "14424",
                "56.3 MiB/s",
                "10.1 \u00b5s",
                "4.42 \u00b5s",
                "558 \u00b5s",
                "844 \u00b5s",
                "3.42 ms",
                name,
            )
            for name in ("postgres[123456]", "kworker/u8:5[77]")
        ]
        return rows[::-1] if order == "b" else rows

    def footing(self) -> list[str]:
        return []

    def as_json(self) -> dict[str, Any]:
        return {}

    def by_group(self) -> _Sample:
        return self


@pytest.mark.parametrize(("width", "has_all"), [(80, False), (120, True)])
def test_a_narrow_screen_shows_whole_names_and_its_keys(width: int, *, has_all: bool) -> None:
    console = Terminal(file=io.StringIO(), width=width, height=24, force_terminal=True, color_system=None)
    console.print(screen_of(_Sample(), console, None))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]  # a StringIO
    assert all(len(line.rstrip()) <= width for line in lines)
    assert lines[1].startswith("TASK")
    assert lines[2].startswith("postgres[123456] ")
    assert ("MAX" in lines[1]) == has_all
    assert "q quits; sort by: w waiting (now), i I/Os, b bytes" in lines[-1]
    console.print(screen_of(_Sample(), console, "b"))
    assert "b bytes (now)" in console.file.getvalue()  # type: ignore[attr-defined]


def _rate(task: int, group: str, read: float, written: float) -> TaskRate:
    return TaskRate(task, task, "root", f"work-{task}", None, read, written, 0.0, group)


def _top_sample() -> TopSample:
    rows = [_rate(1, "/a.slice", 3072, 0), _rate(2, "/b.slice", 0, 2048), _rate(3, "/b.slice", 2048, 0)]
    return TopSample(1, 1.0, [*rows, _rate(4, "", 1024, 0)], {}, 0)


def test_c_adds_tasks_up_by_control_group() -> None:
    grouped = _top_sample().by_group()
    assert grouped.rows_of_cells() == [
        ("2", "2.00 KiB/s", "2.00 KiB/s", "/b.slice"),
        ("1", "3.00 KiB/s", "0 B/s", "/a.slice"),
        ("1", "1.00 KiB/s", "0 B/s", UNKNOWN),
    ]
    assert [row[-1] for row in grouped.rows_of_cells("r")] == ["/a.slice", "/b.slice", UNKNOWN]
    console = Terminal(file=io.StringIO(), width=100, height=24, force_terminal=True, color_system=None)
    for by_group in (False, True):
        console.print(screen_of(_top_sample(), console, None, by_group=by_group))
    screen = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    places = [screen.index(text) for text in ("; c groups", "GROUP ", "/b.slice", "; c tasks")]
    assert places == sorted(places)


def _distribution(count: int, mean: float, longest: int) -> Distribution:
    fields: dict[str, Any] = {"count": count, "sum": count * mean, "max": longest}
    return Distribution.model_construct(**fields)


def test_means_of_a_group_weigh_each_io() -> None:
    fields: list[dict[str, Any]] = [
        {
            "cgroup": "/a.slice",
            "ios": ios,
            "bytes": 4096 * ios,
            "queue_ns": _distribution(ios, mean, longest),
            "device_ns": _distribution(ios, 1000, 1000),
            "latency_ns": _distribution(ios, mean + 1000, longest),
        }
        for ios, mean, longest in ((30, 1000, 5000), (10, 5000, 9000))
    ]
    tasks = [TaskWaits.model_construct(**one) for one in fields]
    (row,) = waits_by_group(_Sample(), tasks, seconds=2.0).rows_of_cells()
    assert row == ("2", "20", "80.0 KiB/s", "2.00 \u00b5s", "1.00 \u00b5s", "9.00 \u00b5s", "/a.slice")


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("0::/user.slice/a:b\n", "/user.slice/a:b"),
        ("4:cpu,cpuacct:/c\n3:blkio:/io\n0::/\n", "/io"),
        (None, ""),
    ],
)
def test_the_group_is_that_of_the_io_controller(tmp_path: Path, text: str | None, group: str) -> None:
    (tmp_path / "7").mkdir()
    if text is not None:
        (tmp_path / "7" / "cgroup").write_text(text)
    assert TaskReader(tmp_path).group_of(7) == group


@pytest.mark.parametrize(("order", "marked"), [("r", {"READ"}), ("b", {"READ", "WRITE"}), ("w", {"WAITING"})])
def test_the_column_that_sorts_is_marked_on_a_terminal_only(order: str, marked: set[str]) -> None:
    for is_terminal in (True, False):
        file = io.StringIO()
        console = Terminal(
            file=file,
            width=100,
            height=24,
            force_terminal=is_terminal,
            _environ={"TERM": "xterm", "NO_COLOR": "1"},
        )
        console.print(screen_of(_top_sample(), console, order))
        found = set(re.findall(r"\x1b\[(?:[\d;]*;)?7m *(\w+)", file.getvalue()))
        assert found == (marked if is_terminal else set())
        assert not re.search(r"\x1b\[[\d;]*\b(?:3|4|9)\d[;m]", file.getvalue()), "a colour"


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="this kernel does not count I/O by task")
def test_c_switches_the_live_screen() -> None:
    process, terminal = pty.fork()
    if process == 0:  # pragma: no cover - another process
        os.execv(sys.executable, [sys.executable, "-m", "blklab", "top", "-d", "100ms"])  # noqa: S606
    for key, awaited in ((b"c", b"c groups"), (b"c", b"c tasks"), (b"q", b"c groups")):
        shown = b""
        while awaited not in shown:
            shown += os.read(terminal, 4096)
        os.write(terminal, key)
    with contextlib.suppress(OSError):  # the terminal is gone with the process
        while os.read(terminal, 4096):
            pass
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == ExitCode.OK
    os.close(terminal)


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="this kernel does not count I/O by task")
def test_q_ends_the_live_screen() -> None:
    process, terminal = pty.fork()
    if process == 0:  # pragma: no cover - another process
        os.execv(sys.executable, [sys.executable, "-m", "blklab", "top", "-d", "100ms"])  # noqa: S606
    shown = b""
    while b"q quits" not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, b"q")
    with contextlib.suppress(OSError):  # the terminal is gone with the process
        while os.read(terminal, 4096):
            pass
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == ExitCode.OK
    os.close(terminal)
