"""Records loads, replays each under the scheduler that it was recorded under, and compares the two runs.

``python benches/replay_fidelity.py sim:nvme-tlc`` and ``uml:hdd-7200`` need no root. Simulations are recorded
from their timelines, guests by their own program. On a directory (as root) fio or a program makes the load,
and ``blklab record`` records it and its replay; as disks drift, that is done ``--rounds`` times, each with a
recording of its own, and the medians of the changes count. In each round the load runs again, so a second row
compares it with itself: so far the disk's own drift takes two runs apart. A third row compares the replays
with these runs beside them, ``--pairs`` in alternating order: slower drift cancels out. It has 95 % intervals
of the geometric mean over the rounds. Right is then a replay whose intervals lie within the limits, off is
one with an interval beyond its limit, and the rounds leave the others undecided.

Figures are those of the block layer, from the queueing of an I/O to its completion. On a disk only the jobs
of a load count, and not what starts them; of a program all I/O does.

Right is a replay whose throughput and mean latency are within 5 %, and whose p99 is within 15 %.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from recorded_loads import (
    SCHEDULERS,
    Counted,
    Figures,
    is_model,
    load_without_ramp,
    record_guest,
    record_simulation,
    runs_on,
)

import blklab
from blklab.analysis.statistics.paired import paired_difference
from blklab.linux.processes.signals import signals_as_exceptions
from blklab.spec.experiment import DEFAULT_CONFIDENCE
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
Intervals = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Row:
    """The changes of one load by its replay, and on a disk by running it again."""

    load: str
    scheduler: str
    replay: Changes
    itself: Changes | None = None
    beside: Intervals | None = None
    """Of the logarithms of the replay's figures over those of the load in the same round."""


