"""Recorded runs whose pages are tested and inspected; each shows something different."""

from __future__ import annotations

import functools

from blklab.report.trace.submitters import TracedRun, traced_run
from plain_simulation import simulate

HOSTILE = "<b>&x"
"""Names that a section may have."""

_TWO = "[reader]\nrw=randread\ndirect=1\nnumber_ios=150\nsize=64m\n[writers]\nrw=write\nbs=256k\ndirect=1\n\
ioengine=libaio\niodepth=8\nsize=256m\nnumjobs=2\n"
_EQUAL = "".join(
    f"[{name}]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=4\ntime_based\nruntime=1s\nsize=64m\n"
    for name in "ab"
)
_MANY = "".join(f"[job {n}]\nrw=randread\ndirect=1\nnumber_ios={5 + n}\nsize=16m\n" for n in range(12))

_MIXED = (
    "[r]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=16\nnumber_ios=600\n"
    "[w]\nrw=randwrite\nbs=64k\ndirect=1\nnumber_ios=100\n"
)

CASES: dict[str, tuple[str, str, str]] = {
    "two-jobs": ("hdd-7200", "mq-deadline", _TWO),
    # With fewer tags than requests that wait for one, the first job keeps them all, in the kernel as well.
    "equal": ("fixed,jitter=50us,depth=8", "none", _EQUAL),
    "sequential": ("hdd-7200", "deadline", "[reader]\nrw=read\nbs=64k\nsize=64m\n"),
    "log": ("ssd-sata", "none", "[log]\nrw=write\nbs=8k\nsize=4m\nfdatasync=1\n"),
    "many-jobs": ("nvme-tlc", "none", _MANY),
    "one-request": ("fixed", "none", f"[{HOSTILE}]\nrw=randread\ndirect=1\nnumber_ios=1\n"),
    "large": (
        "nvme-tlc",
        "none",
        "[r]\nrw=randrw\ndirect=1\nioengine=libaio\niodepth=32\nnumber_ios=400000\nsize=4g\n",
    ),
    "array": (
        "hdd-7200,raid=10,members=4",
        "deadline",
        _MIXED,
    ),
    "memory-only": ("hdd-7200", "none", "[r]\nrw=read\nbs=64k\nsize=1m\npre_read=1\n"),
}
"""Device, scheduler and jobs, by name."""


@functools.cache
def cast_for(case: str) -> TracedRun:
    """The recorded run of a case."""
    device, scheduler, jobs = CASES[case]
    timeline = simulate(device, jobs, scheduler=scheduler, timeline=True).timeline
    if timeline is None:
        raise TypeError("no timeline was recorded")
    return traced_run(timeline)
