"""Measures what processor time costs the simulator: requests a second with a cost table, and without.

    cargo build --release -p blksim --example simulate
    python benches/simulated_processors.py [--pairs 20] [--device nvme-tlc]

4 KiB random reads at depth 32 under each scheduler, with the table `ordinary` on one processor and without a
table. Prints two ratios for each, both from this run: of instructions per request (valgrind's callgrind, the
difference of runs of 60,000 and of 20,000 requests), and of processor time (the median of alternating pairs
of runs, and their quartiles). Exits with 1 if the table more than halves the speed by instructions.
"""

from __future__ import annotations

import argparse
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIMULATE = ROOT / "target" / "release" / "examples" / "simulate"
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
TABLE = (f"machine={ROOT / 'machines' / 'ordinary.toml'}", "cpus=1")
TIMED_REQUESTS = 300_000
LEAST_RATIO = 0.5


def main() -> int:
    """Measures every scheduler; returns 1 if one is too slow."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pairs", type=int, default=20)
    arguments.add_argument("--device", default="nvme-tlc")
    given = arguments.parse_args()
    lowest = 1.0
    with tempfile.TemporaryDirectory() as folder:
        for scheduler in SCHEDULERS:
            run = Run(given.device, scheduler, Path(folder))
            without, with_costs = run.instructions(()), run.instructions(TABLE)
            ratios = sorted(run.seconds(()) / run.seconds(TABLE) for _ in range(given.pairs))
            first, middle, last = statistics.quantiles(ratios, n=4)
            sys.stdout.write(
                f"{scheduler}: {without:.0f} and {with_costs:.0f} instructions per request, "
                f"{without / with_costs:.2f}; speed {middle:.2f} [{first:.2f}, {last:.2f}]\n"
            )
            sys.stdout.flush()
            lowest = min(lowest, without / with_costs)
    return 0 if lowest >= LEAST_RATIO else 1


class Run:
    """A load on a device under a scheduler."""

    def __init__(self, device: str, scheduler: str, folder: Path) -> None:
        self._command = [str(SIMULATE), str(ROOT / "devices" / f"{device}.toml"), scheduler]
        self._folder = folder

    def instructions(self, options: tuple[str, ...]) -> float:
        """For each request."""
        many, few = (self._counted(requests, options) for requests in (60_000, 20_000))
        return (many - few) / 40_000

    def seconds(self, options: tuple[str, ...]) -> float:
        """Processor time of one run."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run(
            [*self._command, self._jobs(TIMED_REQUESTS), *options], check=True, capture_output=True
        )
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    def _counted(self, requests: int, options: tuple[str, ...]) -> int:
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={self._folder / 'counts'}"]
        command = [*valgrind, *self._command, self._jobs(requests), *options]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        found = re.search(r"Collected : (\d+)", output)
        if found is None:
            raise SystemExit(f"valgrind printed no count: {output}")
        return int(found[1])

    def _jobs(self, requests: int) -> str:
        path = self._folder / f"{requests}.fio"
        load = "rw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=32\nsize=16g\nnorandommap=1\n"
        path.write_text(f"[load]\n{load}number_ios={requests}\n")
        return str(path)


if __name__ == "__main__":
    sys.exit(main())
