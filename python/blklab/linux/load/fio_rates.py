"""Throughput over time from fio's bandwidth logs: fio's helper thread samples it, not every I/O.

With ``log_avg_msec`` set, the helper thread writes one line per window and direction to each job's log
(``per_unit_log`` in fio's iolog.h). docs/appendix/measurements.md states the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from blklab.linux.machine.kernel_files import text_or_empty
from blklab.quantities.units import NS_PER_MS, NS_PER_SECOND
from blklab.records.samples import JobSample, RateWindows
from blklab.spec.workloads import Workload

LOG_NAME = "rates"
_WINDOWS = 40
_SHORTEST_MS = 20
"""fio's helper thread wakes up no more often than every 10 ms."""
_WINDOW_MS_WITHOUT_RUNTIME = 250
_MOST_WINDOWS = 100
_BYTES_PER_KIB = 1024
_MOST_EXCESS = 1.05
"""Logs that say more than this part of what a job moved are dropped."""
_MS_PER_S = 1000

RATE_OPTIONS = ("write_bw_log", "bwavgtime", "per_job_logs")
"""fio options that blklab sets itself."""


def rate_window_ms(workload: Workload, runtime_ns: int | None) -> int:
    """Length of a window: a fortieth of the longest job's runtime.

    Args:
        workload: The workload to run.
        runtime_ns: Replaces the runtime of time-based jobs.
    """
    runtimes_ns = [
        runtime_ns if job.time_based and runtime_ns is not None else job.runtime_ns for job in workload.jobs
    ]
    known_ns = [runtime for runtime in runtimes_ns if runtime is not None]
    if len(known_ns) < len(runtimes_ns):
        return _WINDOW_MS_WITHOUT_RUNTIME
    return max(_SHORTEST_MS, max(known_ns) // NS_PER_MS // _WINDOWS)


def rate_options(window_ms: int) -> list[str]:
    """The lines for the job file's global section."""
    return [f"write_bw_log={LOG_NAME}", f"log_avg_msec={window_ms}", f"bwavgtime={window_ms}"]


def remove_rate_logs(folder: Path) -> None:
    """Removes the logs of an earlier run."""
    for path in folder.glob(f"{LOG_NAME}_bw.*.log"):
        with suppress(OSError):
            path.unlink()


def with_rates(
    jobs: Sequence[JobSample], folder: Path, workload: Workload, window_ms: int
) -> list[JobSample]:
    """Adds throughput over time to the jobs whose logs are usable.

    On a busy machine a line of fio's log can be the rate of less time than has passed since the line before.
    Such a log adds up to more bytes than fio itself has counted, and is left out.
    """
    found = []
    first = 1
    for sample, job in zip(jobs, workload.jobs, strict=True):
        logs = [
            text_or_empty(folder / f"{LOG_NAME}_bw.{number}.log")
            for number in range(first, first + job.numjobs)
        ]
        first += job.numjobs
        rates = rates_from_logs(logs, window_ms)
        if rates is not None and _bytes_in(rates) > _most_bytes(sample):
            rates = None
        found.append(sample.model_copy(update={"rates": rates}))
    return found


def _bytes_in(rates: RateWindows) -> float:
    return sum(rates.bytes_per_second) * rates.window_ns / NS_PER_SECOND


def _most_bytes(sample: JobSample) -> float:
    moved = sum(entry.bytes for entry in sample.data_directions())
    # fio rounds each line to KiB/s, for each clone and direction.
    rounding = (
        sample.clones * len(sample.data_directions()) * _BYTES_PER_KIB * sample.runtime_ns / NS_PER_SECOND
    )
    return _MOST_EXCESS * moved + rounding


def rates_from_logs(logs: Sequence[str], window_ms: int) -> RateWindows | None:
    """Sums the logs of a job's clones.

    The helper thread can be late; its next line is then the mean since its last one. So each line covers all
    the time since the previous line of its direction, and windows are filled by integration.

    Args:
        logs: Lines ``time (ms), KiB/s, direction, …``: the end of an interval and the mean rate in it.
        window_ms: Length of the windows.

    Returns:
        None if there are no lines, a line cannot be parsed, or there are fewer lines than half the windows.
    """
    cumulative: list[tuple[list[float], list[float]]] = []
    last_ms = []
    for log in logs:
        by_direction: dict[str, tuple[list[float], list[float]]] = {}
        try:
            for line in log.splitlines():
                time_ms, kibibytes, direction = (word.strip() for word in line.split(",")[:3])
                times_ms, totals = by_direction.setdefault(direction, ([0.0], [0.0]))
                elapsed_s = (float(time_ms) - times_ms[-1]) / _MS_PER_S
                times_ms.append(float(time_ms))
                totals.append(totals[-1] + max(0.0, elapsed_s) * float(kibibytes) * _BYTES_PER_KIB)
        except ValueError:
            return None
        if not by_direction:
            return None
        cumulative += by_direction.values()
        last_ms.append(max(times_ms[-1] for times_ms, _ in by_direction.values()))
    # After the end of the shortest log, the sum no longer covers all clones.
    length = round(min(last_ms, default=0.0) / window_ms)
    if not length or min(len(times_ms) - 1 for times_ms, _ in cumulative) < length / 2:
        return None
    factor = -(-length // _MOST_WINDOWS)
    length = length // factor
    ends_ms = np.arange(length + 1) * window_ms * factor
    summed = sum(np.interp(ends_ms, times_ms, totals) for times_ms, totals in cumulative)
    rates = np.diff(summed) / (window_ms * factor / _MS_PER_S)
    return RateWindows(
        window_ns=window_ms * factor * NS_PER_MS, bytes_per_second=[round(float(rate)) for rate in rates]
    )
