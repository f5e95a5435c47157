"""Parts of a device for jobs with several files: added for a run, removed by the journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.errors import RefusedError, RequirementError
from blklab.linux.disks.partitions import Partition, add, partition_path
from blklab.linux.journal.journal import Journal
from blklab.linux.scratch.parts import commands_for, parts_of
from blklab.linux.scratch.raw_device import RawDevice
from blklab.spec.workloads import Workload, parse_workload
from real_devices import LoopMaker

MIB = 1 << 20


def on_files(names: str, size: str = "4m") -> Workload:
    text = f"[{names.replace(':', '-')}]\nrw=read\nbs=4k\nsize={size}\nfilename={names}\n"
    return parse_workload(text, name=names, source=f"{names}.fio")


def test_nodes_have_the_kernels_names() -> None:
    assert partition_path("/dev/sdb", 3) == "/dev/sdb3"
    assert partition_path("/dev/nvme0n1", 3) == "/dev/nvme0n1p3"


def test_files_follow_each_other_on_whole_blocks() -> None:
    parts = parts_of(Path("/dev/sdb"), [on_files("a:b", "4100k"), on_files("c")])
    assert parts == [
        Partition("/dev/sdb", 1, 0, 2052 << 10),
        Partition("/dev/sdb", 2, 3 * MIB, 2052 << 10),
    ]
    assert commands_for(parts) == ["addpart /dev/sdb 1 0 4104", "addpart /dev/sdb 2 6144 4104"]


def test_workloads_may_share_parts_but_not_overlap() -> None:
    assert len(parts_of(Path("/dev/sdb"), [on_files("a:b"), on_files("c:d")])) == 2
    with pytest.raises(RefusedError, match="divide /dev/sdb differently") as caught:
        parts_of(Path("/dev/sdb"), [on_files("a:b"), on_files("c:d", "6m")])
    assert "one after the other" in (caught.value.hint or "")


@pytest.mark.root
def test_the_journal_removes_parts(state: Path, make_loop: LoopMaker) -> None:
    disk = make_loop(16)
    part = Partition(str(disk.dev_path), 1, MIB, 2 * MIB)
    with Journal.create("run-1", "a test") as journal:
        add(journal, part)
        assert part.is_there
        assert Path(part.path).is_block_device()
        add(journal, part)
        overlapping = Partition(str(disk.dev_path), 2, 2 * MIB, 2 * MIB)
        with pytest.raises(RequirementError, match="cannot be divided"):
            add(journal, overlapping)
    assert not part.is_there
    assert not (disk.sys_path / Path(part.path).name).exists()


@pytest.mark.root
def test_a_raw_device_is_divided_for_a_job_with_several_files(state: Path, make_loop: LoopMaker) -> None:
    disk = make_loop(16)
    work = on_files("/dev/a:/dev/b")
    with Journal.create("run-1", "a test") as journal:
        space = RawDevice(disk.dev_path, allow_writes=False, journal=journal)
        space.prepare([work], lambda line: None)
        ((region,),) = space.regions(work)
        assert [Path(part.filename).is_block_device() for part in region.parts] == [True, True]
        assert space.commands([work])[0] == f"addpart {disk.dev_path} 1 0 4096"
    assert not any(Path(part.filename).exists() for part in region.parts)
