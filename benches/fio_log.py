"""Measures the cost of fio's logs: processor time with a log over without.

The log is that of the speed over time, or with ``--histograms`` that of switchbacks.

On fio's null engine an I/O does no work, so the share of the log is as large as it can be.
Both run the same number of I/Os in many pairs, in alternating order. The result is the median of the ratios
with its distribution-free 95 % interval::

    python benches/fio_log.py [--pairs N] [--ios N] [--histograms MILLISECONDS]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

from host_overhead import summary

from blklab.linux.load.fio_histograms import histogram_options
from blklab.linux.load.fio_rates import rate_options

WINDOW_MS = 25
"""Window of the log; a run of one second has forty."""


def processor_seconds(folder: Path, name: str, lines: list[str], ios: int) -> float:
    """User and system time of a run of fio with these lines in its job file."""
    job = [
        "[global]",
        "ioengine=null",
        "bs=4k",
        "rw=randread",
        *lines,
        "[job]",
        "size=1t",
        f"number_ios={ios}",
    ]
    (folder / f"{name}.fio").write_text("\n".join(job) + "\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["fio", "--output=/dev/null", f"{name}.fio"], cwd=folder, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measures and prints the ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--ios", type=int, default=2_000_000)
    parser.add_argument("--histograms", type=int, metavar="MILLISECONDS", help="window of histogram logs")
    arguments = parser.parse_args()
    window_ms = arguments.histograms
    logged = rate_options(WINDOW_MS) if window_ms is None else histogram_options(window_ms)
    jobs: dict[str, list[str]] = {"plain": [], "logged": logged}
    ratios, plain = [], []
    with tempfile.TemporaryDirectory(prefix="blklab-log-") as folder:
        for pair in range(arguments.pairs):
            order = sorted(jobs, reverse=bool(pair % 2))
            seconds = {
                name: processor_seconds(Path(folder), name, jobs[name], arguments.ios) for name in order
            }
            ratios.append(seconds["logged"] / seconds["plain"])
            plain.append(seconds["plain"])
    ratio, low, high = summary(ratios)
    each_ns = statistics.median(plain) / arguments.ios * 1e9
    print(  # noqa: T201
        f"with the log over without: {ratio:.4f} (95 %: {low:.4f} to {high:.4f}, {arguments.pairs} pairs); "
        f"an I/O without it takes {each_ns:.0f} ns of processor time"
    )


if __name__ == "__main__":
    main()
