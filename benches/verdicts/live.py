"""Error rates, power and disk time of switchbacks on a real disk (root); prints one line per comparison.

    python benches/verdicts/live.py a-against-a [--comparisons 100] [--budget 20s]
    python benches/verdicts/live.py power [--differences 3,5,10] [--comparisons 20] [--budget 75s]
    python benches/verdicts/live.py against-runs [--workload NAME]… [--differences 10] [--budget 105s]

``a-against-a`` compares a scheduler with itself: every winner is false. ``power`` slows one of two equal
arms by stopping fio's processes for a part of the time in that arm's turns. ``against-runs`` asks about
such arms with both designs. Runs have `PATIENCE` times as long as the switchback took, and do not give up.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from unittest import mock

from against_itself import passing_store

from blklab.analysis.comparison import PairwiseComparison
from blklab.analysis.verdict import Analysis, analyse
from blklab.experiment import racing
from blklab.experiment.pipeline import compare
from blklab.linux.queue.settings import QueueSettings
from blklab.progress.experiment import ProgressDisplay
from blklab.records.experiment import ExperimentRecord
from blklab.records.store import Store
from blklab.report.terminal import console_out
from blklab.spec.request import SpecValues, build_specs
from blklab.spec.schedulers import SchedulerChoice

PATIENCE = 6
"""Times as long as a switchback took, that ``against-runs`` gives to runs."""
PERIOD_S = 0.04
"""A slowed arm is stopped once in this time."""
LOOK_S = 0.25
SLOWED = "second"
WORKLOADS = ("random-read-4k-qd1", "random-read-4k-qd32", "mixed-70-30", "random-write-4k-qd32")
SLOWED_WORKLOADS = ("random-read-4k-qd1", "random-write-4k-qd1")
"""Of ``power``: at depth 1 a program that is stopped for a part of the time does that much less."""


@dataclass
class Answer:
    """One comparison that has ended."""

    record: ExperimentRecord
    analysis: Analysis
    elapsed_s: float

    @property
    def pair(self) -> PairwiseComparison | None:
        """The comparison that decides the first workload."""
        name = self.record.spec.workloads[0].name
        decided = self.analysis.deciding(name)
        pairs = [
            pair
            for pair in self.analysis.comparisons
            if decided and (pair.workload, pair.metric) == (name, decided.metric)
        ]
        return pairs[0] if pairs else None

    @property
    def load_s(self) -> float:
        """Time of the load: slots or runs, without pilots and preparation."""
        return sum(sample.elapsed_ns for sample in self.record.samples) / 1e9

    def line(self) -> str:
        """Verdict, ratio and times."""
        verdict, pair, spec = self.analysis.verdict, self.pair, self.record.spec
        ratio = "-"
        if pair is not None:
            ratio = f"{pair.ratio:.3f}"
            if pair.ci_low is not None and pair.ci_high is not None:
                ratio += f" [{pair.ci_low:.3f}, {pair.ci_high:.3f}]"
        slots = spec.slots.get(spec.workloads[0].name)
        design = (
            "runs" if slots is None or slots.slot_ns is None else f"slots of {slots.slot_ns / 1e6:.0f} ms"
        )
        return (
            f"{verdict.status:9s} {'/'.join(verdict.best) or '-':12s} ratio {ratio:24s} {design}"
            f"  {self.load_s:.1f} s of load, {self.elapsed_s:.1f} s in all"
        )


def ask(
    store: Store, target: str, workload: str, schedulers: str, budget: str, seed: int, design: str
) -> Answer:
    """Runs a comparison."""
    values = SpecValues(
        targets=[target],
        workloads=[workload],
        schedulers=[schedulers],
        budget=budget,
        seed=seed,
        design=design,
    )
    started = time.monotonic()
    with ProgressDisplay(quiet=not sys.stderr.isatty()) as display:
        record = compare(build_specs(values)[0], store, display)
    return Answer(record, analyse(record), time.monotonic() - started)


@dataclass
class Brake:
    """Stops fio's processes for a part of the time while the slowed arm has its turn."""

    part: float
    in_force: str = ""
    over: threading.Event = field(default_factory=threading.Event)
    slowed_s: float = 0.0
    """Time of the slowed arm's turns so far."""
    stopped_s: float = 0.0
    """Of that, the time for which fio was stopped."""

    def run(self) -> None:
        """Until `over`."""
        while not self.over.is_set():
            if self.in_force == SLOWED:
                self._slow_a_turn()
            else:
                time.sleep(PERIOD_S / 8)

    def _slow_a_turn(self) -> None:
        """Stops for what is due, so that a stop that lasted too long is followed by shorter ones."""
        processes = fio_processes()
        before_s = self.slowed_s
        began_s = looked_s = time.monotonic()
        while processes and self.in_force == SLOWED and not self.over.is_set():
            time.sleep(PERIOD_S / 2)
            # A run is one long turn, during which fio starts its jobs and ends.
            if time.monotonic() - looked_s > LOOK_S:
                looked_s = time.monotonic()
                processes = fio_processes()
            self.slowed_s = before_s + time.monotonic() - began_s
            due_s = self.part * self.slowed_s - self.stopped_s
            if due_s < self.part * PERIOD_S / 4:
                continue
            stop_s = time.monotonic()
            _signal(processes, signal.SIGSTOP)
            time.sleep(due_s)
            _signal(processes, signal.SIGCONT)
            self.stopped_s += time.monotonic() - stop_s

    @contextmanager
    def working(self) -> Iterator[None]:
        """Watches which arm is in force, and brakes the slowed one."""
        apply = QueueSettings.apply

        def noted(settings: QueueSettings, choice: SchedulerChoice) -> dict[str, str]:
            self.in_force = ""
            found = apply(settings, choice)
            self.in_force = choice.label
            return found

        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            with mock.patch.object(QueueSettings, "apply", noted):
                yield
        finally:
            self.over.set()
            thread.join()

    @property
    def share(self) -> float:
        """The part of the slowed arm's turns for which fio was stopped."""
        return self.stopped_s / self.slowed_s if self.slowed_s else 0.0


