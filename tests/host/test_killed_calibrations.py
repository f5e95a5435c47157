"""Calibrations killed at any moment leave nothing but their measurements, and the next continues."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from blklab.labs.calibration.disk.saved import measurements_path
from blklab.linux.journal.recovery import raise_for_failures, recover
from blklab.quantities.formatting import count_of
from host.conftest import Filesystem
from real_devices import own_loops
from waiting import wait_until

pytestmark = pytest.mark.root


def started(target: str, profile: Path) -> subprocess.Popen[str]:
    arguments = ["calibrate", "disk", target, "--budget", "1s", "--file-size", "16m", "--machine", "ordinary"]
    return subprocess.Popen(
        [sys.executable, "-m", "blklab", *arguments, "-o", str(profile)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )


def kept(profile: Path) -> int:
    """Measurements on the disk; the first line says what they are of."""
    path = measurements_path(profile)
    return max(0, path.read_text().count("\n") - 1) if path.exists() else 0


def keeps_more(profile: Path, before: int) -> bool:
    return kept(profile) > before


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_a_killed_calibration_leaves_its_measurements_alone(
    disk_folder: Path, state: Path, tmp_path: Path, seed: int, kills: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    profile = tmp_path / "disk.toml"
    before = most = 0
    for attempt in range(kills):
        process = started(f"loop:16m,dir={disk_folder}", profile)
        if attempt % 2:
            wait_until(partial(keeps_more, profile, before), "a measurement is kept", process=process)
        time.sleep(chance.uniform(0, 1.0))
        process.kill()
        _, said = process.communicate()
        raise_for_failures(recover(state))
        assert own_loops(disk_folder) == []
        assert list(disk_folder.iterdir()) == []
        if profile.exists():
            # It had ended before, as one of many may; the next begins anew.
            assert kills > 4
            profile.unlink()
            before = kept(profile)
            continue
        assert kept(profile) >= before
        if attempt % 2:
            continued = f"continuing after {count_of(before, 'measurement')} of" in said
            assert continued == (before > 0)
        before = kept(profile)
        most = max(most, before)
    assert most >= 2


def test_a_calibration_that_is_ended_restores_the_disk_itself(ext4: Filesystem, tmp_path: Path) -> None:
    profile = tmp_path / "disk.toml"
    process = started(str(ext4.folder), profile)
    wait_until(lambda: kept(profile) > 1, "two measurements are kept", process=process)
    process.terminate()
    _, said = process.communicate()
    assert process.returncode == 128 + 15
    assert "measurements are kept; the same command continues from them" in said
    ext4.assert_untouched()
    assert not profile.exists()
