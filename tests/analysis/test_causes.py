"""Well-known causes are named from simulated runs, and none where nothing differs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from blklab.analysis.causes import Cause, cause_of
from blklab.experiment.behaviours import behaviour_of_timeline
from blklab.records.behaviour import Behaviour
from blklab.report.sentences.causes import cause_sentence
from blklab.simulator.request import SimulationRequest
from blklab.simulator.simulation import run_request

_SEQUENTIAL_READERS = """
[global]
direct=1
time_based
runtime=2s
ioengine=psync
size=256m
readwrite=read
blocksize=64k
thinktime={think}
[reader]
filename=wanted
prio=0
[others]
filename=bulk
prio=7
numjobs=4
offset_increment=256m
"""
_READER_BESIDE_WRITERS = """
[global]
direct=1
time_based
runtime=2s
[reader]
filename=wanted
readwrite=randread
blocksize=4k
ioengine=psync
size=256m
[writers]
filename=bulk
readwrite=randwrite
blocksize=64k
ioengine=libaio
iodepth=32
numjobs=8
size=128m
"""
_DEEP_READS_AND_WRITES = """
[global]
direct=1
time_based
runtime=3s
ioengine=libaio
blocksize=16k
[writer]
filename=written
readwrite=randwrite
iodepth=8
size=1g
[readers]
filename=read
readwrite=randread
iodepth=32
size=4g
"""
_SCATTERED_READS = """
[readers]
filename=data
readwrite=randread
blocksize=4k
ioengine=libaio
iodepth=64
direct=1
size=2000g
time_based
runtime=2s
"""
_SLOW_DISK = "hdd-7200,queue_depth=1"


def _behaviour(device: str, jobs: str, scheduler: str) -> Behaviour:
    result = run_request(
        SimulationRequest(
            device, jobs, scheduler=scheduler, costs="ordinary", arrangement="fixed", timeline=True, seed=3
        )
    )
    assert result.timeline is not None
    return behaviour_of_timeline(result.timeline, "load", scheduler)


def _cause(
    device: str,
    jobs: str,
    better: str,
    worse: str,
    focus: Sequence[str] = (),
    *,
    of_slowest: bool = False,
) -> Cause | None:
    first, second = (_behaviour(device, jobs, scheduler) for scheduler in (better, worse))
    return cause_of(first, second, focus, of_slowest=of_slowest)


def test_bfq_idles_for_a_synchronous_reader() -> None:
    cause = _cause("hdd-7200", _SEQUENTIAL_READERS.format(think="2ms"), "bfq", "mq-deadline", ["reader"])
    assert cause is not None
    assert (cause.kind, cause.focus, cause.other) == ("idling", "reader", "others")
    assert cause.better_count > 0.1
    assert cause.worse_count < 0.01
    assert cause_sentence(cause).startswith("bfq keeps the device idle for the next I/O of reader")


def test_a_reader_that_is_served_in_a_row_has_a_slice() -> None:
    cause = _cause("hdd-7200", _SEQUENTIAL_READERS.format(think="0"), "bfq", "mq-deadline", ["reader"])
    assert cause is not None
    assert cause.kind == "slices"
    assert cause.better_count > 10 * cause.worse_count


def test_the_party_behind_waits_for_an_idle_device() -> None:
    jobs = _SEQUENTIAL_READERS.format(think="2ms")
    cause = _cause("ssd-sata", jobs, "mq-deadline", "bfq", ["others"])
    assert cause is not None
    assert (cause.kind, cause.phase) == ("idled", "queue")
    assert cause.worse_count > 0.3


def test_kyber_holds_writes_back() -> None:
    cause = _cause("samsung-980-pro", _READER_BESIDE_WRITERS, "kyber", "none", ["reader"])
    assert cause is not None
    assert (cause.kind, cause.other, cause.phase) == ("limit", "writers", "device")
    assert cause.better_count < 0.75 * cause.worse_count
    assert cause_sentence(cause).startswith("kyber holds writers back: ")
    assert "as under `none`" in cause_sentence(cause)


def test_batches_of_deadline_make_the_slowest_writes_wait() -> None:
    cause = _cause(
        _SLOW_DISK,
        _DEEP_READS_AND_WRITES,
        "deadline:fifo_batch=1",
        "deadline",
        ["writer"],
        of_slowest=True,
    )
    assert cause is not None
    assert (cause.kind, cause.other, cause.phase) == ("turns", "readers", "queue")
    assert cause.worse_count > 12
    assert cause.better_count < 4


def test_sorting_brings_the_head_less_far() -> None:
    cause = _cause(_SLOW_DISK, _SCATTERED_READS, "deadline", "noop")
    assert cause is not None
    assert cause.kind == "distance"
    assert cause.better_count < cause.worse_count / 4
    assert cause_sentence(cause).startswith("deadline sorts: the head moves ")


@pytest.mark.parametrize("better", ["mq-deadline", "kyber", "deadline"])
def test_reads_go_before_writes_that_fill_the_queue(better: str) -> None:
    cause = _cause("hdd-7200", "reader-beside-writers", better, "none", ["reader"])
    assert cause is not None
    assert (cause.kind, cause.other) == ("order", "writers")
    assert cause.worse_wait_ns > 100 * cause.better_wait_ns


def test_readers_that_read_on_in_one_place_need_fewer_seeks() -> None:
    cause = _cause("hdd-7200", "many-readers", "bfq", "mq-deadline")
    assert cause is not None
    assert (cause.kind, cause.focus) == ("runs", "")
    assert cause.better_count > 10 * cause.worse_count


def test_on_fast_flash_the_processors_decide() -> None:
    cause = _cause("nvme-tlc", "random-read-4k-qd32", "none", "bfq")
    assert cause is not None
    assert (cause.kind, cause.phase) == ("processors", None)
    assert cause.worse_count > 1.5 * cause.better_count


def test_computing_is_no_cause_where_the_head_takes_a_thousand_times_as_long() -> None:
    two_levels = """
[global]
rw=randread
bs=64k
ioengine=libaio
iodepth=8
direct=1
time_based
runtime=2s
size=1g
[high]
prio=0
[low]
prio=7
"""
    cause = _cause("hdd-7200", two_levels, "mq-deadline", "bfq")
    assert cause is None or cause.kind != "processors"


def test_where_nothing_differs_no_cause_is_named() -> None:
    assert _cause("hdd-7200", "direct-sequential-write", "none", "mq-deadline") is None
    assert _cause("ssd-sata", "mixed-70-30", "none", "kyber") is None


def test_a_run_without_requests_has_no_cause() -> None:
    empty = _behaviour("hdd-7200", "cached-read", "none").model_copy(update={"parties": []})
    assert cause_of(empty, empty) is None
