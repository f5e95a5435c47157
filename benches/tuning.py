#!/usr/bin/env python3
"""Measures how good and how honest tuning is, on models, where the truth can be had.

    python benches/tuning.py regret            # against a search of the whole space
    python benches/tuning.py false-gains       # candidates without effect, on a noisy device
    python benches/tuning.py false-gains --directory DIRECTORY    # the same on its disk, as root
    python benches/tuning.py coverage          # the stated gain against the gain measured again
    python benches/tuning.py coverage --directory DIRECTORY --profile my-disk.toml    # on its disk, as root
    python benches/tuning.py speed             # 1,000 trials

Each case has the seed that its number gives; none was left out.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from blklab.analysis.verdict import analyse
from blklab.experiment.blocks import Progress
from blklab.experiment.pipeline import compare
from blklab.labs.tuning.model import opened
from blklab.labs.tuning.search import best_of, search
from blklab.labs.tuning.space import chosen
from blklab.labs.tuning.trials import ModelTrials, Trial
from blklab.labs.tuning.tuning import TuningRequest, against_default, confirmed, prepare, tune
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.records.store import Store
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.plan import derive_seed
from blklab.spec.request import SpecValues, build_specs

NOISY = "sim:fixed,latency=200us,depth=8,jitter=150us,stall=20ms,stall_every=150ms"
"""A device whose runs of a second differ by several percent."""
IDLE_ON_MODELS = ({"iostats": "1"}, {"add_random": "0"}, {"iostats": "1", "add_random": "0"})
"""The orders of priorities, which the load does not have, and merges of requests apart."""
IDLE_ON_DISKS = ({"writes_starved": "3"}, {"front_merges": "0"}, {"writes_starved": "3", "front_merges": "0"})
"""mq-deadline's, while one process reads a block at a time."""
SPACES = {
    "mq-deadline": ("fifo_batch", "writes_starved", "async_depth", "max_sectors_kb"),
    "bfq": ("slice_idle", "low_latency", "max_budget", "timeout_sync"),
    "kyber": ("read_lat_nsec", "write_lat_nsec", "nr_requests"),
}
"""Spaces that are small enough to be searched in full."""
DISKS = ("sim:ssd-sata", "sim:emmc", "sim:hdd-7200")
LOADS = ("reader-beside-writers", "mixed-70-30", "five-readers-five-writers")


class Silent:
    """Follows a tuning without a word."""

    def announce(self, line: str) -> None:
        """Not shown."""

    def begun(self, record: ExperimentRecord) -> None:
        """Not shown."""

    def progressed(self, progress: Progress) -> None:
        """Not shown."""

    def measured(self, sample: RunSample) -> None:
        """Not shown."""

    def searching(self, done: int, planned: int, best: Trial | None, gain: float) -> None:
        """Not shown."""


def _spec(target: str, load: str, **values: object) -> ExperimentSpec:
    (spec,) = build_specs(SpecValues(targets=[target], workloads=[load], **values))
    return spec


@dataclass(frozen=True)
class Case:
    """A disk, a load and a scheduler, whose space is searched in full and in part."""

    disk: str
    load: str
    scheduler: str


def regret(part: float) -> None:
    """Compares the best of a search with the best that there is."""
    losses = []
    for number, case in enumerate(Case(d, w, s) for d in DISKS for w in LOADS for s in SPACES):
        spec = _spec(case.disk, case.load, schedulers=[case.scheduler], seed=number)
        prepared = prepare(TuningRequest(spec, None, vary=SPACES[case.scheduler]))
        size = prepared.space.size
        with opened(prepared.on_model) as session:
            whole = ModelTrials(session, prepared.on_model, prepared.target.default)
            every = search(prepared.space, whole, trials=size, seed=0, progressed=_no_progress)
            some = ModelTrials(session, prepared.on_model, prepared.target.default)
            trials = max(8, round(part * size))
            found = search(
                prepared.space,
                some,
                trials=trials,
                seed=derive_seed(number, "bench"),
                progressed=_no_progress,
            )
        best, reached = best_of(every, whole), best_of(found, some)
        if best is None or reached is None:
            raise SystemExit(f"{case}: no trial ran to its end")
        loss = best.score(whole.dimensions) - reached.score(some.dimensions)
        losses.append(loss)
        _say(
            f"{case.disk} {case.load} {case.scheduler}: {len(found)} of {size} candidates, "
            f"{some.runs}/{whole.runs} runs, best {best.score(whole.dimensions):+.4f}, regret {loss:.4f}",
        )
    small = sum(loss <= 0.01 for loss in losses)
    _say(f"regret at most 1 % in {small} of {len(losses)}; largest {max(losses):.4f}")


