"""hdparm as the load generator, for workloads that declare themselves one of its timing tests.

``hdparm -t`` reads a device from its start for three seconds; ``-T`` reads the same 2 MiB from the page cache
for two seconds. Source: hdparm 9.65 (``time_device`` and ``time_cache`` in hdparm.c).
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from blklab.linux.load.fio_output import FioReport
from blklab.linux.load.load_process import run_load_process
from blklab.linux.processes.ending import ending
from blklab.linux.processes.programs import find_program
from blklab.quantities.units import NS_PER_SECOND
from blklab.records.samples import DirectionSample, JobSample, LatencyHistogram
from blklab.spec.workloads import Workload

BLOCK_BYTES = 2 << 20
"""Size of a read (``TIMING_BUF_MB``)."""
_COUNTED = {"hdparm -t": 1, "hdparm -T": 2}
"""How many times hdparm counts each byte: ``BUFCACHE_FACTOR`` for cached reads."""
_RESULT = re.compile(
    r"Timing [\w -]*reads:\s*(?P<mb>\d+) MB in\s+[\d.]+ seconds =\s*(?P<rate>[\d.]+) (?P<unit>[kM]B)/sec"
)
_VERSION = re.compile(r"hdparm v(\S+)")
_LIMIT_S = 120
"""Time limit of a test: it measures for three seconds, after waiting for the disk."""
_VERSION_TIMEOUT_S = 120


@dataclass(frozen=True)
class Hdparm:
    """An installed hdparm."""

    path: str
    version: str

    def command(self, tool: str, device: Path) -> list[str]:
        """The command line of a timing test (``hdparm -t``)."""
        return [self.path, *tool.split()[1:], str(device)]


def find_hdparm() -> Hdparm | None:
    """Finds the program; None if it is missing or does not answer."""
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
    """Runs a workload's timing test on a device.

    Returns:
        A report like fio's: one sample for the workload's only job. It has no latencies, because hdparm
        measures none.

    Raises:
        RunFailedError: if hdparm hangs.
    """
    ended = run_load_process(
        hdparm.command(workload.tool, device),
        folder,
        limit_s=_LIMIT_S,
        too_long=f"{workload.tool} was still running after {_LIMIT_S} s",
    )
    return read_hdparm_report(ended.output, returncode=ended.returncode, workload=workload)


def read_hdparm_report(output: str, *, returncode: int, workload: Workload) -> FioReport:
    """Reads hdparm's output.

    Args:
        output: Its standard output and standard error.
        returncode: Its exit code; negative for a signal.
        workload: The workload, which names the test and has the job that the sample is for.
    """
    found = _RESULT.search(output)
    if returncode or found is None:
        reason = " ".join(output.split())
        return FioReport([], f"{ending(returncode, workload.tool)}: {reason}", [])
    counted = _COUNTED[workload.tool]
    rate = float(found["rate"]) * (1 << 20 if found["unit"] == "MB" else 1 << 10) / counted
    moved = int(found["mb"]) * (1 << 20) // counted
    # hdparm prints the seconds with two digits; the rate has more.
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
