"""Measures the cost of recording: processor time for an I/O, I/Os a second, and what it misses.

Run as root: ``python benches/recording_cost.py``. fio reads at random from a loop device over memory while
blklab records it; the kernel counts the time and the runs of each program (``kernel.bpf_stats_enabled``) and
the processor time of the recorder. ``--objects`` compares builds of the programs, such as one of an earlier
commit, in turns.

``--target`` measures instead the I/Os a second of fio in a directory, or on such a loop device (``loop``),
while it is recorded, over those without. fio runs throughout; a recorder starts before each slot, and ends
before one of two, so that only what it does within the slot differs. The kernel counts the I/Os. The result
is the median of the pairs with its distribution-free 95 % interval.

``--flood`` records as many I/Os a second as the machine does, sequential ones that merge, and counts those
that are lost.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from host_overhead import summary

from blklab import _core
from blklab.linux.disks.disk import Disk
from blklab.linux.disks.resolution import resolve
from blklab.linux.recording.recorder import CHECK_SECONDS
from blklab.linux.recording.request import recording_request
from blklab.shipped import bpf_programs

_STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
_SIZE = "256m"
_COUNTS = ("run_time_ns", "run_cnt", "recursion_misses")
_WRITES_S = 1.2
"""The recorder writes what it has after a second at the latest."""
_BEGINS_S = 0.15
"""Between the recorder's start and the slot."""
_FIO = "fio --name=j --direct=1 --bs=4k --ioengine=io_uring"


