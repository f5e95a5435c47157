"""Linux 4.19 on hosts that have more extended state than it keeps, as those with AMX have.

A kernel that is made to keep 576 bytes is on such a host everywhere. The tree is not ours to ship:
`BLKLAB_OLD_LINUX` names it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from blklab.guests.kernels.building import BuildRequest, build
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.shipped import guest_program

from .guest_runs import measure, only

pytestmark = pytest.mark.slow

_HERE = Path(__file__).parent
_READER = "[reader]\nrw=randread\nbs=4k\ndirect=1\nruntime=100ms\ntime_based\n"


def _built(name: str, *patches: str) -> KernelBuild:
    tree = os.environ.get("BLKLAB_OLD_LINUX")
    if tree is None:
        pytest.skip("BLKLAB_OLD_LINUX names no tree of Linux 4.19 or 4.20")
    if guest_program() is None:
        pytest.skip("the guest program blkguest is not built (make build)")
    request = BuildRequest(name, source=tree, patches=[str(_HERE / patch) for patch in patches])
    kernel, _ = build(request)
    return kernel


def test_the_real_cfq_runs_where_the_host_has_more_than_the_kernel_keeps() -> None:
    kernel = _built("old-small-xstate", "small-xstate.patch")
    latency = only(measure("uml:fixed", _READER, f"cfq@{kernel.name}")).latency
    assert (latency.min_ns, latency.max_ns) == (100_000, 100_000)


def test_without_the_instrument_it_ends_at_the_first_process() -> None:
    kernel = _built("old-small-xstate-bare", "small-xstate.patch", "without-whole-xstate.patch")
    with pytest.raises(AssertionError, match="ptrace set fp regs failed, errno = 14"):
        measure("uml:fixed", _READER, f"cfq@{kernel.name}")
