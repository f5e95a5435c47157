"""A scheduler from outside the kernel that shows what it learns in writable files, as ADIOS does."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import coupled_kernel
import pytest
from coupled_kernel import CoupledKernel

from blklab.errors import RestoreError
from blklab.linux.queue.settings import QueueSettings
from blklab.linux.queue.snapshot import restore_snapshot, snapshot
from blklab.spec.schedulers import parse_scheduler_choice

NOTHING, LEARNED = "base : 0 ns\nslope: 0 ns/KiB", "base : 81 ns\nslope: 3 ns/KiB"


class LearningKernel(CoupledKernel):
    """Takes a model as two numbers, and shows it in words."""

    def write(self, path: Path, value: str) -> None:
        """Imitates write(2)."""
        if path.name in ("model", "slice_idle") and not value.strip().isdigit():
            raise OSError(errno.EINVAL, "Invalid argument")
        super().write(path, value)

    def learn(self, text: str) -> None:
        """The scheduler changes its own file."""
        (self.queue / "iosched/model").write_text(f"{text}\n")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LearningKernel]:
    monkeypatch.setitem(coupled_kernel.TUNABLES, "wise", {"model": NOTHING, "priority": "8"})
    with coupled_kernel.coupled_kernel(tmp_path, LearningKernel) as made:
        assert isinstance(made, LearningKernel)
        yield made


def test_what_a_scheduler_learns_is_no_other_program_s_doing(kernel: LearningKernel) -> None:
    settings = QueueSettings([kernel.disk], {})
    wise = parse_scheduler_choice("wise")
    before = settings.apply(wise)
    kernel.learn(LEARNED)
    assert settings.changed_since(before) == []
    settings.apply(parse_scheduler_choice("bfq"))
    before = settings.apply(wise)
    kernel.learn(LEARNED)
    (kernel.queue / "nr_requests").write_text("7\n")
    assert settings.changed_since(before) == ["sda/nr_requests"]


def test_a_tunable_that_was_chosen_stays_as_chosen(kernel: LearningKernel) -> None:
    settings = QueueSettings([kernel.disk], {})
    before = settings.apply(parse_scheduler_choice("wise:priority=3"))
    (kernel.queue / "iosched/priority").write_text("8\n")
    assert settings.changed_since(before) == ["sda/iosched/priority"]


def test_a_tunable_of_the_kernel_s_own_schedulers_stays(kernel: LearningKernel) -> None:
    settings = QueueSettings([kernel.disk], {})
    before = settings.apply(parse_scheduler_choice("bfq"))
    (kernel.queue / "iosched/slice_idle").write_text("0\n")
    assert settings.changed_since(before) == ["sda/iosched/slice_idle"]


def test_a_disk_gets_a_learning_scheduler_back(kernel: LearningKernel) -> None:
    """Its settings too, but not what it had learned: it would refuse its own text."""
    QueueSettings([kernel.disk], {}).apply(parse_scheduler_choice("wise:priority=3"))
    kernel.learn(LEARNED)
    taken = snapshot(kernel.disk)
    QueueSettings([kernel.disk], {}).apply(parse_scheduler_choice("bfq"))
    restore_snapshot(kernel.disk, taken)
    assert kernel.scheduler == "wise"
    assert (kernel.queue / "iosched/priority").read_text() == "3\n"
    assert (kernel.queue / "iosched/model").read_text() == f"{NOTHING}\n"


def test_what_the_kernel_s_own_schedulers_refuse_is_named(kernel: LearningKernel) -> None:
    QueueSettings([kernel.disk], {}).apply(parse_scheduler_choice("bfq"))
    (kernel.queue / "iosched/slice_idle").write_text("odd\n")
    taken = snapshot(kernel.disk)
    (kernel.queue / "iosched/slice_idle").write_text("8\n")
    with pytest.raises(RestoreError, match="slice_idle is 8, was odd"):
        restore_snapshot(kernel.disk, taken)
