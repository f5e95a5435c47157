"""Draws settings of the queue and of its scheduler at random."""

from __future__ import annotations

import random
from collections.abc import Mapping

from blklab.labs.fidelity.random_devices import DrawnDevice
from blklab.labs.fidelity.random_jobs import DrawnJob

Settings = Mapping[str, str]

_TUNABLES: Mapping[str, tuple[Settings, ...]] = {
    "none": (),
    "mq-deadline": (
        {"fifo_batch": "1"},
        {"fifo_batch": "4", "writes_starved": "1"},
        {"writes_starved": "6"},
        {"read_expire": "50"},
        {"write_expire": "200"},
        {"prio_aging_expire": "200"},
        {"front_merges": "0"},
        {"async_depth": "2"},
        {"async_depth": "16"},
    ),
    "kyber": (
        {"read_lat_nsec": "500000"},
        {"write_lat_nsec": "1000000"},
        {"read_lat_nsec": "100000", "write_lat_nsec": "100000"},
    ),
    "bfq": (
        {"slice_idle": "0"},
        {"slice_idle": "2"},
        {"slice_idle_us": "500"},
        {"strict_guarantees": "1"},
        {"max_budget": "1024"},
        {"timeout_sync": "40"},
        {"fifo_expire_sync": "20"},
        {"fifo_expire_async": "20"},
        {"back_seek_max": "0"},
        {"back_seek_penalty": "1"},
    ),
}
_FEWEST_TAGS = 4
"""The kernel's minimum (`BLKDEV_MIN_RQ`)."""
_CHANCE = {"none": 0.0, "mq-deadline": 0.45, "kyber": 0.4, "bfq": 0.35}


def draw_tunables(draw: random.Random, scheduler: str) -> Settings:
    """Draws a scheduler's tunables, mostly its defaults."""
    # Weight raising hides the effect of priorities and groups.
    tunables = {"low_latency": draw.choice(("0", "0", "0", "1"))} if scheduler == "bfq" else {}
    if draw.random() < _CHANCE[scheduler]:
        tunables |= draw.choice(_TUNABLES[scheduler])
    return tunables


def draw_queue(draw: random.Random, scheduler: str, device: DrawnDevice, jobs: list[DrawnJob]) -> Settings:
    """Draws attributes of the queue."""
    queue = {}
    if scheduler != "none":
        # With fewer tags than tasks, the order in which tasks happen to run decides.
        queue["nr_requests"] = str(draw.choice((8, 64, 256, 256, 256)))
    elif device.depth >= _FEWEST_TAGS and draw.random() < 0.15:
        queue["nr_requests"] = str(min(device.depth, draw.choice((_FEWEST_TAGS, 8, 16))))
    if draw.random() < 0.08:
        queue["nomerges"] = draw.choice(("1", "2"))
    if draw.random() < 0.08:
        queue["max_sectors_kb"] = draw.choice(("16", "64", "128"))
    if scheduler != "bfq" and draw.random() < 0.05:
        queue["wbt_lat_usec"] = draw.choice(("0", "500", "20000"))
    if any(job.buffered for job in jobs) and draw.random() < 0.3:
        queue["read_ahead_kb"] = draw.choice(("0", "16", "512"))
    return queue