def main() -> None:
    """Prints a row for each load and scheduler, and how many are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--loads", nargs="*", help="default: nine loads, on a disk three programs too")
    parser.add_argument("--schedulers", nargs="*", default=SCHEDULERS)
    parser.add_argument("--runtime", default="50ms", help="of each load")
    parser.add_argument("--rounds", type=int, default=5, help="on a disk")
    parser.add_argument(
        "--pairs", type=int, default=1, help="replays, and runs of the load again, in a round"
    )
    parser.add_argument(
        "--rest", type=float, default=3, help="seconds before each run, so that limits of a disk recover"
    )
    parser.add_argument(
        "--allow-writes", action="store_true", help="to a device, whose contents do not matter"
    )
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("intervals take at least two rounds")
    if options.pairs < 1:
        parser.error("a round has at least one pair")
    right = rows = right_itself = 0
    beside: Counter[str] = Counter()
    with signals_as_exceptions(), tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for row in _compared(options, Path(folder)):
            right, rows = right + _is_right(row.replay), rows + 1
            sys.stdout.write(f"{row.load:24} {row.scheduler:12} {_told(row.replay)}\n")
            if row.itself is not None and row.beside is not None:
                right_itself += _is_right(row.itself)
                beside[_verdict(row.beside)] += 1
                sys.stdout.write(f"{'':24} {'itself':12} {_told(row.itself)}\n")
                sys.stdout.write(f"{'':24} {'beside':12} {_told_intervals(row.beside)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{right} of {rows} right")
    if not is_model(options.target):
        verdicts = ", ".join(f"{beside[verdict]} {verdict}" for verdict in ("right", "undecided", "off"))
        sys.stdout.write(f"; of the loads themselves, {right_itself}")
        sys.stdout.write(f"; replays against loads beside them: {verdicts}")
    sys.stdout.write("\n")


def _is_right(changes: Changes) -> bool:
    return all(abs(change) <= _LIMITS[name] for name, change in changes.items())


def _told(changes: Changes) -> str:
    told = "  ".join(f"{name} {change:+7.1%}" for name, change in changes.items())
    return f"{told}  {'right' if _is_right(changes) else 'off'}"


def _verdict(intervals: Intervals) -> str:
    limits = {name: (math.log1p(-limit), math.log1p(limit)) for name, limit in _LIMITS.items()}
    pairs = [(intervals[name], limits[name]) for name in _LIMITS]
    if any(low > most or high < least for (low, high), (least, most) in pairs):
        return "off"
    within = all(least <= low and high <= most for (low, high), (least, most) in pairs)
    return "right" if within else "undecided"


def _told_intervals(intervals: Intervals) -> str:
    told = "  ".join(
        f"{name} [{math.expm1(low):+.1%}, {math.expm1(high):+.1%}]" for name, (low, high) in intervals.items()
    )
    return f"{told}  {_verdict(intervals)}"


def _compared(options: argparse.Namespace, folder: Path) -> Iterator[Row]:
    scheme, _, device = options.target.partition(":")
    on_model = is_model(options.target)
    for load in options.loads or (LOADS if on_model else (*LOADS, *PROGRAMS)):
        for scheduler in options.schedulers:
            if on_model:
                run, replay = _on_model(options, scheme, device, load, scheduler, folder / "recording")
                yield Row(load, scheduler, run.changes_to(replay))
            else:
                yield _on_disk(options, load, scheduler, folder)


def _on_model(
    options: argparse.Namespace, scheme: str, device: str, load: str, scheduler: str, recording: Path
) -> tuple[Figures, Figures]:
    plain = load_without_ramp(load, options.runtime)
    if scheme == "uml":
        run = record_guest(recording, options.target, plain, scheduler)
        again = load_workload(f"trace:{recording},scale-to=recorded")
        return run, record_guest(recording, options.target, again, scheduler)
    run = record_simulation(recording, device, plain.text, scheduler)
    again = load_workload(f"trace:{recording},scale-to=recorded")
    replay = blklab.simulate(
        device, again.text, scheduler=scheduler, costs="zero-cpu-time", arrangement="fixed", timeline=True
    )
    return run, Figures.of_timeline(replay.timeline)


def _on_disk(options: argparse.Namespace, load: str, scheduler: str, folder: Path) -> Row:
    """Medians over the rounds: replays, the load again, and a recording for the next round."""
    plain = load_without_ramp(load, options.runtime)
    of: Counted = "jobs" if plain.command is None else "all"
    orders = itertools.cycle(itertools.permutations(("replay", "again")))
    rounds: list[dict[str, Figures]] = []
    run = folder / "run"
    # On a device the replay has the load's own place: two places of a disk can differ in speed.
    place = ",scale-to=recorded" if Path(options.target).is_block_device() else ""
    session = partial(runs_on, options.target, allow_writes=options.allow_writes)
    with session([plain], scheduler, of) as measured_run:
        if plain.command is None:  # others have run once
            # The first run reads the programs that make the load from the disk, later ones do not.
            measured_run(plain, run)
        time.sleep(options.rest)
        recorded = measured_run(plain, run)
    for order in itertools.islice(orders, options.rounds):
        workloads = {"replay": load_workload(f"trace:{run}{place}"), "again": plain}
        with session(list(workloads.values()), scheduler, of) as measured_run:
            found: dict[str, list[Figures]] = {kind: [] for kind in order}
            for pair in range(options.pairs):
                for kind in order if pair % 2 == 0 else reversed(order):
                    time.sleep(options.rest)
                    found[kind].append(measured_run(workloads[kind], folder / kind))
            rounds.append(
                {"recorded": recorded} | {kind: Figures.typical(runs) for kind, runs in found.items()}
            )
            time.sleep(options.rest)
            recorded = measured_run(plain, run)

    def changes(kind: str) -> Changes:
        each = [of_round["recorded"].changes_to(of_round[kind]) for of_round in rounds]
        return {name: median(one[name] for one in each) for name in _LIMITS}

    return Row(load, scheduler, changes("replay"), changes("again"), _beside(rounds))


def _beside(rounds: Sequence[Mapping[str, Figures]]) -> Intervals:
    """The replays against the loads of their rounds."""
    intervals = {}
    for name, limit in _LIMITS.items():
        replays, loads = ([getattr(one[kind], name) for one in rounds] for kind in ("replay", "again"))
        difference = paired_difference(replays, loads, margin=limit, smallest_level=1 - DEFAULT_CONFIDENCE)
        interval = difference.log_interval(DEFAULT_CONFIDENCE)
        if interval is not None:
            intervals[name] = interval
    return intervals


if __name__ == "__main__":
    main()
