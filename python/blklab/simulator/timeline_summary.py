"""Summaries of a timeline for samples: throughput per time window, and counts of background requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from blklab.quantities.units import NS_PER_SECOND
from blklab.records.samples import JobSample, RateWindows
from blklab.simulator.timeline import FLUSH, NO_JOB, Table

_SYNC = 2


def with_rates(jobs: Sequence[JobSample], ios: Table, window_ns: int) -> list[JobSample]:
    """Adds throughput over time to the jobs.

    Args:
        jobs: The jobs, in the order of the numbers in the table's column ``job``.
        ios: I/Os of the run; those during ramp time are ignored.
        window_ns: Length of the windows.
    """
    counted = ios[(ios["measured"] == 1) & (ios["direction"] != _SYNC)]
    return [
        job.model_copy(update={"rates": _rates(counted[counted["job"] == index], job.runtime_ns, window_ns)})
        for index, job in enumerate(jobs)
    ]


def background_requests(requests: Table) -> dict[str, Any]:
    """The number of requests without a job (the flusher's) and their priorities, for `engine`."""
    data = requests[requests["operation"] != FLUSH]
    background = data[data["job"] == NO_JOB]
    return {
        "requests_recorded": len(data),
        "background_requests": len(background),
        "background_priorities": [
            f"{_CLASS_NAMES[int(value) // 8]}{int(value) % 8}" for value in np.unique(background["priority"])
        ],
    }


_CLASS_NAMES = ("rt", "be", "idle")
"""Names of the classes in the column ``priority``."""


def _rates(ios: Table, runtime_ns: int, window_ns: int) -> RateWindows | None:
    """Counts bytes in the window in which they completed, as tools that read counters do."""
    nr_windows = runtime_ns // window_ns
    if not len(ios) or not nr_windows:
        return None
    since_start = ios["end_ns"].astype(np.int64) - int(ios["start_ns"].min())
    # An I/O that ends exactly with a window belongs to it.
    windows = np.maximum(since_start - 1, 0) // window_ns
    sums = np.bincount(windows, weights=ios["bytes"].astype(np.float64), minlength=nr_windows)[:nr_windows]
    return RateWindows(
        window_ns=window_ns,
        bytes_per_second=[float(value) * NS_PER_SECOND / window_ns for value in sums],
    )
