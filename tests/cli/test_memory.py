"""Too little memory: a requirement that is named, neither a hang nor a traceback."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from blklab.cli import run, workloads
from blklab.cli.address_space import require_address_space
from blklab.errors import ExitCode, RequirementError

_MIB = 1 << 20


def _limited(mib: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "blklab", *arguments],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (mib * _MIB, mib * _MIB)),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("mib", [100, 200, 300, 500])
def test_a_low_limit_is_named_with_what_is_needed(mib: int) -> None:
    answer = _limited(mib, "compare", "sim:fixed", "-w", "many-readers", "-n", "1")
    assert answer.returncode == ExitCode.REQUIREMENT
    assert "blklab compare needs about" in answer.stderr
    assert f"its limit is {mib} MiB" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_what_computes_nothing_needs_less() -> None:
    assert _limited(256, "workloads").returncode == ExitCode.OK
    assert _limited(100, "--version").returncode == ExitCode.OK


def test_what_is_said_to_be_enough_is_enough() -> None:
    needed = 512 + 96 * min(os.cpu_count() or 1, 64)
    answer = _limited(needed, "compare", "sim:fixed", "-w", "many-readers", "-n", "1", "-q", "--json", "-")
    assert answer.returncode == ExitCode.OK, answer.stderr


def test_each_command_has_a_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (300 * _MIB, 300 * _MIB))
    require_address_space("restore")
    with pytest.raises(RequirementError, match="blklab tune needs about"):
        require_address_space("tune")


def test_memory_that_runs_out_later(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(workloads.command, "callback", failing)
    assert run(["workloads"]) == ExitCode.REQUIREMENT
    assert "error: out of memory" in capsys.readouterr().err
