"""Draws when jobs begin, pause and end, and their rate limits."""

from __future__ import annotations

import random

from blklab.labs.fidelity.random_devices import DrawnDevice
from blklab.labs.fidelity.random_jobs import DrawnJob, Options

_SECOND_NS = 1_000_000_000
_CACHED_IOS = 2000


def draw_timing(
    draw: random.Random, jobs: list[DrawnJob], device: DrawnDevice, runtime_ns: int
) -> list[DrawnJob]:
    """Adds pauses, rate limits, and start and end times to jobs."""
    timed = []
    for index, job in enumerate(jobs):
        options: dict[str, str | int] = {}
        if draw.random() < 0.15:
            options |= _pauses(draw, device)
        elif draw.random() < 0.15:
            options |= _rate(draw, job, device)
        if draw.random() < 0.08:
            options["startdelay"] = _share_of(draw, runtime_ns)
        if draw.random() < 0.04:
            options["ramp_time"] = _share_of(draw, runtime_ns)
        if index > 0 and draw.random() < 0.04:
            options["stonewall"] = 1
        if draw.random() < 0.08:
            options |= _end(draw, job, runtime_ns)
        timed.append(job.having(options))
    return timed


def _pauses(draw: random.Random, device: DrawnDevice) -> Options:
    pauses = ("200us", "1ms", "3ms", f"{device.io_ns // 1000}us", f"{device.io_ns * 20 // 1000}us")
    options: dict[str, str | int] = {"thinktime": draw.choice(pauses)}
    if draw.random() < 0.4:
        options["thinktime_blocks"] = draw.choice((2, 4, 16, 64))
    return options


def _rate(draw: random.Random, job: DrawnJob, device: DrawnDevice) -> Options:
    """A rate below or near the device's speed."""
    ios = max(1, _SECOND_NS // device.io_ns // draw.choice((2, 10, 50)) // job.clones)
    name, value = ("rate_iops", ios) if draw.random() < 0.5 else ("rate", ios * job.largest_bytes)
    options: dict[str, str | int] = {name: value}
    if job.mixed and draw.random() < 0.5:
        options = {name: f"{value},{max(1, value // 3)}"}
    return {**options, "rate_process": "poisson"} if draw.random() < 0.4 else options


def _end(draw: random.Random, job: DrawnJob, runtime_ns: int) -> Options:
    """The job ends after an amount of work, at the latest with the others."""
    ends: list[dict[str, str | int]] = [
        {"number_ios": draw.choice((200, 1000))},
        {"io_size": draw.choice(("4m", "16m"))},
        {"size": "8m", "loops": draw.choice((1, 3))},
    ]
    if job.buffered and not job.writes:
        cached: dict[str, str | int] = {"size": "16m", "pre_read": 1, "number_ios": _CACHED_IOS}
        ends = [cached, *ends[:1]]
    return {"time_based": 0, "runtime": f"{runtime_ns // 1000}us", **draw.choice(ends)}


def _share_of(draw: random.Random, runtime_ns: int) -> str:
    return f"{runtime_ns * draw.choice((5, 20, 50)) // 100 // 1000}us"
