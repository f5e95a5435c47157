"""Settings of control groups that schedulers bring, under a real kernel with cgroup v2."""

from __future__ import annotations

import pytest

from blklab.backends.protocol import SessionOptions
from blklab.backends.uml import BACKEND
from blklab.errors import UsageError
from blklab.spec.schedulers import parse_scheduler_choices
from blklab.spec.targets import parse_target
from blklab.spec.workloads import parse_workload
from uml.guest_runs import measure, rate

TARGET = "uml:fixed,latency=100us,depth=32"
TWO = """[global]
rw=randread
bs=4k
direct=1
ioengine=libaio
iodepth=16
size=16m
time_based
runtime=100ms
[one]
cgroup=one
[two]
cgroup=two
"""


def test_a_limit_holds_for_its_group_alone() -> None:
    limit = 2000 * 4096
    sample = measure(TARGET, TWO, f"none:two/io.max.rbps={limit}")
    assert rate(sample, "two") == pytest.approx(2000, rel=0.25)
    assert rate(sample, "one") > 10 * rate(sample, "two")


def test_weights_under_io_cost_share_the_disk() -> None:
    model = ":".join(
        f"/io.cost.model.{name}={value}"
        for name, value in {
            "rbps": 400_000_000,
            "rseqiops": 40_000,
            "rrandiops": 40_000,
            "wbps": 400_000_000,
            "wseqiops": 40_000,
            "wrandiops": 40_000,
        }.items()
    )
    qos = "/io.cost.qos.enable=1:/io.cost.qos.min=100:/io.cost.qos.max=100"
    sample = measure(TARGET, TWO, f"none:{qos}:{model}:one/io.weight=400")
    assert rate(sample, "one") > 2 * rate(sample, "two")
    plain = measure(TARGET, TWO, "none")
    assert rate(plain, "one") == pytest.approx(rate(plain, "two"), rel=0.1)


def test_a_value_that_the_kernel_refuses_is_an_error_before_the_first_run() -> None:
    choices = parse_scheduler_choices("bfq,bfq:one/io.bfq.weight=5000")
    workload = parse_workload(TWO, name="two", source="two.fio")
    options = SessionOptions(run_id="test", kernels=(None,), arrangement="fixed")
    with (
        BACKEND.open(parse_target(TARGET), options) as session,
        pytest.raises(UsageError, match=r"io\.bfq\.weight"),
    ):
        session.check(choices, [workload])
