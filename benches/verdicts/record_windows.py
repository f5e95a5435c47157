"""Records how many I/Os a disk completes in each 50 ms under one continuous load.

    python benches/verdicts/record_windows.py DIRECTORY --condition quiet [--seconds 1200] [--out FILE]

Runs fio on a file of its own in that directory: 4 KiB random reads at depth 1 and at depth 32, and reads and
writes mixed, one load after the other. The condition is a word for what else happened (``quiet``, ``loaded``,
``throttled``); bringing it about is not this program's work. The archive gets one text file for each
condition and load, a count per line; a recording of the same name is replaced.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from blklab.report.terminal import console_out

WINDOW_MS = 50
LOADS = {
    "depth 1": ["--rw=randread", "--iodepth=1"],
    "depth 32": ["--rw=randread", "--iodepth=32"],
    "mixed": ["--rw=randrw", "--rwmixread=70", "--iodepth=8"],
}


def record(directory: Path, load: Sequence[str], seconds: float, size: str) -> list[int]:
    """I/Os per window from the load's beginning, without the first second."""
    with tempfile.TemporaryDirectory(prefix="blklab-windows-", dir=directory) as folder:
        command = [
            "fio",
            "--name=windows",
            "--filename=data",
            f"--size={size}",
            "--bs=4k",
            "--direct=1",
            "--ioengine=libaio",
            "--time_based",
            f"--runtime={seconds:g}s",
            "--write_iops_log=windows",
            f"--log_avg_msec={WINDOW_MS}",
            "--output=/dev/null",
            *load,
        ]
        subprocess.run(command, cwd=folder, check=True)
        entries = np.loadtxt(Path(folder) / "windows_iops.1.log", delimiter=",", usecols=(0, 1, 2), ndmin=2)
    return counts_per_window(entries)[1000 // WINDOW_MS :]


def counts_per_window(entries: np.ndarray) -> list[int]:
    """Counts from fio's log, whose rows are time in ms, I/Os per second, and direction.

    An entry is the mean rate since the entry before it in that direction. Under load fio is late, so entries
    are not exactly a window apart; the I/Os between two of them are taken to be evenly spread.
    """
    edges_ms = np.arange(0, entries[:, 0].max() + 1, WINDOW_MS)
    done = np.zeros(len(edges_ms))
    for direction in np.unique(entries[:, 2]):
        own = entries[entries[:, 2] == direction]
        times_ms = np.concatenate([[0.0], own[:, 0]])
        total = np.concatenate([[0.0], np.cumsum(own[:, 1] * np.diff(times_ms) / 1000)])
        done += np.interp(edges_ms, times_ms, total)
    return [round(count) for count in np.diff(done)]


def main() -> int:
    """Records every load and adds it to the archive."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("directory", type=Path)
    arguments.add_argument("--condition", required=True)
    arguments.add_argument("--seconds", type=float, default=1200, help="for each load")
    arguments.add_argument("--size", default="1g", help="of the file")
    arguments.add_argument("--out", type=Path, default=Path(__file__).with_name("windows.zip"))
    given = arguments.parse_args()
    for name, load in LOADS.items():
        counts = record(given.directory, load, given.seconds, given.size)
        _add(given.out, f"{name}, {given.condition}", counts)
        console_out().print(
            f"{name}: {len(counts)} windows, {np.mean(counts):.1f} I/Os in each, "
            f"scatter {100 * np.std(counts) / np.mean(counts):.0f} %",
            markup=False,
        )
    return 0


def _add(path: Path, name: str, counts: Sequence[int]) -> None:
    """Adds a recording, or replaces it."""
    kept = {}
    if path.exists():
        with zipfile.ZipFile(path) as archive:
            kept = {entry: archive.read(entry) for entry in archive.namelist()}
    minutes = len(counts) * WINDOW_MS / 60_000
    text = "\n".join([f"# recorded: {name}, {minutes:.0f} min", *map(str, counts)])
    kept[f"{name}.txt"] = text.encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for entry, content in sorted(kept.items()):
            # A fixed date, so that equal recordings make an equal file.
            archive.writestr(zipfile.ZipInfo(entry), content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    sys.exit(main())
