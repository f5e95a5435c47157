"""Laws that hold in every run of a guest kernel, and the known behaviour of its schedulers."""

from __future__ import annotations

import itertools

import pytest

from blklab.errors import UnknownNameError
from blklab.guests.kernels.store import find
from blklab.quantities.units import NS_PER_SECOND
from blklab.records.samples import RunSample

from .guest_runs import measure, only, rate

pytestmark = pytest.mark.usefixtures("real_guest")

SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq:low_latency=0")
DEVICES = {
    "fixed": "uml:fixed,latency=200us,depth=8,jitter=40us",
    "disk": "uml:hdd-7200",
    "flash": "uml:ssd-sata",
}
MANY_TAGS = {"nr_requests": "64"}
"""With more I/Os waiting than tags the order of the waiters decides, not the scheduler."""


def _readers(*sections: str, iodepth: int = 1, numjobs: int = 1, runtime: str = "400ms") -> str:
    return "\n".join(
        f"[global]\nrw=randread\nbs=4k\ndirect=1\nioengine=io_uring\niodepth={iodepth}\nnumjobs={numjobs}\n"
        f"time_based\nruntime={runtime}\nsize=256m".splitlines()
        + list(sections)
    )


@pytest.mark.parametrize(("device", "scheduler"), list(itertools.product(DEVICES, SCHEDULERS)))
def test_little_utilisation_and_conservation(device: str, scheduler: str) -> None:
    depth, clones = 4, 2
    sample = measure(DEVICES[device], _readers("[reader]", iodepth=depth, numjobs=clones), scheduler)
    done = only(sample)
    # Conservation: each I/O is counted once, in the histogram, in the bytes and at the device.
    assert done.ios > 0
    assert sum(done.latency.bins.values()) == done.latency.count == done.ios
    assert done.bytes == done.ios * 4096
    assert sample.engine["requests"] + sample.engine["merges"] == done.ios
    # Little: I/Os under way = rate x time of each. At both ends some are under way that count once only.
    under_way = done.latency.sum_ns / done.runtime_ns
    edge = 2 * depth * clones * (done.latency.mean_ns or 0) / done.runtime_ns
    assert under_way == pytest.approx(depth * clones, rel=0.02, abs=edge)
    # Utilisation: the device is never busy for longer than the run.
    assert 0 < sample.engine["device_busy_ns"] <= sample.engine["simulated_ns"]


@pytest.mark.parametrize("latency_us", [100, 200, 1000])
def test_one_reader_on_a_fixed_device_gets_one_over_latency(latency_us: int) -> None:
    sample = measure(f"uml:fixed,latency={latency_us}us", _readers("[reader]"), "none")
    assert rate(sample, "reader") == pytest.approx(1e6 / latency_us, rel=0.015)
    assert only(sample).latency.mean_ns == pytest.approx(latency_us * 1000, rel=0.015)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_trims_reach_the_device_one_at_a_time(scheduler: str) -> None:
    jobs = "[trimmer]\nrw=randtrim\nbs=16k\nsize=4m\nioengine=libaio\niodepth=16\n"
    sample = measure("uml:fixed,latency=200us,depth=8", jobs, scheduler)
    done = only(sample)
    assert (done.direction, done.ios, done.bytes) == ("trim", 256, 4 << 20)
    assert done.latency.mean_ns == pytest.approx(200_000, rel=0.015)
    assert sample.engine["requests"] == 256


def test_nothing_of_the_guest_takes_an_io_time() -> None:
    """Several seconds long: whatever the guest does once a second falls into it."""
    if find().clock.exact is None:
        pytest.skip("the kernel has no exact clock")
    latency = only(measure("uml:fixed,latency=1ms", _readers("[reader]", runtime="3500ms"), "none")).latency
    assert (latency.count, latency.min_ns, latency.max_ns) == (3500, 1_000_000, 1_000_000)


