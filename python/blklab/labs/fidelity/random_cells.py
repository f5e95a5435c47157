"""Draws cells at random, so that fixes of the simulator are not fitted to the matrix alone.

Every option that both sides support can occur: options of jobs (`random_jobs`, `random_timing`), of the
queue and its scheduler (`random_settings`), and of control groups (`random_groups`). A cell has only a few
unusual options, so that a difference can be traced to them.
"""

from __future__ import annotations

import random

from blklab.labs.fidelity.cells import FidelityCell
from blklab.labs.fidelity.random_devices import DrawnDevice, draw_device
from blklab.labs.fidelity.random_groups import draw_groups
from blklab.labs.fidelity.random_jobs import DrawnJob, draw_jobs
from blklab.labs.fidelity.random_settings import draw_queue, draw_tunables
from blklab.labs.fidelity.random_timing import draw_timing

_MS = 1_000_000
_LONGEST_NS = 20_000 * _MS
_SHORTEST_NS = 100 * _MS
_SHORTEST_LIMITED_NS = 400 * _MS
"""The limits of control groups act in periods and windows of 100 ms."""
_WANTED_IOS = 4000
_SMALL_BYTES = 16 << 10


def random_cells(number: int, seed: int) -> list[FidelityCell]:
    """Draws cells, the same for the same seed; a longer list begins with the shorter one."""
    return [
        _cell(random.Random(f"{seed}/{index}"), f"random/{seed}/{index}")  # noqa: S311 - reproducible draws
        for index in range(number)
    ]


def _cell(draw: random.Random, name: str) -> FidelityCell:
    device = draw_device(draw)
    scheduler = draw.choice(("none", "mq-deadline", "kyber", "bfq"))
    jobs = draw_jobs(draw)
    groups = draw_groups(draw, scheduler, device, jobs)
    runtime_ns = _runtime_ns(device, jobs, limited=bool(groups.attributes))
    timed = draw_timing(draw, groups.jobs, device, runtime_ns)
    return FidelityCell(
        name=f"{name}/{device.text.split(',')[0]}/{scheduler}",
        device=device.text,
        scheduler=scheduler,
        jobs={f"job{index}": job.options for index, job in enumerate(timed)},
        runtime_ns=runtime_ns,
        tunables=draw_tunables(draw, scheduler),
        queue=draw_queue(draw, scheduler, device, jobs),
        cgroups=groups.attributes,
        seed=draw.randrange(1, 1000),
    )


def _runtime_ns(device: DrawnDevice, jobs: list[DrawnJob], *, limited: bool) -> int:
    largest = max(job.largest_bytes for job in jobs)
    slower = 1 if largest <= _SMALL_BYTES else 3
    runtime_ns = min(device.io_ns * slower * _WANTED_IOS, _LONGEST_NS)
    if device.io_ns >= 1 * _MS and any(job.in_order for job in jobs):
        # I/Os that a disk serves from its cache are a hundred times faster.
        runtime_ns //= 20
    return max(runtime_ns, _SHORTEST_LIMITED_NS if limited else _SHORTEST_NS)
