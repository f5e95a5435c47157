"""Attributes of a disk's request queue that an experiment may set, as ``/sys/block/*/queue`` names them."""

from __future__ import annotations

ASYNC_DEPTH = "async_depth"
"""A tunable of mq-deadline up to Linux 6.19, and the queue's attribute from 7.0 on."""

QUEUE_ATTRIBUTES = (
    "add_random",
    "io_poll",
    "iostats",
    "max_sectors_kb",
    "nomerges",
    "nr_requests",
    ASYNC_DEPTH,
    "rotational",
    "rq_affinity",
    "stable_writes",
    "wbt_lat_usec",
    "write_cache",
    "read_ahead_kb",
)
"""In the order in which they are written.

`async_depth` follows `nr_requests`, in proportion to which the kernel changes it (Linux 7.0), and
`read_ahead_kb` comes last: when the queue's limits change (max_sectors_kb, rotational, stable_writes), the
kernel recomputes it."""