@pytest.mark.parametrize("weights", [(100, 300, 600), (100, 100, 100)])
def test_bfq_shares_by_weight(weights: tuple[int, int, int]) -> None:
    groups = {name: str(weight) for name, weight in zip(("low", "middle", "high"), weights, strict=True)}
    sample = measure(
        "uml:fixed,latency=500us,depth=4,jitter=50us",
        _readers(*(f"[{name}]\ncgroup={name}" for name in groups), numjobs=4, runtime="4s"),
        "bfq:low_latency=0",
        queue=MANY_TAGS,
        cgroups={name: {"io.bfq.weight": weight} for name, weight in groups.items()},
    )
    low, middle, high = (rate(sample, name) for name in groups)
    assert middle / low == pytest.approx(weights[1] / weights[0], rel=0.1)
    assert high / low == pytest.approx(weights[2] / weights[0], rel=0.1)


def test_bfq_prefers_the_higher_level() -> None:
    sections = ["[high]\nprioclass=2\nprio=0", "[low]\nprioclass=2\nprio=7"]
    jobs = _readers(*sections, iodepth=4, runtime="3s")
    sample = measure("uml:fixed,latency=1ms,depth=1,jitter=100us", jobs, "bfq:low_latency=0", queue=MANY_TAGS)
    assert rate(sample, "high") > 5 * rate(sample, "low")


def test_real_time_starves_idle_under_mq_deadline() -> None:
    sections = ["[urgent]\nprioclass=1\nprio=0", "[idle]\nprioclass=3"]
    jobs = _readers(*sections, iodepth=16, runtime="2s")
    device = "uml:fixed,latency=1ms,depth=1,jitter=100us"
    starved = measure(device, jobs, "mq-deadline", queue=MANY_TAGS)
    assert rate(starved, "urgent") > 50 * rate(starved, "idle")
    alike = jobs.replace("prioclass=1\nprio=0", "").replace("prioclass=3", "")
    fair = measure(device, alike, "mq-deadline", queue=MANY_TAGS)
    assert rate(fair, "urgent") < 1.5 * rate(fair, "idle")


def test_a_busy_wait_in_kyber_costs_what_it_waits() -> None:
    """The patch waits 100 ms in each dispatch: one reader at depth 1 gets one I/O in 100 ms and a latency."""
    patched = "kyber-busy-wait"
    try:
        find(patched)
    except UnknownNameError:
        pytest.skip(f"the kernel {patched} is not built: blklab kernel build {patched} --patch {patched}")
    jobs = _readers("[reader]", runtime="5s")
    device = "uml:fixed,latency=100us"
    stock, slow = (measure(device, jobs, f"kyber{kernel}") for kernel in ("", f"@{patched}"))
    ratio = rate(stock, "reader") / rate(slow, "reader")
    assert ratio == pytest.approx((100_000 + 100) / 100, rel=0.05)
    assert only(slow).runtime_ns >= 5 * NS_PER_SECOND


def test_settings_are_in_force_as_read_back() -> None:
    sample = measure(DEVICES["fixed"], _readers("[reader]"), "mq-deadline:fifo_batch=3", queue=MANY_TAGS)
    assert sample.settings["fixed/scheduler"] == "mq-deadline"
    assert sample.settings["fixed/iosched/fifo_batch"] == "3"
    assert sample.settings["fixed/nr_requests"] == "64"


def test_tunables_outlast_a_change_of_the_queue() -> None:
    """A change of nr_requests makes mq-deadline compute its async_depth anew (dd_depth_updated)."""
    jobs = (
        "[global]\ndirect=1\nioengine=libaio\niodepth=64\nsize=64m\ntime_based\nruntime=200ms\n"
        "[reader]\nrw=randread\n[writer]\nrw=randwrite\n"
    )
    device = "uml:fixed,latency=1ms,depth=32"
    few, many = (
        measure(device, jobs, f"mq-deadline:async_depth={depth}", queue={"nr_requests": "128"})
        for depth in (4, 128)
    )
    assert few.settings["fixed/iosched/async_depth"] == "4"
    assert rate(few, "writer") < rate(many, "writer") / 5


def test_the_sample_names_its_kernel() -> None:
    sample: RunSample = measure(DEVICES["fixed"], _readers("[reader]"), "none")
    kernel = find()
    assert sample.engine["kernel"] == {
        "name": "stock",
        "version": kernel.version,
        "build_id": kernel.build_id,
    }
