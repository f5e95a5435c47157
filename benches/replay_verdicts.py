"""Compares schedulers by a load and by the replay of its recording: do the two agree?

    python benches/replay_verdicts.py TARGET [--budget 40s] [--loads NAME…] [--schedulers A,B]
    python benches/replay_verdicts.py TARGET --a-against-a 20

TARGET is ``sim:DEVICE`` or a directory (root; a program only there). A load is recorded under the first scheduler. Then one comparison
runs the load and one replays the recording, under both. The replay contradicts if each comparison names a winner
and they are not the same. ``--a-against-a`` replays under one scheduler with two labels; every winner is false.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from blklab.analysis.metrics import METRICS
from blklab.analysis.verdict import Analysis, analyse
from blklab.cli.progress import ProgressDisplay
from blklab.execution.pipeline import compare
from blklab.records.store import Store
from blklab.spec.request import SpecValues, build_specs
from blklab.spec.workloads import shipped_workloads
from recorded_loads import load_without_ramp, measured, record_simulation

LOADS = (
    "random-read-4k-qd32",
    "random-write-4k-qd32",
    "mixed-70-30",
    "many-readers",
    "ten-readers",
    "direct-sequential-write",
    "sqlite-commits",
)
A_AGAINST_A = ("random-read-4k-qd1", "random-read-4k-qd32", "mixed-70-30", "many-readers")
TOLERANCE = 0.2
"""Of the effect."""


@dataclass(frozen=True)
class Found:
    """The outcome of one comparison of two schedulers, by one metric."""

    analysis: Analysis
    labels: tuple[str, str]
    metric: str

    @property
    def winner(self) -> str | None:
        """The only best one, if there is one."""
        verdict = next(one for one in self.analysis.metric_verdicts if one.metric == self.metric)
        return verdict.best[0] if verdict.status == "best" else None

    @property
    def speed(self) -> float:
        """How many times as fast the second is as the first."""
        pair = next(pair for pair in self.analysis.comparisons if pair.metric == self.metric)
        ratio = pair.seen_from(self.labels[1]).ratio
        return ratio if METRICS[self.metric].better == "higher" else 1 / ratio

    def text(self) -> str:
        """Winner and speed."""
        return f"{self.winner or 'undecided':12} x{self.speed:<6.3f}"


def main() -> int:
    """Prints a row for each load; returns 1 if a replay contradicts or a false winner is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("--budget", default="40s", help="of each comparison")
    parser.add_argument("--loads", nargs="*")
    parser.add_argument("--schedulers", default="none,bfq")
    parser.add_argument("--runtime", default="2s", help="of the recorded load")
    parser.add_argument("--a-against-a", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, _store(Path(folder)) as store:
        wrong = _a_against_a(given, Path(folder), store) if given.a_against_a else _agree(given, Path(folder), store)
    return 1 if wrong else 0


def _agree(given: argparse.Namespace, folder: Path, store: Store) -> int:
    first, second = given.schedulers.split(",")
    settled = contradicted = near = 0
    for load in given.loads or LOADS:
        recording = _record(given, folder, load, first)
        by_load = _compare(given, store, load, (first, second), given.seed)
        by_replay = _compare(given, store, f"trace:{recording}", (first, second), given.seed)
        notes = []
        if by_load.winner is not None:
            settled += 1
            if by_replay.winner is not None and by_replay.winner != by_load.winner:
                contradicted += 1
                notes.append("contradicts")
            off = by_replay.speed / by_load.speed - 1
            near += abs(off) <= TOLERANCE
            notes.append(f"effect {off:+.1%}")
        _say(f"{load:24} load {by_load.text()} replay {by_replay.text()} {', '.join(notes)}")
    _say(f"{settled} settled by the load, {contradicted} contradicted, {near} effects within {TOLERANCE:.0%}")
    return contradicted


def _a_against_a(given: argparse.Namespace, folder: Path, store: Store) -> int:
    false = 0
    scheduler = given.schedulers.split(",")[0]
    loads = given.loads or A_AGAINST_A
    for number in range(given.a_against_a):
        load = loads[number % len(loads)]
        recording = _record(given, folder, load, scheduler)
        arms = (f"a={scheduler}", f"b={scheduler}")
        found = _compare(given, store, f"trace:{recording}", arms, given.seed + number)
        false += found.winner is not None
        _say(f"{number + 1:3} {load:24} {found.text()}")
    _say(f"{false} false winners in {given.a_against_a}")
    return false


def _record(given: argparse.Namespace, folder: Path, load: str, scheduler: str) -> Path:
    recording = folder / f"{load}.blkrecord"
    recording.unlink(missing_ok=True)
    workload = load_without_ramp(load)
    scheme, _, device = given.target.partition(":")
    if scheme == "sim":
        record_simulation(recording, device, workload.text, scheduler, given.runtime)
    else:
        measured(given.target, workload, scheduler, given.runtime, recording)
    return recording


def _compare(
    given: argparse.Namespace, store: Store, workload: str, schedulers: tuple[str, str], seed: int
) -> Found:
    values = SpecValues(
        targets=[given.target],
        workloads=[workload],
        schedulers=[",".join(schedulers)],
        budget=given.budget,
        seed=seed,
    )
    with ProgressDisplay(quiet=not sys.stderr.isatty()) as display:
        record = compare(build_specs(values)[0], store, display)
    first, second = (name.partition("=")[0] for name in schedulers)
    metric = _metric(workload)
    return Found(analyse(record), (first, second), metric)


def _metric(workload: str) -> str:
    """The metric of speed: a load lasts for a time, a replay and a program until they are through."""
    if workload.startswith("trace:"):
        return "makespan"
    return "throughput" if workload in shipped_workloads() else "wall_time"


@contextmanager
def _store(folder: Path) -> Iterator[Store]:
    with Store.opened(str(folder / "runs.sqlite")) as store:
        yield store


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
