"""The order of jobs in the simulator: one that waits, one that ends others, several that share a flow."""

from __future__ import annotations

from blklab.simulator.simulation import SimulationResult
from plain_simulation import simulate

DEVICE = "fixed,latency=100us,depth=32,capacity=64m"


def run(jobs: str) -> SimulationResult:
    return simulate(DEVICE, f"[global]\ndirect=1\nrw=randread\nsize=1m\n{jobs}", scheduler="none")


def ios(result: SimulationResult, name: str) -> int:
    return sum(entry.ios for entry in result.job(name).directions)


def test_a_job_waits_for_all_clones_of_another() -> None:
    timed = "time_based\nruntime=100ms\n"
    together = run(f"[a]\nnumjobs=2\n{timed}[b]\n{timed}")
    one_by_one = run(f"[a]\nnumjobs=2\n{timed}[b]\nwait_for=a\n{timed}[c]\nwait_for=b\n{timed}")
    assert together.engine["simulated_ns"] < 150_000_000
    assert 300_000_000 <= one_by_one.engine["simulated_ns"] < 350_000_000
    assert ios(one_by_one, "a") > 1900
    assert ios(one_by_one, "c") > 950


def test_exitall_ends_a_phase_or_the_whole_file() -> None:
    ends = "number_ios=10\n[long]\ntime_based\nruntime=9\n[last]\nstonewall\nnumber_ios=20\n"
    phase = run(f"[first]\nexitall\nexit_what=stonewall\n{ends}")
    assert (ios(phase, "first"), ios(phase, "last")) == (10, 20)
    assert 9 <= ios(phase, "long") <= 12
    whole = run(f"[first]\nexitall\nexit_what=all\n{ends}")
    assert (ios(whole, "first"), ios(whole, "last")) == (10, 0)
    assert whole.engine["simulated_ns"] < 10_000_000


def test_a_flow_divides_ios_by_weight() -> None:
    timed = "time_based\nruntime=1\nioengine=libaio\niodepth=8\n"
    result = run(f"[one]\nflow=1\nflow_sleep=100\n{timed}[eight]\nflow=8\n{timed}")
    ratio = ios(result, "eight") / ios(result, "one")
    assert 7.5 < ratio < 8.5


def test_what_is_written_is_read_back_once() -> None:
    result = run("[a]\nrw=randwrite\nverify=crc32c\nioengine=libaio\niodepth=16\n")
    assert {entry.direction: entry.ios for entry in result.job("a").directions} == {"read": 256, "write": 256}


def test_a_share_of_ios_has_its_own_priority() -> None:
    jobs = "[a]\nioengine=libaio\niodepth=32\ntime_based\nruntime=1\nprioclass=3\n"
    base = f"[global]\ndirect=1\nrw=randread\nsize=1m\n{jobs}"
    tenths_ns = [
        simulate(
            "fixed,latency=1ms,depth=1,capacity=64m",
            base + extra,
            scheduler="mq-deadline",
            # Room for all I/Os, so that the scheduler can choose.
            queue={"nr_requests": 64},
        )
        .job("a")
        .directions[0]
        .latency.percentile_ns(0.1)
        for extra in ("", "cmdprio_percentage=20\n")
    ]
    # A fifth of the I/Os goes before all others.
    plain_ns, prioritised_ns = tenths_ns
    assert plain_ns is not None
    assert prioritised_ns is not None
    assert prioritised_ns < 0.7 * plain_ns
