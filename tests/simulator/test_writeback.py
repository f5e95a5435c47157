"""Settings of writeback of a model's machine."""

from __future__ import annotations

import pytest

from blklab.backends.protocol import SessionOptions
from blklab.backends.sim import BACKEND
from blklab.records.samples import RunSample
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.targets import parse_target
from blklab.spec.workloads import parse_workload

PAGES = (4 << 30) // 4096
"""Of the modelled machine's memory."""
BESIDE_A_WRITER = parse_workload(
    """
[writer]
rw=write
bs=64k
size=400m
[reader]
rw=randread
bs=4k
size=64m
offset=1g
direct=1
ioengine=libaio
iodepth=1
time_based
runtime=3
""",
    name="beside-a-writer",
    source="beside-a-writer.fio",
)


def simulated(*texts: str) -> list[RunSample]:
    """A run under each choice."""
    choices = [parse_scheduler_choice(text) for text in texts]
    with BACKEND.open(parse_target("sim:hdd-7200"), SessionOptions(run_id="test")) as session:
        session.check(choices, [BESIDE_A_WRITER])
        return [
            session.run(
                Cell(
                    key=CellKey(
                        block=0,
                        sequence=number,
                        position=number,
                        workload="beside-a-writer",
                        scheduler=choice.label,
                        seed=7,
                    ),
                    workload=BESIDE_A_WRITER,
                    scheduler=choice,
                )
            )
            for number, choice in enumerate(choices)
        ]


def test_a_limit_in_bytes_is_the_share_that_it_amounts_to() -> None:
    """To the bit."""
    share, size = simulated(
        "none:vm.dirty_ratio=5:vm.dirty_background_ratio=2",
        f"none:vm.dirty_bytes={PAGES * 5 // 100 * 4096}:vm.dirty_background_bytes={PAGES * 2 // 100 * 4096}",
    )
    assert share.jobs == size.jobs


def test_the_default_is_the_kernel_s() -> None:
    default, given = simulated("none", "none:vm.dirty_ratio=20:vm.dirty_background_ratio=10")
    assert default.jobs == given.jobs
    assert given.settings["vm.dirty_ratio"] == "20"


@pytest.mark.parametrize("limit", ["8192", "4194304"])
def test_a_small_limit_holds_the_writer_back(limit: str) -> None:
    default, small = simulated("none", f"none:vm.dirty_bytes={limit}:vm.dirty_background_bytes=4096")
    assert (default.status, small.status) == ("ok", "ok")
    runtimes = [sample.jobs[0].directions[0].runtime_ns for sample in (default, small)]
    assert runtimes[1] > 1.5 * runtimes[0], runtimes


def test_the_defaults_are_told_for_sweeps() -> None:
    with BACKEND.open(parse_target("sim:hdd-7200"), SessionOptions(run_id="test")) as session:
        defaults = session.tunable_defaults(parse_scheduler_choice("bfq"))
    assert defaults is not None
    assert defaults["vm.dirty_ratio"] == "20"
    assert defaults["vm.dirty_bytes"] == "0"


def test_schedulers_with_some_take_no_turns() -> None:
    with BACKEND.open(parse_target("sim:hdd-7200"), SessionOptions(run_id="test")) as session:
        choices = [parse_scheduler_choice(text) for text in ("none", "none:vm.dirty_ratio=5")]
        session.check(choices, [BESIDE_A_WRITER])
        reason = session.unswitchable(BESIDE_A_WRITER)
    assert reason is not None
