"""Records loads, replays each under the scheduler that it was recorded under, and compares the two runs.

``python benches/replay_fidelity.py sim:nvme-tlc`` and ``uml:hdd-7200`` need no root. Simulations are recorded
from their timelines, guests by their own program. On a directory (as root) fio or a program makes the load,
and ``blklab record`` records it and its replay; as disks drift, that is done ``--rounds`` times, and medians
are compared. ``--itself`` compares the load with itself, which tells how far the disk's own drift takes two
runs apart.

Figures are those of the block layer, from the queueing of an I/O to its completion.

Right is a replay whose throughput and mean latency are within 5 %, and whose p99 is within 15 %.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from recorded_loads import (
    SCHEDULERS,
    Figures,
    is_model,
    load_without_ramp,
    measured,
    record_guest,
    record_simulation,
)

import blklab
from blklab.spec.workloads import load_workload

LOADS = (
    "random-read-4k-qd1",
    "random-read-4k-qd32",
    "random-write-4k-qd1",
    "random-write-4k-qd32",
    "mixed-70-30",
    "many-readers",
    "ten-readers",
    "direct-sequential-write",
    "reader-beside-writers",
)
PROGRAMS = ("python-scipy-start", "git-status", "sqlite-commits")
"""On disks."""
_LIMITS = {"throughput": 0.05, "mean": 0.05, "p99": 0.15}

Changes = dict[str, float]


def main() -> None:
    """Prints a row for each load and scheduler, and how many are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--loads", nargs="*", help="default: nine loads, on a disk three programs too")
    parser.add_argument("--schedulers", nargs="*", default=SCHEDULERS)
    parser.add_argument("--runtime", default="50ms", help="of each load")
    parser.add_argument("--rounds", type=int, default=5, help="on a disk")
    parser.add_argument("--itself", action="store_true", help="on a disk: run the load again, not a replay")
    options = parser.parse_args()
    right = rows = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for load, scheduler, changes in _compared(options, Path(folder)):
            good = all(abs(change) <= _LIMITS[name] for name, change in changes.items())
            right, rows = right + good, rows + 1
            told = "  ".join(f"{name} {change:+7.1%}" for name, change in changes.items())
            sys.stdout.write(f"{load:24} {scheduler:12} {told}  {'right' if good else 'off'}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{right} of {rows} right\n")


def _compared(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, str, Changes]]:
    scheme, _, device = options.target.partition(":")
    on_model = is_model(options.target)
    for load in options.loads or (LOADS if on_model else (*LOADS, *PROGRAMS)):
        for scheduler in options.schedulers:
            if on_model:
                run, replay = _on_model(options, scheme, device, load, scheduler, folder / "recording")
                yield load, scheduler, run.changes_to(replay)
            else:
                yield load, scheduler, _on_disk(options, load, scheduler, folder)


def _on_model(
    options: argparse.Namespace, scheme: str, device: str, load: str, scheduler: str, recording: Path
) -> tuple[Figures, Figures]:
    plain = load_without_ramp(load)
    if scheme == "uml":
        run = record_guest(recording, options.target, plain, scheduler, options.runtime)
        again = load_workload(f"trace:{recording},scale-to=recorded")
        return run, record_guest(recording, options.target, again, scheduler, None)
    run = record_simulation(recording, device, plain.text, scheduler, options.runtime)
    again = load_workload(f"trace:{recording},scale-to=recorded")
    replay = blklab.simulate(device, again.text, scheduler=scheduler, timeline=True)
    return run, Figures.of_timeline(replay.timeline)


def _on_disk(options: argparse.Namespace, load: str, scheduler: str, folder: Path) -> Changes:
    """Medians over the rounds, in which run and replay take turns at going first."""
    plain = load_without_ramp(load)
    runtime = None if load in PROGRAMS else options.runtime
    first = folder / "first"
    measured(options.target, plain, scheduler, runtime, first)
    again = load_workload(f"trace:{first}")
    rounds = []
    for number in range(options.rounds):
        figures = {}
        for kind in ("run", "replay")[:: 1 if number % 2 else -1]:
            workload, length = (again, None) if kind == "replay" and not options.itself else (plain, runtime)
            figures[kind] = measured(options.target, workload, scheduler, length, folder / kind)
        rounds.append(figures["run"].changes_to(figures["replay"]))
    return {name: median(changes[name] for changes in rounds) for name in _LIMITS}


if __name__ == "__main__":
    main()
