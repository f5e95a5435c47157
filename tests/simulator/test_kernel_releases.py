"""`kernel=` in a target: the release of Linux that the simulator follows."""

from __future__ import annotations

import pytest

from blklab import simulate
from blklab.errors import BlklabError, UsageError
from blklab.simulator.core import MODELLED_RELEASES, device_request
from blklab.spec.profiles import load_profile
from blklab.spec.targets import ModelTarget

JOBS = (
    "[global]\ndirect=1\nioengine=libaio\nruntime=100ms\ntime_based\nsize=1g\n"
    "[readers]\nrw=randread\nnumjobs=2\n[writer]\nrw=randwrite\niodepth=60\n"
)


def _ios(device: str) -> list[int]:
    result = simulate(device, JOBS, scheduler="mq-deadline", queue={"nr_requests": 64})
    return [sum(entry.ios for entry in job.data_directions()) for job in result.jobs]


def test_the_first_release_is_the_default() -> None:
    ios = [_ios(f"fixed,depth=1,kernel={major}.{minor}") for major, minor in MODELLED_RELEASES]
    assert ios[0] == _ios("fixed,depth=1")
    assert all(ios[0] != later for later in ios[1:])


def test_other_releases_are_refused_with_those_there_are() -> None:
    with pytest.raises(BlklabError, match=r"one of 6\.1, 6\.12, 7\.2, 7\.3"):
        _ios("fixed,kernel=5.4")


def test_a_guest_has_its_kernel_by_name() -> None:
    target = ModelTarget("uml", "fixed", (("kernel", "7.3"),))
    with pytest.raises(UsageError, match="which only the simulator takes"):
        device_request(target, load_profile("fixed"))
