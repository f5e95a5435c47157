"""Compares schedulers by a load and by the replay of its recording: do the two agree?

    python benches/replay_verdicts.py TARGET [--budget 40s] [--loads NAME…] [--schedulers A,B,…]
    python benches/replay_verdicts.py TARGET --a-against-a 20

TARGET is ``sim:DEVICE``, ``uml:DEVICE`` or a directory (root; programs only there). A load is recorded
under the first scheduler, on models while computing takes no time. Then one comparison runs the load and one
replays the recording, under all schedulers, and a row for each pair of schedulers says how many times as fast
the second is as the first, and whether that is settled. Speed is throughput; of a program and of a replay it
is one over the time.

A replay contradicts if it settles that the other scheduler is faster. Its effect is right if its ratio of
speeds is within 20 % of the load's. ``--a-against-a`` replays under the first scheduler with two labels:
every winner is false.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from recorded_loads import is_model, load_without_ramp, record_guest, record_simulation, runs_on

from blklab.analysis.metrics import METRICS
from blklab.analysis.verdict import Analysis, analyse
from blklab.errors import BlklabError
from blklab.experiment.pipeline import compare
from blklab.progress.experiment import ProgressDisplay
from blklab.quantities.units import parse_duration_ns
from blklab.records.store import Store
from blklab.spec.request import SpecValues, build_specs
from blklab.spec.workloads import load_workload

LOADS = (
    "random-read-4k-qd32",
    "random-write-4k-qd32",
    "mixed-70-30",
    "many-readers",
    "ten-readers",
    "five-readers-five-writers",
    "direct-sequential-write",
)
PROGRAMS = ("sqlite-commits",)
A_AGAINST_A = ("random-read-4k-qd1", "random-read-4k-qd32", "mixed-70-30", "many-readers")
TOLERANCE = 0.2
"""Of a ratio of speeds."""
_RECORDING_S = 6
"""Time to lay out a load's files, run and record it, roughly."""


@dataclass(frozen=True)
class Effect:
    """The second scheduler against the first."""

    ratio: float
    """How many times as fast it is."""
    outcome: str
    """``faster``, ``slower``, ``equal`` or ``undecided``."""

    @property
    def settled(self) -> bool:
        """Whether one of the two is known to be faster."""
        return self.outcome in ("faster", "slower")

    def __str__(self) -> str:
        """Ratio and outcome."""
        return f"x{self.ratio:<6.3f} {self.outcome:9}"


Pair = tuple[str, str]


