"""io.cost's parameters of disks of this machine: measured through a directory, and everything restored."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from blklab.errors import RequirementError
from blklab.labs.iocost.determine import IoCostRequest, determined
from blklab.labs.iocost.drive import obstacle_here
from blklab.labs.iocost.measuring import IocostPlan
from blklab.labs.iocost.stages import IocostStages
from host.conftest import Filesystem, LoopDevice

pytestmark = pytest.mark.root


class Silent:
    def planned(self, plan: IocostPlan) -> None: ...

    def announce(self, line: str) -> None: ...

    def measuring(self, name: str, *, done: int, planned: int, left_ns: int | None = None) -> None: ...


def request(target: str) -> IoCostRequest:
    return IoCostRequest(
        target=target,
        profile=None,
        sweeps=True,
        models=(),
        needs_model=False,
        machine=None,
        solution=None,
        stages=IocostStages(rounds=3, runtime_us=200_000, processes=1, seed=1),
        file_bytes=16 << 20,
    )


def test_the_disk_of_a_directory_is_measured_and_left_as_it_was(ext4: Filesystem) -> None:
    found = determined(request(str(ext4.folder)), Silent())
    number = Path(ext4.devices[0].device).stat().st_rdev
    assert found.device_number == f"{os.major(number)}:{os.minor(number)}"
    assert found.model_line.startswith(f"{found.device_number} ctrl=user model=linear rbps=")
    assert found.models == [], "a loop device has no model"
    assert (found.chosen, found.sweep, found.machine) == ("naive", None, None)
    for one in (*found.coefficients, *found.latencies):
        assert 0 < one.low <= one.value <= one.high
        assert len(one.rounds) == 3
    obstacle = obstacle_here()
    assert obstacle is None or obstacle in found.remarks
    assert any("ext4" in remark for remark in found.remarks)
    ext4.assert_untouched()


def test_a_raw_device_is_refused_before_anything_is_written(raw: LoopDevice) -> None:
    with pytest.raises(RequirementError, match="half of the coefficients are about writes"):
        determined(request(raw.device), Silent())
    raw.assert_unchanged()