def main() -> None:
    """Runs the measurement that was asked for, and prints it round by round."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ios", type=int, default=100_000)
    parser.add_argument("--depth", type=int, default=32)
    parser.add_argument(
        "--objects", type=Path, nargs="*", help="builds of the programs; default: the shipped one"
    )
    parser.add_argument("--flood", action="store_true", help="sequential I/Os, as many as possible")
    parser.add_argument("--target", help="a directory or `loop`: I/Os a second with and without a recorder")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--slot", type=float, default=0.5, help="seconds")
    parser.add_argument("--processor", type=int, help="the processor that fio keeps to; default: any")
    parser.add_argument("--seed", type=int, default=1, help="of the order of slots")
    options = parser.parse_args()
    shipped = bpf_programs()
    if shipped is None:
        raise SystemExit("the BPF programs are not built (make build)")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        if options.target not in (None, "loop"):
            with tempfile.TemporaryDirectory(dir=options.target) as directory:
                _pairs(options, directory, f"--directory={directory}", Path(folder))
            return
        with _loop(Path(folder)) as loop:
            if options.target:
                _pairs(options, loop, f"--filename={loop}", Path(folder))
            elif options.flood:
                for _ in range(options.rounds):
                    sys.stdout.write(f"{_flood(loop, options.ios, Path(folder))}\n")
            else:
                _processor_times(options, loop, Path(folder), shipped)


def _processor_times(options: argparse.Namespace, loop: str, folder: Path, shipped: Path) -> None:
    kept = shutil.copy(shipped, folder)
    before = _STATS.read_text()
    found: dict[Path, list[dict[str, Any]]] = {}
    try:
        _STATS.write_text("1")
        for _ in range(options.rounds):
            for build in options.objects or [Path(kept)]:
                shutil.copy(build, shipped)
                found.setdefault(build, []).append(_round(loop, options, folder))
                sys.stdout.write(f"{build.name}: {found[build][-1]}\n")
    finally:
        _STATS.write_text(before)
        shutil.copy(kept, shipped)
    for build, rounds in found.items():
        programs, recorder = (
            statistics.median(one[name] for one in rounds) for name in ("programs_ns", "recorder_ns")
        )
        sys.stdout.write(
            f"{build.name}: medians for an I/O: {programs:.0f} ns in programs, "
            f"{recorder:.0f} ns in the recorder\n"
        )


def _round(loop: str, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    (disk,) = resolve(loop).leaves
    with _recorder(loop, folder) as (recorder, told):
        before_ns, before = _processor_ns(recorder.pid), _completed(disk)
        fio = f"{_FIO} --filename={loop} --rw=randread --iodepth={options.depth} --number_ios={options.ios}"
        subprocess.run(fio.split(), check=True, stdout=subprocess.DEVNULL)
        time.sleep(_WRITES_S)
        programs, recorder_ns = _programs(recorder.pid), _processor_ns(recorder.pid) - before_ns
        # A build of other events than this recorder's has none in its record.
        ios = _completed(disk) - before
    return {
        "programs_ns": round(sum(program["run_time_ns"] for program in programs) / ios),
        "recorder_ns": round(recorder_ns / ios),
        "skipped runs": sum(program["recursion_misses"] for program in programs),
        "I/Os": ios,
        "lost": told["lost"],
        "unmatched": told["unmatched"],
        "runs for an I/O": [
            f"{program['run_cnt'] / ios:.2f} of {program['run_time_ns'] / program['run_cnt']:.0f} ns"
            for program in programs
            if program["run_cnt"] > 0.1 * ios
        ],
    }


def _flood(loop: str, ios: int, folder: Path) -> dict[str, Any]:
    with _recorder(loop, folder) as (_, told):
        # A task submits many at a time, which merge within its plug.
        fio = f"{_FIO} --filename={loop} --rw=read --iodepth=256 --iodepth_batch_submit=64"
        began_s = time.monotonic()
        subprocess.run(
            [*fio.split(), f"--io_size={4 * ios}k", "--iodepth_batch_complete_min=64"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        took_s = time.monotonic() - began_s
    return {
        "I/Os a second": round(told["ios"] / took_s),
        "I/Os": told["ios"],
        "lost": told["lost"],
        "unmatched": told["unmatched"],
    }


@contextmanager
def _recorder(loop: str, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """A recorder at work; what it tells is there at the end."""
    record, report = folder / "record", folder / "report.json"
    record.unlink(missing_ok=True)
    arguments = ["record", loop, "--output", str(record), "--capture", "bpf", "--json", str(report)]
    told: dict[str, Any] = {}
    with subprocess.Popen(
        [sys.executable, "-m", "blklab", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as recorder:
        while not record.exists() and recorder.poll() is None:
            time.sleep(0.05)
        time.sleep(0.5)
        try:
            yield recorder, told
        finally:
            recorder.terminate()
            recorder.wait()
    told.update(json.loads(report.read_text()))


def _pairs(options: argparse.Namespace, place: str, where: str, folder: Path) -> None:
    disk, *others = resolve(place).leaves
    if others:
        raise SystemExit(f"{place} lies on several disks")
    fio = f"{_FIO} {where} --size={_SIZE} --rw=randread --iodepth={options.depth} --time_based --runtime=1d"
    if options.processor is not None:
        fio += f" --cpus_allowed={options.processor}"
    subprocess.run(
        [*_FIO.split(), where, f"--size={_SIZE}", "--rw=write"], check=True, stdout=subprocess.DEVNULL
    )
    ratios: list[float] = []
    order = np.random.default_rng(options.seed)
    with subprocess.Popen(fio.split(), stdout=subprocess.DEVNULL) as load:
        time.sleep(2)
        try:
            for _ in range(options.pairs):
                first = order.random() < 0.5
                found = {}
                for is_recorded in (first, not first):
                    if load.poll() is not None:
                        raise SystemExit("fio has ended")
                    found[is_recorded] = _slot(disk, place, options.slot, folder, is_recorded=is_recorded)
                ratios.append(found[True] / found[False])
                sys.stdout.write(f"{found[True]:.0f} / {found[False]:.0f} = {ratios[-1]:.4f}\n")
        finally:
            load.terminate()
    ratio, low, high = summary(ratios)
    sys.stdout.write(
        f"recorded / not: {ratio:.4f} [{low:.4f}, {high:.4f}], {len(ratios)} pairs of slots of "
        f"{options.slot} s, depth {options.depth}\n"
    )


def _slot(disk: Disk, place: str, seconds: float, folder: Path, *, is_recorded: bool) -> float:
    """The disk's I/Os a second in a slot, which begins after a recorder has started, or has ended again."""
    file = folder / "record"
    file.unlink(missing_ok=True)
    recorder = _core.Recording(recording_request(place, [disk], file, (), capture="bpf"))
    try:
        if not is_recorded:
            recorder.finish()
        time.sleep(_BEGINS_S)
        began_s, before = time.monotonic(), _completed(disk)
        end_s = began_s + seconds
        # As `blklab record` does.
        while (left_s := end_s - time.monotonic()) > 0:
            if is_recorded:
                recorder.check()
            time.sleep(min(CHECK_SECONDS, left_s))
        return (_completed(disk) - before) / (time.monotonic() - began_s)
    finally:
        recorder.finish()


def _completed(disk: Disk) -> int:
    """Reads and writes that the disk has completed (Documentation/block/stat.rst)."""
    counts = (disk.sys_path / "stat").read_text().split()
    return int(counts[0]) + int(counts[4])


@contextmanager
def _loop(folder: Path) -> Iterator[str]:
    image = folder / "disk"
    # Memory that is there already: a hole would be read without any.
    subprocess.run(["fallocate", "--length", "256MiB", str(image)], check=True)
    made = ["losetup", "--find", "--show", str(image)]
    loop = subprocess.run(made, check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield loop
    finally:
        subprocess.run(["losetup", "--detach", loop], check=True)


def _processor_ns(pid: int) -> int:
    """The processor time of a process so far (Documentation/scheduler/sched-stats.rst)."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads)


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
