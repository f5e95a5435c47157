"""Measures if the simulator's cost grows with the work alone: instructions an I/O, by the size of a load.

    cargo build --release -p blksim --example simulate
    python benches/simulated_growth.py [--only SIZE] [--values N,N] [--ios N] [--scheduler NAME]

A size of a load (jobs, depth, control groups, disks of an array, files, length) is varied up to 10,000 times,
under every scheduler and, for groups, every policy, as ``blklab run`` simulates it: with the cost table
`ordinary` and drawn starts. Instructions are counted by valgrind's callgrind, so that other programs do not
matter: the difference of two runs, over the difference of their requests. The shorter run has ten I/Os for
each that is outstanding at once, and the longer one 50 more, so the start is not in the difference.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from blklab.report.pages.markdown import markdown_table

ROOT = Path(__file__).resolve().parents[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SIMULATE = TARGET / "release" / "examples" / "simulate"
AS_RUN = (f"machine={ROOT / 'machines' / 'ordinary.toml'}", "arrangement=1")
SCHEDULERS = (
    "none", "mq-deadline", "kyber", "kyber-4.12", "bfq", "noop", "deadline", "anticipatory", "cfq",
    "cfq-2.6.32",
)  # fmt: skip
FEW_IOS = 20_000
STARTING, COUNTED = 10, 50
"""I/Os for each that is outstanding at once: in the shorter run, and more in the longer one."""
READS = "rw=randread\nbs=4k\ndirect=1\nnorandommap=1\n"


@dataclass(frozen=True)
class Load:
    """A load of about so many I/Os, and options of the simulation."""

    jobs: str
    options: tuple[str, ...] = ()


def of_jobs(number: int, ios: int) -> Load:
    """So many jobs that read one block after the other."""
    return Load(f"[load]\n{READS}size=64m\nnumjobs={number}\nnumber_ios={max(ios // number, 1)}\n")


def of_depth(depth: int, ios: int) -> Load:
    """One job with so many I/Os at a time."""
    return Load(f"[load]\n{READS}size=64g\nioengine=libaio\niodepth={depth}\nnumber_ios={ios}\n")


def of_groups(groups: int, ios: int, options: tuple[str, ...] = ()) -> Load:
    """4,096 jobs in so many control groups."""
    each = max(ios // 4096, 1)
    sections = "".join(f"[j{number}]\ncgroup=g{number % groups}\n" for number in range(4096))
    return Load(f"[global]\n{READS}size=64m\nnumber_ios={each}\n{sections}", options)


def of_disks(disks: int, ios: int) -> Load:
    """256 jobs on an array of so many disks."""
    load = of_jobs(256, ios)
    array = ("device.raid=0", f"device.members={disks}", "device.chunk=64k") if disks > 1 else ()
    return Load(load.jobs, array)


def of_files(files: int, ios: int) -> Load:
    """Buffered readers, each of a file of its own."""
    each = max(ios // files, 1)
    return Load(f"[load]\nrw=randread\nbs=4k\nsize=64m\nnumjobs={files}\nnumber_ios={each}\n")


@dataclass(frozen=True)
class Size:
    """Something of a load that can be larger."""

    values: tuple[int, ...]
    load: Callable[[int, int], Load]
    """The load of a value, of about so many I/Os."""
    outstanding: Callable[[int], int] | None
    """How many I/Os a load has at once; None if a value is the number of I/Os itself."""

    def lengths(self, value: int, least: int) -> tuple[Load, Load]:
        """The shorter and the longer load of a value; the shorter one has `least` I/Os or more."""
        if self.outstanding is None:
            return self.load(value, max(value // 3, 16)), self.load(value, value)
        outstanding = self.outstanding(value)
        few = max(least, STARTING * outstanding)
        return self.load(value, few), self.load(value, few + max(2 * least, COUNTED * outstanding))


def _itself(value: int) -> int:
    return value


SIZES = {
    "jobs": Size((1, 16, 256, 4096, 10_000), of_jobs, _itself),
    "depth": Size((1, 16, 256, 4096, 10_000), of_depth, _itself),
    "groups": Size((1, 16, 256, 4000), of_groups, lambda _groups: 4096),
    "disks": Size((1, 4, 32), of_disks, lambda _disks: 256),
    "files": Size((1, 16, 256, 4096, 10_000), of_files, _itself),
    "length": Size((1_000, 10_000, 100_000, 1_000_000), lambda _length, ios: of_jobs(16, ios), None),
}
POLICIES = {
    "io.cost": ("cgroup=/:io.cost.qos=enable=1",),
    "io.latency": ("cgroup=g0:io.latency=target=100",),
    "io.max": ("cgroup=g0:io.max=riops=1000",),
    "ioband, weight": ("cgroup=/:ioband.policy=weight",),
    "ioband, range-bw": ("cgroup=/:ioband.policy=range-bw",),
}


def main() -> int:
    """Measures all sizes or some, and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", choices=[*SIZES, "policies"], help="only this size")
    parser.add_argument("--values", help="with --only: these values of the size, such as 256,4096")
    parser.add_argument(
        "--ios", type=int, default=FEW_IOS, help=f"I/Os of the shorter run at least (default: {FEW_IOS})"
    )
    parser.add_argument("--scheduler", choices=SCHEDULERS, help="only this scheduler")
    given = parser.parse_args()
    if given.values and given.only not in SIZES:
        parser.error("--values needs --only with a size")
    if not SIMULATE.exists():
        raise SystemExit(f"{SIMULATE} is missing: cargo build --release -p blksim --example simulate")
    schedulers = (given.scheduler,) if given.scheduler else SCHEDULERS
    with tempfile.TemporaryDirectory() as folder:
        counter = Counter(Path(folder), given.ios)
        for name, size in SIZES.items():
            if given.only in (None, name):
                values = tuple(map(int, given.values.split(","))) if given.values else size.values
                chosen = replace(size, values=values)
                show(name, values, [counter.row(scheduler, scheduler, chosen) for scheduler in schedulers])
        if given.only in (None, "policies"):
            groups = SIZES["groups"]
            policies = [
                counter.row(name, "none", replace(groups, load=partial(of_groups, options=options)))
                for name, options in POLICIES.items()
            ]
            show("groups", groups.values, policies)
    return 0


