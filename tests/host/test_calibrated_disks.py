"""Disks of this machine as calibration sees them: facts, single measurements, and everything restored."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.errors import RefusedError
from blklab.labs.calibration.disk.flash.loads import strided
from blklab.labs.calibration.disk.ground import opened_ground
from blklab.labs.calibration.disk.loads import FLUSHES, DiskLoad
from blklab.spec.machines import load_machine
from blklab.spec.targets import parse_target
from host.conftest import Filesystem, LoopDevice

pytestmark = pytest.mark.root

MACHINE = load_machine("ordinary")
READS = DiskLoad("read", 4, 4)
RUNTIME_US = 200_000


def test_a_block_device_is_only_read(raw: LoopDevice) -> None:
    contents = raw.backing.read_bytes()
    with opened_ground(parse_target(raw.device), seed=1, machine=MACHINE) as ground:
        assert not ground.facts.writable
        assert ground.facts.space_bytes == ground.facts.capacity_bytes == 32 << 20
        assert any("only read" in remark for remark in ground.facts.remarks)
        ground.prepare([READS], lambda _: None)
        found = ground.measure(READS, number=0, runtime_us=RUNTIME_US)
        assert found.iops > 0
        assert 0 < found.p50_ns <= found.p95_ns <= found.p99_ns
        with pytest.raises(RefusedError):
            ground.prepare([DiskLoad("write", 4, 1)], lambda _: None)
    raw.assert_unchanged()
    assert raw.backing.read_bytes() == contents


def test_a_directory_has_one_file_to_read_and_one_to_write(ext4: Filesystem) -> None:
    target = parse_target(str(ext4.folder))
    with opened_ground(target, seed=1, machine=MACHINE, file_bytes=16 << 20) as ground:
        assert ground.facts.writable
        assert ground.facts.space_bytes == 16 << 20
        assert any("ext4" in remark for remark in ground.facts.remarks)
        ground.prepare([READS, FLUSHES], lambda _: None)
        files = [path for path in ext4.folder.rglob("*") if path.is_file()]
        assert [path.stat().st_size for path in files if "lost+found" not in str(path)] == 2 * [16 << 20]
        assert (ground.measure(FLUSHES, number=0, runtime_us=RUNTIME_US).sync_p50_ns or 0) > 0
        # Which loads follow depends on what was found: they use the files that are there.
        inodes = {path.name: path.stat().st_ino for path in files}
        ground.prepare([READS, DiskLoad("read", 8, 2)], pytest.fail)
        assert {path.name: path.stat().st_ino for path in files} == inodes
        assert ground.measure(DiskLoad("read", 8, 2), number=1, runtime_us=RUNTIME_US).iops > 0
    ext4.assert_untouched()


def test_steps_go_to_the_end_of_a_device(disk_folder: Path) -> None:
    target = parse_target(f"loop:16m,dir={disk_folder}")
    steps = strided(3 << 20, 16 << 20)
    assert steps.size_bytes < 16 << 20
    with opened_ground(target, seed=1, machine=MACHINE) as ground:
        ground.prepare([steps], lambda _: None)
        assert ground.measure(steps, number=0, runtime_us=RUNTIME_US).iops > 0
