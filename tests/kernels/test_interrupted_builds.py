"""Builds that are ended from outside, and builds at the same time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from blklab.guests.kernels import store
from blklab.guests.kernels.building import BuildRequest, build
from blklab.guests.kernels.names import kernel_names
from waiting import PATIENCE_SECONDS, wait_until


def start(kernel_tree: Path, name: str = "mine") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "blklab", "kernel", "build", name, "--source", str(kernel_tree)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def hanging(kernel_tree: Path, tmp_path: Path) -> Path:
    """A tree whose compiler never ends; it makes the file ``started`` when it begins."""
    (kernel_tree / "block" / "kyber.c").write_text("HANGS\n")
    makefile = kernel_tree / "Makefile"
    makefile.write_text(makefile.read_text().replace("$(STARTED)", str(tmp_path / "started")))
    return kernel_tree


def processes_in(folder: Path) -> list[int]:
    """Processes that work somewhere in a folder, which is where compilers of a build work."""
    return [int(process.name) for process in Path("/proc").glob("[0-9]*") if works_in(process, folder)]


def works_in(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").readlink().is_relative_to(folder)
    except OSError:
        return False  # it has ended


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_everything_and_leaves_nothing(
    kernel_cache: Path, hanging: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    process = start(hanging)
    wait_until((tmp_path / "started").exists, "the compiler has begun", process=process)
    assert processes_in(kernel_cache)
    process.send_signal(number)
    _, messages = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == code
    assert "Traceback" not in messages
    assert not processes_in(kernel_cache)
    assert not list((kernel_cache / "work").iterdir())
    assert not (kernel_cache / "builds").exists()
    assert kernel_names() == []


def test_a_killed_build_is_cleared_away_by_the_next(
    kernel_cache: Path, hanging: Path, tmp_path: Path
) -> None:
    process = start(hanging)
    wait_until((tmp_path / "started").exists, "the compiler has begun", process=process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE_SECONDS)
    assert list((kernel_cache / "work").iterdir())  # nobody could clear away
    assert kernel_names() == []
    wait_until(lambda: not processes_in(kernel_cache), "no compiler is left")
    (hanging / "block" / "kyber.c").write_text("mended\n")
    kernel, _ = build(BuildRequest("mine", str(hanging)))
    assert kernel.record.compiled_files == 3
    assert not list((kernel_cache / "work").iterdir())


def test_two_builds_of_the_same_compile_once(kernel_cache: Path, kernel_tree: Path) -> None:
    makefile = kernel_tree / "Makefile"
    makefile.write_text(makefile.read_text().replace("@cp $< $@", "@sleep 0.5; cp $< $@"))
    processes = [start(kernel_tree, "one"), start(kernel_tree, "two")]
    outputs = [process.communicate(timeout=PATIENCE_SECONDS)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sorted("already built" in output for output in outputs) == [False, True]
    assert store.find("one").build_id == store.find("two").build_id
    assert len(list((kernel_cache / "builds").iterdir())) == 1
