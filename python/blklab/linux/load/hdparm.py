"""hdparm as the load, for workloads that say that they are one of its timing tests.

``hdparm -t`` reads a device from its start for three seconds, ``-T`` the same 2 MiB from the page cache for
two. hdparm 9.65 (``time_device`` and ``time_cache`` in hdparm.c).
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from blklab.linux.load.fio_output import FioReport
from blklab.linux.load.load_process import run_load_process
from blklab.linux.processes.programs import find_program
from blklab.records.samples import NS_PER_SECOND, DirectionSample, JobSample, LatencyHistogram
from blklab.spec.workloads import Workload

BLOCK_BYTES = 2 << 20
"""Of a read (``TIMING_BUF_MB``)."""
_COUNTED = {"hdparm -t": 1, "hdparm -T": 2}
"""How often each byte counts in what is printed: ``BUFCACHE_FACTOR`` for cached reads."""
_FIGURES = re.compile(
    r"Timing [\w -]*reads:\s*(?P<mb>\d+) MB in\s+[\d.]+ seconds =\s*(?P<rate>[\d.]+) (?P<unit>[kM]B)/sec"
)
_VERSION = re.compile(r"hdparm v(\S+)")
_LIMIT_S = 120
"""How long a test may take; it measures for three seconds, and waits for the disk before."""
_VERSION_TIMEOUT_S = 20


@dataclass(frozen=True)
class Hdparm:
    """An installed hdparm."""

    path: str
    version: str

    def command(self, tool: str, device: Path) -> list[str]:
        """A timing test (``hdparm -t``) of a device."""
        return [self.path, *tool.split()[1:], str(device)]


def find_hdparm() -> Hdparm | None:
    """Finds the program; nothing where it is missing or does not answer."""
    path = find_program("hdparm")
    if path is None:
        return None
    try:
        answer = subprocess.run(
            [path, "-V"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = _VERSION.search(answer.stdout)
    return None if version is None else Hdparm(path, version[1])


def run_hdparm(hdparm: Hdparm, workload: Workload, device: Path, folder: Path) -> FioReport:
    """Runs the test that a workload is, on a device.

    Returns:
        As of fio: one sample for the workload's only job, without latencies, which hdparm does not tell.

    Raises:
        RunFailedError: if it hangs.
    """
    ended = run_load_process(
        hdparm.command(workload.tool, device),
        folder,
        limit_s=_LIMIT_S,
        too_long=f"{workload.tool} was still running after {_LIMIT_S} s",
    )
    return read_report(ended.said, returncode=ended.returncode, workload=workload)


def read_report(said: str, *, returncode: int, workload: Workload) -> FioReport:
    """Reads what hdparm printed.

    Args:
        said: Both its outputs.
        returncode: How it ended.
        workload: Whose only job it stands for, and which test it is.
    """
    found = _FIGURES.search(said)
    if returncode or found is None:
        reason = " ".join(said.split())
        return FioReport([], f"{workload.tool} failed (exit code {returncode}): {reason}", [])
    counted = _COUNTED[workload.tool]
    rate = float(found["rate"]) * (1 << 20 if found["unit"] == "MB" else 1 << 10) / counted
    moved = int(found["mb"]) * (1 << 20) // counted
    # The seconds are printed with two digits; the rate has more.
    runtime_ns = round(moved / rate * NS_PER_SECOND)
    reads = DirectionSample(
        direction="read",
        ios=moved // BLOCK_BYTES,
        bytes=moved,
        runtime_ns=runtime_ns,
        latency=LatencyHistogram(),
    )
    job = JobSample(name=workload.jobs[0].name, clones=1, runtime_ns=runtime_ns, directions=[reads])
    return FioReport([job], None, [])
