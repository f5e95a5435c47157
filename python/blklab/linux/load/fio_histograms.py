"""I/Os and latencies over time from fio's histogram logs: fio writes one line per window, not per I/O.

With ``write_hist_log`` each job counts its completion latencies in the bins that it keeps anyway, and writes
the counts since the last line once ``log_hist_msec`` have passed and an I/O completes (``add_clat_sample`` in
fio's stat.c). docs/appendix/measurements.md states the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blklab.quantities.units import NS_PER_MS
from blklab.records.samples import Direction, LatencyHistogram

LOG_NAME = "histograms"
HISTOGRAM_OPTIONS = ("write_hist_log", "log_hist_msec", "log_hist_coarseness", "log_unix_epoch")
"""fio options that blklab sets itself."""

_DIRECTIONS: tuple[Direction, ...] = ("read", "write", "trim")
_GROUP_BITS = 6
"""FIO_IO_U_PLAT_BITS: bins per power of two, as a power of two."""
_NR_BINS = 29 << _GROUP_BITS
"""FIO_IO_U_PLAT_NR."""
_HEAD = 3
"""Columns before the bins: time (ms), direction, block size."""


def _bin_values_ns() -> NDArray[np.int64]:
    """The value that stands for each bin: ``plat_idx_to_val``, stat.c of fio 3.33."""
    index = np.arange(_NR_BINS)
    error_bits = np.maximum((index >> _GROUP_BITS) - 1, 0)
    base = np.int64(1) << (error_bits + _GROUP_BITS)
    middle = base + ((index % (1 << _GROUP_BITS) + 0.5) * (1 << error_bits)).astype(np.int64)
    return np.where(index < 2 << _GROUP_BITS, index, middle)


BIN_VALUES_NS = _bin_values_ns()


@dataclass(frozen=True)
class HistogramLog:
    """Windows of one clone and direction, in order of time; they follow one another without a gap."""

    direction: Direction
    ends_ns: NDArray[np.int64]
    """Ends of the windows in Unix time, shape (n,)."""
    counts: NDArray[np.int64]
    """I/Os by window and bin, shape (n, 1856)."""

    def ios_before(self, times_ns: NDArray[np.int64]) -> NDArray[np.float64]:
        """I/Os completed up to each moment, from the end of the first window on; linear within a window."""
        counted: NDArray[np.float64] = np.interp(times_ns, self.ends_ns, self._ios_since_first)
        return counted

    @cached_property
    def _ios_since_first(self) -> NDArray[np.int64]:
        total: NDArray[np.int64] = np.cumsum(self.counts.sum(axis=1))
        total -= total[0]
        return total

    def latency_between(self, from_ns: int, to_ns: int) -> LatencyHistogram:
        """Completion latencies in the windows whose middle lies between two moments.

        The sum of all latencies is that of the bins' values, which are less than 1 % off.
        """
        middles = (self.ends_ns[:-1] + self.ends_ns[1:]) // 2
        inside = np.flatnonzero((middles >= from_ns) & (middles < to_ns)) + 1
        merged = self.counts[inside].sum(axis=0)
        (present,) = np.nonzero(merged)
        if not len(present):
            return LatencyHistogram()
        values = BIN_VALUES_NS[present]
        return LatencyHistogram(
            count=int(merged.sum()),
            sum_ns=float((values * merged[present]).sum()),
            min_ns=int(values[0]),
            max_ns=int(values[-1]),
            bins=dict(zip(values.tolist(), merged[present].tolist(), strict=True)),
        )


def histogram_options(window_ms: int) -> list[str]:
    """The lines for the job file's global section."""
    return [f"write_hist_log={LOG_NAME}", f"log_hist_msec={window_ms}", "log_unix_epoch=1", "per_job_logs=1"]


def histogram_log_path(folder: Path, number: int) -> Path:
    """The log of a clone; clones are counted from 1 over all jobs."""
    return folder / f"{LOG_NAME}_clat_hist.{number}.log"


def remove_histogram_logs(folder: Path) -> None:
    """Removes the logs of an earlier load."""
    for path in folder.glob(f"{LOG_NAME}_clat_hist.*.log"):
        path.unlink()


def read_histogram_log(text: bytes) -> list[HistogramLog]:
    """Reads the log of a clone: one result for each direction with two windows or more.

    Raises:
        ValueError: if it is not such a log.
    """
    width = _HEAD + _NR_BINS
    lines = [line for line in text.splitlines() if line.count(b",") >= width - 1]
    if not lines:
        return []
    numbers = np.fromstring(b" ".join(lines).replace(b",", b" ").decode("ascii"), dtype=np.int64, sep=" ")
    table = numbers.reshape(-1, width)
    found = []
    for index, direction in enumerate(_DIRECTIONS):
        rows = table[table[:, 1] == index]
        if len(rows) > 1:
            found.append(HistogramLog(direction, rows[:, 0] * NS_PER_MS, rows[:, _HEAD:]))
    return found


def total_ios(logs: Sequence[HistogramLog], edges_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    """I/Os of all logs together between consecutive moments: shape (len(edges_ns) - 1,)."""
    if not logs:
        return np.zeros(len(edges_ns) - 1)
    return np.diff(sum(log.ios_before(edges_ns) for log in logs))
