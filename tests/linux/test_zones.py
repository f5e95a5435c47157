"""Zoned disks: what sysfs says of them, schedulers that keep the order of writes, and jobs that they take."""

from __future__ import annotations

from pathlib import Path

import pytest
from sysfs_tree import SysfsTree

from blklab.errors import JobFileError, RefusedError, SchedulerUnavailableError
from blklab.linux.disks.disk import read_disk
from blklab.linux.disks.zones import Zones, check_order, check_zoned_writes, zoned_model, zones_of
from blklab.linux.scratch.layout import regions_on_device
from blklab.spec.workloads import Workload, parse_workload, workload_of_command

ZONE = 64 << 20
ZONES = Zones("host-managed", ZONE, 24, max_open=4, max_active=8)
NODE = Path("/dev/nvme1n1")
WRITING = "[w]\nrw=write\nbs=128k\ndirect=1\nzonemode=zbd\nsize=128m\n"


def _work(text: str) -> Workload:
    return parse_workload(text, name="zoned", source="zoned.fio")


def _disk(tree: SysfsTree, model: str) -> Path:
    files = {
        "queue/zoned": f"{model}\n",
        "size": f"{24 * ZONE // 512}\n",
        "queue/chunk_sectors": f"{ZONE // 512}\n",
        "queue/nr_zones": "24\n",
        "queue/max_open_zones": "4\n",
        "queue/max_active_zones": "8\n",
    }
    return tree.disk("nvme1n1", "259:1", files=files)


def test_zones_are_read(tmp_path: Path) -> None:
    zones = zones_of(_disk(SysfsTree(tmp_path), "host-managed"))
    assert zones == ZONES
    assert zones is not None
    assert zones.summary == "host-managed zoned, 24 zones of 64.0 MiB, 4 open at most"


@pytest.mark.parametrize("model", ["none", ""])
def test_a_disk_without_zones(tmp_path: Path, model: str) -> None:
    folder = _disk(SysfsTree(tmp_path), model)
    assert zones_of(folder) is None
    assert zoned_model(read_disk(folder)) == ""


@pytest.mark.parametrize(
    ("release", "scheduler", "writes", "model", "refused"),
    [
        ("6.1.0-42-amd64", "none", True, "host-managed", True),
        ("6.1.0-42-amd64", "mq-deadline", True, "host-managed", False),
        ("6.9.12", "bfq", True, "host-managed", True),
        ("6.9.12", "bfq", False, "host-managed", False),
        ("6.9.12", "none", True, "host-aware", False),
        ("6.9.12", "none", True, "none", False),
        ("6.10.0", "none", True, "host-managed", False),
        ("6.12.117+deb13-amd64", "bfq", True, "host-managed", False),
        ("7.0", "kyber", True, "host-managed", False),
    ],
)
def test_schedulers_that_keep_the_order_of_writes(
    tmp_path: Path, release: str, scheduler: str, writes: bool, model: str, refused: bool
) -> None:
    disk = read_disk(_disk(SysfsTree(tmp_path), model))
    if not refused:
        check_order(disk, [scheduler], writes=writes, release=release)
        return
    with pytest.raises(SchedulerUnavailableError, match="out of order") as caught:
        check_order(disk, ["mq-deadline", scheduler], writes=writes, release=release)
    assert scheduler in caught.value.message
    assert "6.10" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("changed", "message", "line"),
    [
        (("zonemode=zbd\n", ""), "takes writes only at its zones' write pointers", 2),
        (("rw=write", "rw=randwrite", "zonemode=zbd\n", ""), "only at its zones' write pointers", 2),
        (("direct=1\n", ""), "must not pass the page cache", None),
        (("size=128m", "size=128m\nmax_open_zones=5"), "has 4 at most", 7),
        (("size=128m", "size=32m"), "less than a zone", 6),
    ],
)
def test_jobs_that_the_disk_would_refuse(changed: tuple[str, ...], message: str, line: int | None) -> None:
    text = WRITING
    for old, new in zip(changed[::2], changed[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    with pytest.raises(JobFileError, match=message) as caught:
        check_zoned_writes(_work(text), ZONES, NODE)
    assert caught.value.hint
    assert caught.value.line == line


@pytest.mark.parametrize(
    "text", [WRITING, WRITING.replace("rw=write", "rw=randwrite"), "[r]\nrw=randread\nsize=1m\n"]
)
def test_jobs_that_it_takes(text: str) -> None:
    check_zoned_writes(_work(text), ZONES, NODE)


def test_a_host_aware_disk_takes_any_write() -> None:
    zones = Zones("host-aware", ZONE, 24, 0, 0)
    check_zoned_writes(_work(WRITING.replace("zonemode=zbd\n", "")), zones, NODE)


def test_a_command_does_not_know_of_zones() -> None:
    workload = workload_of_command("sync")
    with pytest.raises(RefusedError, match="write pointers"):
        check_zoned_writes(workload, ZONES, NODE)


def test_files_begin_at_zones() -> None:
    workload = _work(WRITING + "[b]\nrw=read\nzonemode=zbd\nsize=192m\n")
    regions = regions_on_device(workload, str(NODE), 24 * ZONE, alignment_bytes=ZONE)
    assert [clones[0].offset_bytes for clones in regions] == [0, 2 * ZONE]
    odd = _work(WRITING.replace("128m", "100m") + "[b]\nrw=read\nsize=64m\n")
    regions = regions_on_device(odd, str(NODE), 24 * ZONE, alignment_bytes=ZONE)
    assert [clones[0].offset_bytes for clones in regions] == [0, 2 * ZONE]


def test_models_say_that_they_have_no_zones() -> None:
    with pytest.raises(JobFileError, match="models have no zoned devices"):
        _work(WRITING).refuse_host_only("the simulator", "test on this machine's disk")