def _say(line: str) -> None:
    """One line, however narrow the terminal."""
    console_out().print(line, markup=False, soft_wrap=True)


def fio_processes() -> list[int]:
    """Processes of a comparison's fio."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            name = (link.parent / "comm").read_text().strip()
            if name == "fio" and str(link.readlink()).startswith("/run/blklab-"):
                found.append(int(link.parent.name))
    return found


def _signal(processes: Sequence[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def a_against_a(given: argparse.Namespace, store: Store) -> None:
    """Counts false winners."""
    outcomes: Counter[str] = Counter()
    for number in range(given.comparisons):
        workload = given.workload[number % len(given.workload)]
        scheduler = given.scheduler[number % len(given.scheduler)]
        arms = f"first={scheduler},second={scheduler}"
        answer = ask(store, given.target, workload, arms, given.budget, given.seed + number, given.design)
        outcomes[answer.analysis.verdict.status] += 1
        _say(f"{number + 1:3d} {workload:20s} {scheduler:12s} {answer.line()}")
    _say(f"{dict(outcomes)} of {given.comparisons}: {outcomes['best']} false winners")


def power(given: argparse.Namespace, store: Store) -> None:
    """Counts how often a slowed arm is found."""
    for percent in given.differences.split(","):
        found: list[bool] = []
        ratios: list[float] = []
        shares: list[float] = []
        for number in range(given.comparisons):
            workload = given.workload[number % len(given.workload)]
            brake = Brake(float(percent) / 100)
            with brake.working():
                answer = ask(
                    store, given.target, workload, "first=none,second=none", given.budget,
                    given.seed + number, given.design,
                )  # fmt: skip
            verdict, pair = answer.analysis.verdict, answer.pair
            found.append(verdict.status == "best" and verdict.best == ["first"])
            shares.append(brake.share)
            if pair is not None:
                ratios.append(pair.ratio)
            _say(
                f"{percent:>3s} % {number + 1:3d} {workload:20s} {answer.line()}, stopped {brake.share:.1%}",
            )
        _say(
            f"stopped {percent} % of the time (really {median(shares):.1%}): found in {sum(found)} of"
            f" {len(found)}, median ratio {median(ratios):.3f}",
        )


def against_runs(given: argparse.Namespace, store: Store) -> None:
    """Load until settled, by both designs."""
    factors = []
    part = float(given.differences.split(",")[0]) / 100
    for number in range(given.comparisons):
        for workload in given.workload:
            answers: dict[str, Answer] = {}
            budget = given.budget
            for design in ("switchback", "runs"):
                with Brake(part).working(), mock.patch.object(racing, "FEWEST_BEFORE_GIVING_UP", sys.maxsize):
                    answers[design] = ask(
                        store, given.target, workload, "first=none,second=none", budget, given.seed + number,
                        design,
                    )  # fmt: skip
                _say(f"{workload:20s} {design:10s} {answers[design].line()}")
                budget = f"{math.ceil(PATIENCE * answers[design].elapsed_s)}s"
            by_runs, by_slots = answers["runs"], answers["switchback"]
            factor = by_slots.load_s / by_runs.load_s
            whole = by_slots.elapsed_s / by_runs.elapsed_s
            factors.append(factor)
            same = by_runs.analysis.verdict.best == by_slots.analysis.verdict.best
            found = "the same" if same else "another"
            if by_runs.analysis.verdict.status == "undecided":
                found = "nothing"
            _say(
                f"{workload:20s} switchback took {factor:.2f} of the load of runs ({whole:.2f} of their"
                f" time with pilot and preparation), which found {found}",
            )
    _say(f"median {median(factors):.2f} of the load, over {len(factors)} pairs")


WAYS = {"a-against-a": a_against_a, "power": power, "against-runs": against_runs}


def main() -> int:
    """Runs one of the three."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("way", choices=WAYS)
    arguments.add_argument("--target", default=".")
    arguments.add_argument("--comparisons", type=int, default=20)
    arguments.add_argument("--budget", default="30s")
    arguments.add_argument("--workload", action="append")
    arguments.add_argument("--scheduler", action="append", help="of a-against-a")
    arguments.add_argument(
        "--differences", default="10,5,3", help="in percent; of against-runs the first one"
    )
    arguments.add_argument("--design", default="switchback")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--store", help="keeps the comparisons, to be analysed again")
    given = arguments.parse_args()
    given.workload = given.workload or list(SLOWED_WORKLOADS if given.way == "power" else WORKLOADS)
    given.scheduler = given.scheduler or ["none", "mq-deadline", "kyber"]
    with passing_store(given.store) as store:
        WAYS[given.way](given, store)
    return 0


if __name__ == "__main__":
    sys.exit(main())