def false_gains(number: int, directory: str | None, budget: str) -> None:
    """Confirms candidates that have no effect; none should be recommended."""
    recommended = 0
    for seed in range(number):
        if directory is None:
            spec = _spec(NOISY, "mixed-70-30", seed=seed, runtime="1s", budget="20blocks")
            request, without_effect = TuningRequest(spec, None), IDLE_ON_MODELS
        else:
            spec = _spec(directory, "random-read-4k-qd1", seed=seed, budget=budget)
            request, without_effect = TuningRequest(spec, NOISY), IDLE_ON_DISKS
        prepared = prepare(request)
        default = prepared.target.default.name
        if directory is not None and default != "mq-deadline":
            raise SystemExit(f"{directory} is on a disk under {default}; set it to mq-deadline before")
        idle = [Trial(place, chosen(default, values)) for place, values in enumerate(without_effect)]
        with Store.opened("sqlite://") as store:
            found = confirmed(request, prepared, idle, store, Silent())
        recommended += found.recommendation is not None
        if directory is not None:
            label = "nothing" if found.recommendation is None else found.recommendation.choice.label
            _say(f"tuning {seed + 1} recommends {label}")
    _say(f"recommended in {recommended} of {number} tunings of candidates without effect")


def coverage(number: int, directory: str | None, profile: str | None, budget: str, again_blocks: int) -> None:
    """Measures gains again with other seeds and so many blocks."""
    target, budget = (NOISY, "20blocks") if directory is None else (directory, budget)
    covered = stated = 0
    for seed in range(number):
        spec = _spec(target, "reader-beside-writers", seed=seed, runtime="1s", budget=budget)
        request = TuningRequest(spec, None if profile is None else f"sim:{profile}", trials=24)
        with Store.opened("sqlite://") as store:
            found = tune(request, store, Silent())
            if found.recommendation is None:
                continue
            (gain,) = found.recommendation.gains
            choices = [found.default, found.recommendation.choice]
            later = spec.with_schedulers(choices).model_copy(
                update={
                    "seed": derive_seed(seed, "later"),
                    "stopping": "fixed",
                    "blocks": again_blocks,
                    "budget_ns": None,
                    "budget_blocks": None,
                }
            )
            analysis = analyse(compare(later, store, Silent()))
        (again,) = against_default(found.default, found.recommendation.choice, analysis)
        stated += 1
        covered += (gain.ci_low or 0) <= again.ratio <= (gain.ci_high or float("inf"))
        _say(
            f"{found.recommendation.choice.label}: {gain.ratio:.3f} [{gain.ci_low:.3f}, {gain.ci_high:.3f}], "
            f"again {again.ratio:.3f}",
        )
    _say(f"the interval contains the gain measured again in {covered} of {stated} (of {number} tunings)")


def speed(trials: int) -> None:
    """Times a search."""
    spec = _spec("sim:ssd-sata", "mixed-70-30")
    prepared = prepare(TuningRequest(spec, None))
    with opened(prepared.on_model) as session:
        model = ModelTrials(session, prepared.on_model, prepared.target.default)
        begun = time.monotonic()
        found = search(prepared.space, model, trials=trials, seed=1, progressed=_no_progress)
    _say(f"{len(found)} trials, {model.runs} runs in {time.monotonic() - begun:.0f} s")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _no_progress(_done: int, _best: Trial | None) -> None:
    pass


def main() -> int:
    """Runs one of the measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["regret", "false-gains", "coverage", "speed"])
    parser.add_argument("--part", type=float, default=0.1, help="part of the space that is tried (0.1)")
    parser.add_argument("--number", type=int, default=20, help="tunings (20)")
    parser.add_argument("--directory", help="of false-gains and coverage: a real disk's")
    parser.add_argument("--profile", help="of coverage there: its model")
    parser.add_argument("--budget", default="30s", help="of each tuning there (30s)")
    parser.add_argument("--again-blocks", type=int, default=60, help="of coverage, for a gain again (60)")
    parser.add_argument("--trials", type=int, default=1000, help="trials that are timed (1000)")
    options = parser.parse_args()
    if options.what == "coverage" and (options.directory is None) != (options.profile is None):
        parser.error("on a disk, coverage takes --directory and --profile")
    measures: dict[str, Callable[[], None]] = {
        "regret": lambda: regret(options.part),
        "false-gains": lambda: false_gains(options.number, options.directory, options.budget),
        "coverage": lambda: coverage(
            options.number, options.directory, options.profile, options.budget, options.again_blocks
        ),
        "speed": lambda: speed(options.trials),
    }
    measures[options.what]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
