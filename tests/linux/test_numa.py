"""Nodes of memory that a job file names and the machine lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.linux.load import numa
from blklab.linux.load.fio import job_file_text
from blklab.linux.scratch.layout import regions_on_device
from blklab.spec.workloads import parse_workload

NEAR = "[near]\nsize=1m\nnuma_cpu_nodes=0\n"
FAR = "[far]\nsize=1m\nnuma_cpu_nodes=0,2-3\nnuma_mem_policy=interleave:2-3\n"


@pytest.fixture
def one_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    online = tmp_path / "online"
    online.write_text("0\n")
    monkeypatch.setattr(numa, "_ONLINE", online)


def test_ranges_are_read() -> None:
    assert numa.nodes_in("interleave:0-2,5") == {0, 1, 2, 5}
    assert numa.nodes_in("local") == set()


@pytest.mark.usefixtures("one_node")
def test_missing_nodes_are_said_with_the_line_and_left_out() -> None:
    workload = parse_workload(NEAR + FAR, name="mine", source="mine.fio")
    (warning,) = numa.numa_warnings([workload])
    assert warning == "mine.fio:6: job far runs on any node: this machine has no node 2, 3"
    text = job_file_text(workload, regions_on_device(workload, "/dev/blklab", 32 << 20), seed=1)
    near, far = text.split("[near", 1)[1].split("[far", 1)
    assert "numa_cpu_nodes=0" in near
    assert "numa" not in far
