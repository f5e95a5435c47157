"""Recordings that would fill the memory end with a typed error, in bounded memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from blklab.errors import ExitCode
from recording_bombs import BOMBS, full_of_groups

ADDRESSES_BYTES = 3 << 29
"""1.5 GiB, of which Python, NumPy and Arrow take about a half."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bombs")


def _blklab(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES_BYTES, ADDRESSES_BYTES))

    # More threads would have more stacks, which count as well.
    environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": ":".join(sys.path)}
    return subprocess.run(
        [sys.executable, "-m", "blklab", *map(str, arguments)],
        preexec_fn=limit,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("output", ["", "x.npz", "x.parquet"])
def test_bombs_are_refused(name: str, output: str, folder: Path, tmp_path: Path) -> None:
    if output == "x.parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    bomb = folder / name
    if not bomb.exists():
        bomb.write_bytes(BOMBS[name]())
    assert bomb.stat().st_size < 600_000
    done = _blklab("convert", bomb, tmp_path / output) if output else _blklab("where", bomb)
    assert done.returncode == ExitCode.DATA, (done.returncode, done.stderr[-2000:])
    assert f"error: {bomb}" in done.stderr
    assert "larger than" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_replay_of_a_bomb_is_refused(folder: Path) -> None:
    bomb = folder / "full_of_ios"
    bomb.write_bytes(BOMBS["full_of_ios"]())
    done = _blklab("compare", "-w", f"trace:{bomb}", "-n", "1", "sim:ssd-sata")
    assert done.returncode == ExitCode.DATA, (done.returncode, done.stderr[-2000:])
    assert "larger than" in done.stderr


def test_control_groups_beyond_all_measure_are_left_out(folder: Path) -> None:
    bomb = folder / "groups"
    bomb.write_bytes(full_of_groups())
    done = _blklab("where", bomb)
    assert done.returncode == ExitCode.PARTIAL, (done.returncode, done.stderr[-2000:])
    assert "are larger than those of any recording" in done.stdout