def show(size: str, values: tuple[int, ...], rows: list[list[str]]) -> None:
    """Prints the table of one size."""
    table = markdown_table([size, *(f"{value:,}" for value in values), "last / 256 or first"], rows)
    sys.stdout.write(f"\n{table}\n")
    sys.stdout.flush()


class Counter:
    """Counts the instructions of runs."""

    def __init__(self, folder: Path, few_ios: int) -> None:
        self._folder = folder
        self._few_ios = few_ios

    def row(self, name: str, scheduler: str, size: Size) -> list[str]:
        """Instructions an I/O for each value, and how much more it is at the largest."""
        values = size.values
        counts = [self._per_io(scheduler, size.lengths(value, self._few_ios)) for value in values]
        base = counts[values.index(256)] if 256 in values else counts[0]
        ratio = f"{counts[-1] / base:.2f}"
        sys.stderr.write(f"{name}: {[round(count) for count in counts]} {ratio}\n")
        return [name, *(f"{count:,.0f}" for count in counts), ratio]

    def _per_io(self, scheduler: str, lengths: tuple[Load, Load]) -> float:
        (fewer, first), (more, second) = (self._counted(scheduler, load) for load in lengths)
        return (second - first) / (more - fewer)

    def _counted(self, scheduler: str, load: Load) -> tuple[int, int]:
        """Requests and instructions of one run."""
        jobs = self._folder / "load.fio"
        jobs.write_text(load.jobs)
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={self._folder / 'counts'}"]
        command = [
            *valgrind, str(SIMULATE), str(ROOT / "devices" / "nvme-tlc.toml"), scheduler, str(jobs),
            *AS_RUN, *load.options,
        ]  # fmt: skip
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        instructions = re.search(r"Collected : (\d+)", run.stderr)
        requests = re.match(r"(\d+) requests", run.stdout)
        if instructions is None or requests is None:
            raise SystemExit(f"no count: {run.stdout}{run.stderr}")
        return int(requests[1]), int(instructions[1])


if __name__ == "__main__":
    sys.exit(main())