class Bench:
    """Records loads on a target, and compares schedulers there.

    Args:
        given: The options.
        folder: Receives recordings.
        store: Receives runs.
    """

    def __init__(self, given: argparse.Namespace, folder: Path, store: Store) -> None:
        self._given = given
        self._folder = folder
        self._store = store
        self.schedulers: list[str] = given.schedulers.split(",")
        self._on_model = is_model(given.target)

    def agree(self) -> int:
        """Prints a row for each load and pair; returns the number of contradictions."""
        settled = contradicted = near = rows = 0
        loads = self._given.loads or (LOADS if self._on_model else (*LOADS, *PROGRAMS))
        self._say_duration(len(loads), 2)
        for load in loads:
            try:
                replay = self._replay_of(load)
                by_load = self._compare(load, self.schedulers, self._given.seed)
                by_replay = self._compare(replay, self.schedulers, self._given.seed)
            except BlklabError as error:
                _say(f"{load:24} left out: {error}")
                continue
            for pair in combinations(self.schedulers, 2):
                own, again = by_load[pair], by_replay[pair]
                off = again.ratio / own.ratio - 1
                notes = f"ratio {off:+6.1%}"
                rows += 1
                if own.settled:
                    settled += 1
                    near += abs(off) <= TOLERANCE
                    if again.settled and again.outcome != own.outcome:
                        contradicted += 1
                        notes += "  contradicts"
                _say(f"{load:24} {' '.join(pair):22} load {own}  replay {again}  {notes}")
        _say(
            f"{settled} of {rows} differences settled by the load: {contradicted} contradicted by the "
            f"replay, {near} ratios within {TOLERANCE:.0%}"
        )
        return contradicted

    def a_against_a(self) -> int:
        """Prints a row for each comparison; returns the number of false winners."""
        false = 0
        scheduler = self.schedulers[0]
        loads = self._given.loads or A_AGAINST_A
        times = self._given.a_against_a
        self._say_duration(min(times, len(loads)), times / min(times, len(loads)))
        replays: dict[str, str] = {}
        for number in range(times):
            load = loads[number % len(loads)]
            replay = replays.get(load) or replays.setdefault(load, self._replay_of(load))
            found = self._compare(replay, [f"a={scheduler}", f"b={scheduler}"], self._given.seed + number)
            false += found["a", "b"].settled
            _say(f"{number + 1:3} {load:24} {found['a', 'b']}")
        _say(f"{false} false winners in {times}")
        return false

    def _replay_of(self, load: str) -> str:
        """Records a load; returns the workload that replays it."""
        given, scheduler = self._given, self.schedulers[0]
        recording = self._folder / f"{load}.blkrecord"
        workload = load_without_ramp(load, given.runtime)
        if self._on_model:
            scheme, _, device = given.target.partition(":")
            if scheme == "uml":
                record_guest(recording, given.target, workload, scheduler)
            else:
                record_simulation(recording, device, workload.text, scheduler)
            return f"trace:{recording},scale-to=recorded"
        with runs_on(given.target, [workload], scheduler) as measured_run:
            measured_run(workload, recording)
        return f"trace:{recording}"

    def _compare(self, workload: str, schedulers: Sequence[str], seed: int) -> Mapping[Pair, Effect]:
        given = self._given
        values = SpecValues(
            targets=[given.target],
            workloads=[workload],
            schedulers=[",".join(schedulers)],
            budget=given.budget,
            runtime=None if workload in PROGRAMS or workload.startswith("trace:") else given.runtime,
            # A replay has a beginning and an end, so schedulers cannot take turns within it.
            design="runs",
            seed=seed,
        )
        with ProgressDisplay(quiet=given.quiet) as display:
            record = compare(build_specs(values)[0], self._store, display)
        return _effects(analyse(record), _metric(workload))

    def _say_duration(self, loads: int, comparisons: float) -> None:
        """Tells how long it will take at most, if that depends on time."""
        if not self._given.budget.endswith("blocks"):
            each_s = comparisons * parse_duration_ns(self._given.budget) / 1e9 + _RECORDING_S
            _say(f"at most about {loads * each_s / 60:.0f} min from {time.strftime('%H:%M')} on")


def main() -> int:
    """Returns 1 if a replay contradicts or a false winner is named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target")
    parser.add_argument("--budget", default="40s", help="of each comparison: a time, or 12blocks")
    parser.add_argument("--loads", nargs="*", help="default: seven loads, on a disk a program too")
    parser.add_argument("--schedulers", default="none,bfq", help="the first is recorded")
    parser.add_argument("--runtime", default="2s", help="of each load")
    parser.add_argument("--a-against-a", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, _store(Path(folder)) as store:
        bench = Bench(given, Path(folder), store)
        wrong = bench.a_against_a() if given.a_against_a else bench.agree()
    return 1 if wrong else 0


def _effects(analysis: Analysis, metric: str) -> dict[Pair, Effect]:
    effects = {}
    for pair in analysis.comparisons:
        if pair.metric == metric:
            seen = pair.seen_from(pair.second)
            ratio = seen.ratio if METRICS[metric].better == "higher" else 1 / seen.ratio
            outcome = {"better": "faster", "worse": "slower"}.get(seen.outcome, seen.outcome)
            effects[pair.first, pair.second] = Effect(ratio, outcome)
    return effects


def _metric(workload: str) -> str:
    """The metric of speed: a load lasts for a time, others until they are through."""
    decides = load_workload(workload).decide_by
    return decides if decides in ("iops", "wall_time", "makespan") else "throughput"


@contextmanager
def _store(folder: Path) -> Iterator[Store]:
    with Store.opened(str(folder / "runs.sqlite")) as store:
        yield store


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
