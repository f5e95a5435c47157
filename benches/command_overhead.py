"""Compares a command's wall time under blklab with that of the same command started directly, in pairs.

Run as root: ``python benches/command_overhead.py --pairs 60``.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scipy.stats import binom

from blklab.linux.load.command import SHELL, run_command

_LIMIT_NS = 60_000_000_000


def main() -> None:
    """Prints the median difference with its distribution-free 95 % interval."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--command", default="sleep 0.1")
    options = parser.parse_args()
    differences_ms = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.pairs):
            first, second = (_direct_ns, _blklab_ns) if number % 2 else (_blklab_ns, _direct_ns)
            times = {one: one(options.command, Path(folder)) for one in (first, second)}
            differences_ms.append((times[_blklab_ns] - times[_direct_ns]) / 1e6)
    differences_ms.sort()
    outer = int(binom.ppf(0.025, options.pairs, 0.5))
    sys.stdout.write(
        f"{options.command}: blklab minus direct {statistics.median(differences_ms):+.2f} ms, "
        f"95 % interval {differences_ms[outer]:+.2f} to {differences_ms[-1 - outer]:+.2f} ms\n"
    )


def _blklab_ns(line: str, folder: Path) -> int:
    outcome = run_command(line, folder, time_limit_ns=_LIMIT_NS)
    if outcome.job is None:
        raise SystemExit(outcome.error)
    return outcome.job.runtime_ns


def _direct_ns(line: str, folder: Path) -> int:
    begun_ns = time.monotonic_ns()
    subprocess.run(
        [SHELL, "-c", line],
        cwd=folder,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.monotonic_ns() - begun_ns


if __name__ == "__main__":
    main()
