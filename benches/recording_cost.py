"""Measures the processor time that the recorder's BPF programs take for an I/O, and what they miss.

Run as root: ``python benches/recording_cost.py``. fio reads at random from a loop device over memory while
blklab records it; the kernel counts the time and the runs of each program (``kernel.bpf_stats_enabled``).
``--objects`` compares builds of the programs, such as one of an earlier commit, in turns.

``--directory DIRECTORY`` measures instead the I/Os a second of fio on a disk while it is recorded, over
those without, in pairs in turns: the median with its distribution-free 95 % interval.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from host_overhead import summary
from recorded_loads import recorded

from blklab.shipped import bpf_programs

_STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
_SIZE = "256m"
_COUNTS = ("run_time_ns", "run_cnt", "recursion_misses")


def main() -> None:
    """Prints nanoseconds for an I/O, the runs that the kernel skipped, and lost I/Os, by round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ios", type=int, default=30_000)
    parser.add_argument("--objects", type=Path, nargs="*", help="default: the shipped one")
    parser.add_argument("--directory", type=Path, help="on a disk: pairs with and without a recorder")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--depth", type=int, default=32)
    options = parser.parse_args()
    if options.directory is not None:
        _pairs(options.directory, options.pairs, options.depth)
        return
    shipped = bpf_programs()
    if shipped is None:
        raise SystemExit("the BPF programs are not built (make build)")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        kept = shutil.copy(shipped, folder)
        before = _STATS.read_text()
        loop = _loop(Path(folder))
        costs: dict[str, list[float]] = {}
        try:
            _STATS.write_text("1")
            for _ in range(options.rounds):
                for build in options.objects or [Path(kept)]:
                    shutil.copy(build, shipped)
                    found = _round(loop, options.ios, Path(folder))
                    costs.setdefault(str(build), []).append(found["ns_per_io"])
                    sys.stdout.write(f"{build.name}: {found}\n")
        finally:
            _STATS.write_text(before)
            shutil.copy(kept, shipped)
            subprocess.run(["losetup", "--detach", loop], check=True)
    for name, values in costs.items():
        sys.stdout.write(f"{name}: median {statistics.median(values):.0f} ns for an I/O\n")


def _pairs(directory: Path, pairs: int, depth: int) -> None:
    ratios = []
    with (
        tempfile.TemporaryDirectory(dir=directory) as folder,
        tempfile.TemporaryDirectory(dir="/dev/shm") as memory,
    ):
        _iops(folder, depth)
        for number in range(pairs):
            found = {}
            for with_recorder in (number % 2 == 0, number % 2 == 1):
                if with_recorder:
                    with recorded(folder, Path(memory) / "record"):
                        found[True] = _iops(folder, depth)
                else:
                    found[False] = _iops(folder, depth)
            ratios.append(found[True] / found[False])
            sys.stdout.write(f"{found[True]:.0f} / {found[False]:.0f} = {ratios[-1]:.4f}\n")
    ratio, low, high = summary(ratios)
    sys.stdout.write(f"recorded / not: {ratio:.4f} [{low:.4f}, {high:.4f}], {pairs} pairs, depth {depth}\n")


def _iops(folder: str, depth: int) -> float:
    fio = (
        f"fio --name=j --directory={folder} --size={_SIZE} --direct=1 --rw=randread --bs=4k --time_based "
        f"--runtime=1 --ioengine=io_uring --iodepth={depth} --output-format=json"
    )
    done = subprocess.run(fio.split(), check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["jobs"][0]["read"]["iops"])


def _loop(folder: Path) -> str:
    image = folder / "disk"
    subprocess.run(["truncate", "--size", _SIZE, str(image)], check=True)
    made = ["losetup", "--find", "--show", str(image)]
    return subprocess.run(made, check=True, capture_output=True, text=True).stdout.strip()


def _round(loop: str, ios: int, folder: Path) -> dict[str, Any]:
    record, report = folder / "record", folder / "report.json"
    record.unlink(missing_ok=True)
    arguments = ["record", loop, "--output", str(record), "--capture", "bpf", "--json", str(report)]
    recorder = subprocess.Popen(
        [sys.executable, "-m", "blklab", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not record.exists():
        time.sleep(0.05)
    time.sleep(0.5)
    fio = f"fio --name=j --filename={loop} --direct=1 --rw=randread --bs=4k --ioengine=io_uring --iodepth=32"
    subprocess.run([*fio.split(), f"--number_ios={ios}"], check=True, stdout=subprocess.DEVNULL)
    programs = _programs(recorder.pid)
    recorder.send_signal(signal.SIGINT)
    recorder.wait()
    told = json.loads(report.read_text())
    return {
        "ns_per_io": round(sum(program["run_time_ns"] for program in programs) / told["ios"]),
        "skipped runs": sum(program["recursion_misses"] for program in programs),
        "I/Os": told["ios"],
        "lost": told["lost"],
    }


def _programs(pid: int) -> list[dict[str, int]]:
    """The counts of each BPF program that a process has loaded."""
    texts = [path.read_text() for path in Path(f"/proc/{pid}/fdinfo").iterdir()]
    return [
        {name: int(found[1]) for name in _COUNTS if (found := re.search(rf"{name}:\s*(\d+)", text))}
        for text in texts
        if "prog_type:" in text
    ]


if __name__ == "__main__":
    main()
