"""Waits of tasks that ended, as the kernel reports them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from blklab.linux.processes import exit_accounting
from blklab.linux.processes.exit_accounting import (
    EndedTask,
    ExitAccounting,
    delays_are_accounted,
    io_delay_of_descendants,
)

TREE = [
    EndedTask(task=11, parent=10, io_delay_ns=1),
    EndedTask(task=12, parent=11, io_delay_ns=20),
    EndedTask(task=13, parent=11, io_delay_ns=300),
    EndedTask(task=99, parent=1, io_delay_ns=4_000),
]


def test_all_descendants_count_and_no_other_task() -> None:
    assert io_delay_of_descendants(TREE, 10, within_ns=1_000) == 321
    assert io_delay_of_descendants(TREE, 12, within_ns=1_000) == 0


def test_a_wait_longer_than_life_is_no_wait() -> None:
    assert io_delay_of_descendants(TREE, 10, within_ns=299) is None


def test_a_process_that_is_its_own_parent_ends_the_search() -> None:
    assert io_delay_of_descendants([EndedTask(10, 10, 5)], 10, within_ns=10) == 5


def test_without_the_control_there_is_no_accounting(tmp_path: Path) -> None:
    assert not delays_are_accounted(tmp_path / "missing")
    (tmp_path / "control").write_text("1\n")
    assert delays_are_accounted(tmp_path / "control")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_the_kernel_reports_tasks_with_their_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exit_accounting, "delays_are_accounted", lambda: True)
    accounting = ExitAccounting.opened()
    if accounting is None:
        pytest.skip("this kernel has no taskstats, or they belong to another namespace")
    with accounting:
        parent = subprocess.Popen(["sh", "-c", "sleep 0.01 & wait; sleep 0.01; true"])
        parent.wait()
        tasks = accounting.ended_tasks()
    assert tasks is not None
    assert [task.parent for task in tasks if task.task == parent.pid] == [os.getpid()]
    assert len([task for task in tasks if task.parent == parent.pid]) == 2
