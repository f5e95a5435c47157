"""Loads and the disks that vanish beneath them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from blklab.linux.load.load_process import REQUIRED_PROGRAMS, load_process
from blklab.linux.load.lost_disks import loads_end_with_their_disks
from blklab.linux.processes.programs import find_program

pytestmark = pytest.mark.skipif(
    any(find_program(name) is None for name in REQUIRED_PROGRAMS), reason="needs util-linux"
)


@pytest.fixture
def disks(tmp_path: Path) -> list[Path]:
    """Folders in place of those in sysfs."""
    folders = [tmp_path / "sda", tmp_path / "nvme0n1"]
    for folder in folders:
        folder.mkdir()
    return folders


def test_a_load_ends_with_one_of_its_disks(disks: list[Path], tmp_path: Path) -> None:
    begun = time.monotonic()
    with (
        loads_end_with_their_disks(disks),
        load_process(["sleep", "600"], tmp_path, limit_s=600, too_long="too long") as process,
    ):
        disks[1].rmdir()
        assert process.wait().returncode != 0
    assert time.monotonic() - begun < 300


def test_a_load_whose_disks_stay_goes_on(disks: list[Path], tmp_path: Path) -> None:
    with (
        loads_end_with_their_disks(disks),
        load_process(["sleep", "1"], tmp_path, limit_s=600, too_long="too long") as process,
    ):
        assert process.wait().returncode == 0
