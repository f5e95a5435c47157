"""Settings of writeback in the grammar of schedulers."""

from __future__ import annotations

import pytest

from blklab.errors import UsageError
from blklab.spec.changes import parse_change
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.sweeps import parse_sweep

WHOLE = "bfq:low_latency=0:nr_requests=32:vm.dirty_bytes=67108864:vm.dirty_expire_centisecs=500"


def test_a_choice_tells_its_settings_apart_and_reads_its_own_text() -> None:
    choice = parse_scheduler_choice(WHOLE)
    assert choice.canonical == WHOLE
    assert choice.of_writeback == {"dirty_bytes": "67108864", "dirty_expire_centisecs": "500"}
    assert (choice.iosched, choice.queue, choice.of_groups) == (
        {"low_latency": "0"},
        {"nr_requests": "32"},
        {},
    )


def test_they_are_the_machine_s_and_not_the_disk_s() -> None:
    assert parse_scheduler_choice(WHOLE).for_disk.without_label == "bfq:low_latency=0:nr_requests=32"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("vm.dirty_byte=1", "did you mean vm.dirty_bytes"),
        ("vm.swappiness=10", "no setting of writeback"),
        ("vm.dirty_bytes=64m", "whole number such as 67108864"),
        ("vm.dirty_bytes=4096", "8192 or more"),
        ("vm.dirty_ratio=101", "from 1 to 100"),
        ("vm.dirty_ratio=5:vm.dirty_bytes=8192", "one limit"),
        ("vm.dirty_background_ratio=5:vm.dirty_background_bytes=8192", "one limit"),
    ],
)
def test_others_are_refused(setting: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_scheduler_choice(f"none:{setting}")
    assert message in f"{caught.value.message} {caught.value.hint}"


def test_they_are_swept() -> None:
    sweep = parse_sweep("none:vm.dirty_ratio=5,10")
    assert [choice.without_label for choice in sweep.cells().values()] == [
        "none",
        "none:vm.dirty_ratio=5",
        "none:vm.dirty_ratio=10",
    ]


def test_they_do_not_change_while_a_load_runs() -> None:
    with pytest.raises(UsageError, match="belongs to the machine"):
        parse_change("10s scheduler=none:vm.dirty_ratio=5")
