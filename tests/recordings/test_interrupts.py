"""A signal ends the reading of a recording, however long it takes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from blklab.errors import ExitCode
from waiting import PATIENCE_SECONDS, wait_until

LINE = b"128166372003061629,hm,1,Read,383496192,32768,1331\n"


@pytest.fixture(params=["where", "convert to NumPy", "convert to Parquet"])
def command(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    if request.param == "where":
        return ["where", str(pipe)]
    if request.param == "convert to Parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        return ["convert", str(pipe), str(tmp_path / "x.parquet")]
    return ["convert", str(pipe), str(tmp_path / "x.npz")]


def _start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "blklab", *command],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )


def _has_open(process: subprocess.Popen[str], path: Path) -> bool:
    with suppress(OSError):
        links = [link.readlink() for link in Path(f"/proc/{process.pid}/fd").iterdir()]
        return path in links
    return False


def _end(process: subprocess.Popen[str], number: signal.Signals) -> None:
    process.send_signal(number)
    try:
        _, error = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 128 + number, error
    assert "Traceback" not in error


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_pipe_without_a_writer(command: list[str], number: signal.Signals) -> None:
    process = _start(command)
    wait_until(lambda: _has_open(process, Path(command[1])), "the pipe is open", process=process)
    _end(process, number)


@contextmanager
def _endless_writer(pipe: Path) -> Iterator[None]:
    """Writes lines that are skipped, so that no memory fills, until the reader has gone."""

    def write() -> None:
        with suppress(BrokenPipeError), pipe.open("wb", buffering=0) as out:
            out.write(LINE)
            while True:
                out.write(b"\n" * 65536)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        writer.join()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_endless_pipe(command: list[str], number: signal.Signals) -> None:
    pipe = Path(command[1])
    with _endless_writer(pipe):
        process = _start(command)
        wait_until(lambda: _has_open(process, pipe), "the pipe is open", process=process)
        _end(process, number)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/full", "/dev/null"])
def test_devices_are_refused(path: str, tmp_path: Path) -> None:
    for command in (["where", path], ["convert", path, str(tmp_path / "x.npz")]):
        process = _start(command)
        _, error = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == ExitCode.DATA
        assert "neither a regular file nor a pipe" in error
