"""Queue attributes that experiments may set: the same on hosts and in guests, by every kernel's names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sysfs_tree import SysfsTree

from blklab.linux.disks.disk import read_disk
from blklab.linux.queue.attributes import name_on, note_on_place
from blklab.spec.queue_attributes import QUEUE_ATTRIBUTES

GUEST_SOURCE = Path(__file__).parents[2] / "crates" / "blkguest" / "src" / "queue.rs"


def test_host_and_guests_set_the_same_attributes_in_the_same_order() -> None:
    """A guest is a program of its own in another language; this test keeps its list equal to the host's."""
    if not GUEST_SOURCE.exists():
        pytest.skip("the sources of blkguest are not here")
    found = re.search(r"const ATTRIBUTES: &\[&str\] = &\[(.*?)\];", GUEST_SOURCE.read_text(), re.DOTALL)
    assert found is not None, f"{GUEST_SOURCE} has no list ATTRIBUTES any more"
    assert tuple(re.findall(r'"(\w+)"', found[1])) == QUEUE_ATTRIBUTES


@pytest.mark.parametrize(
    ("file", "here"),
    [
        ("queue/iosched/async_depth", "iosched/async_depth"),  # up to Linux 6.19
        ("queue/async_depth", "async_depth"),  # from 7.0 on
    ],
)
@pytest.mark.parametrize("asked", ["async_depth", "iosched/async_depth"])
def test_async_depth_is_found_where_the_kernel_has_it(
    asked: str, file: str, here: str, tmp_path: Path
) -> None:
    tree = SysfsTree(tmp_path)
    files = {file: "48\n", "queue/iosched/fifo_batch": "16\n"}
    disk = read_disk(tree.disk("sda", "8:0", files=files), tree.roots)
    assert name_on(disk, asked) == here


def test_other_names_stay_as_they_are(tmp_path: Path) -> None:
    tree = SysfsTree(tmp_path)
    disk = read_disk(tree.disk("sda", "8:0", files={"queue/nr_requests": "64\n"}), tree.roots)
    assert [name_on(disk, name) for name in ("nr_requests", "iosched/nr_requests", "async_depth")] == [
        "nr_requests",
        "iosched/nr_requests",
        "async_depth",
    ]


def test_the_note_says_where_it_is_set() -> None:
    assert note_on_place("this kernel", of_queue=True).startswith(
        "async_depth is an attribute of the queue in"
    )
    assert "a tunable of the scheduler" in note_on_place("this kernel", of_queue=False)
