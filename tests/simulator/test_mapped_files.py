"""Mapped files in models (``ioengine=mmap``), and sizes by the order of I/Os (``bs_is_seq_rand``)."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

import blklab
from blklab import _core
from blklab.backends.uml_load import check_own_generator
from blklab.errors import JobFileError
from blklab.spec.workloads import parse_workload
from plain_simulation import simulate

PAGES = 1024
MAPPED = f"[a]\nioengine=mmap\nbs=4k\nsize={PAGES * 4}k\n"


def run(lines: str) -> blklab.SimulationResult:
    return simulate("ssd-sata,capacity=1g", f"{MAPPED}{lines}", scheduler="none")


def requests_of(lines: str) -> int:
    return int(run(lines).engine["requests"])


def test_advice_decides_how_much_a_fault_reads() -> None:
    # The window of 128 KiB is doubled by the advice, so that it is read in 16 pieces or a few more.
    assert PAGES // 64 <= requests_of("rw=read\n") <= PAGES // 64 + 4
    assert requests_of("rw=randread\n") == PAGES
    # Around a page 32 are read at once, and as a stream's windows meet, none is read twice.
    assert requests_of("rw=read\nfadvise_hint=none\n") <= PAGES // 16
    assert requests_of("rw=randread\nfadvise_hint=none\n") < PAGES // 4


def test_mapped_writes_read_their_pages_first() -> None:
    assert requests_of("rw=randwrite\nend_fsync=1\n") >= PAGES + 1


def test_direct_makes_each_mapped_io_end_with_a_flush() -> None:
    slow, fast = (run(f"rw=write\nnumber_ios=64\n{more}") for more in ("direct=1\n", ""))
    assert slow.engine["flushes"] == 64
    assert fast.engine["flushes"] == 0


def test_sizes_follow_the_order_of_ios() -> None:
    text = (
        "[a]\nrw=randread\nbs=4k,16k\nbs_is_seq_rand=1\npercentage_random=50\nnorandommap\nsize=64m\n"
        "number_ios=1000\n"
    )
    ios = [io for clone in json.loads(_core.job_transfers(text, "a", 64 << 20, 7, 2000))[0] for io in clone]
    assert {size for _, _, size, _ in ios} == {4096, 16384}
    for before, (_, offset, size, _) in pairwise(ios):
        in_order = offset == before[1] + before[2]
        assert size == (4096 if in_order else 16384)
    assert 400 < sum(size == 4096 for _, _, size, _ in ios) < 600


def test_a_guests_own_generator_maps_no_files() -> None:
    with pytest.raises(JobFileError, match="maps no files") as caught:
        check_own_generator(parse_workload(f"{MAPPED}rw=read\n", name="a", source="a.fio"))
    assert caught.value.line == 2
