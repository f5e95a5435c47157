"""Writes to files of the kernel."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from blklab.linux.machine.kernel_files import write_once


def _busy(monkeypatch: pytest.MonkeyPatch, times: int, number: int = errno.EBUSY) -> list[bytes]:
    """Makes the kernel refuse the first writes."""
    tried: list[bytes] = []

    def write(descriptor: int, value: bytes) -> int:
        del descriptor
        tried.append(value)
        if len(tried) <= times:
            raise OSError(number, os.strerror(number))
        return len(value)

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    return tried


def test_a_busy_kernel_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scheduler").touch()
    tried = _busy(monkeypatch, 3)
    write_once(tmp_path / "scheduler", "bfq")
    assert tried == [b"bfq"] * 4


@pytest.mark.parametrize(("number", "attempts"), [(errno.EBUSY, 200), (errno.EINVAL, 1)])
def test_a_refusal_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, attempts: int
) -> None:
    (tmp_path / "scheduler").touch()
    tried = _busy(monkeypatch, 1000, number)
    with pytest.raises(OSError) as caught:
        write_once(tmp_path / "scheduler", "bfq")
    assert caught.value.errno == number
    assert len(tried) == attempts


def test_a_file_that_is_gone_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_once(tmp_path / "scheduler", "bfq")
    assert list(tmp_path.iterdir()) == []
