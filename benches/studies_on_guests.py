"""Compares a study's runs in guests with the same runs on the simulator, I/O by I/O.

``blklab study run --on sim`` has sizes and schedulers of its own, so that it does not show whether a real
scheduler and the simulated one agree. Here the experiments for guests run on both. The simulator has no file
systems, so files lie side by side on its disks. As any user::

    python benches/studies_on_guests.py ionice --kernel old
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from blklab.experiment.blocks import NullRunObserver
from blklab.experiment.pipeline import compare
from blklab.guests.kernels.store import find
from blklab.labs.studies import replicable_study, replicable_study_names
from blklab.labs.studies.replication.options import StudyKernel, StudyOptions
from blklab.labs.studies.replication.run import experiments_of
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.records.store import Store
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.guest import GuestOptions

RunKey = tuple[str, str, int]
"""Scheduler, workload and block."""
Jobs = list[tuple[int, int]]
"""I/Os and runtime in nanoseconds of every job."""


@dataclass
class Agreement:
    """The runs of one scheduler in one experiment."""

    runs: int = 0
    same: int = 0
    """Runs in which every job does the same number of I/Os in the same time on both."""
    share: float = 0.0
    """Largest difference of a job's share of the I/Os a second, as a fraction."""
    rate: float = 0.0
    """Largest relative difference of a job's I/Os a second."""

    def add(self, guest: Jobs, simulator: Jobs) -> None:
        """Counts a run."""
        self.runs += 1
        self.same += guest == simulator
        real, modelled = ([ios / runtime for ios, runtime in jobs] for jobs in (guest, simulator))
        for one, other in zip(real, modelled, strict=True):
            self.rate = max(self.rate, abs(other / one - 1))
            self.share = max(self.share, abs(one / sum(real) - other / sum(modelled)))


def on_simulator(spec: ExperimentSpec, *, chunk: str) -> ExperimentSpec:
    """The same experiment on the simulator, whose arrays need a chunk size."""
    target = spec.target.replace("uml:", "sim:", 1)
    if "raid=" in target and "chunk=" not in target:
        target += f",chunk={chunk}"
    choices = [choice.model_copy(update={"kernel": None}) for choice in spec.schedulers]
    return spec.model_copy(update={"target": target, "schedulers": choices, "guest": GuestOptions()})


def jobs_of(record: ExperimentRecord) -> Iterator[tuple[RunKey, Jobs]]:
    """The jobs of every run."""
    for sample in record.samples:
        if sample.status != "ok":
            raise SystemExit(f"{sample.cell.scheduler}, {sample.cell.workload}: {sample.error}")
        yield (sample.cell.scheduler, sample.cell.workload, sample.cell.block), _jobs(sample)


def _jobs(sample: RunSample) -> Jobs:
    return [(sum(direction.ios for direction in job.directions), job.runtime_ns) for job in sample.jobs]


def main() -> None:
    """Prints one line per experiment and scheduler."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", choices=replicable_study_names())
    parser.add_argument("--kernel", required=True, help="a guest kernel, as `blklab kernel list` names it")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer cases")
    parser.add_argument("--chunk", default="64k", help="chunk size of the simulator's arrays")
    args = parser.parse_args()
    kernel = StudyKernel(args.kernel, "cfq" in find(args.kernel).schedulers)
    options = StudyOptions("uml", quick=args.quick, kernel=kernel)
    experiments = experiments_of(replicable_study(args.study), options, StudyFolder(args.study))
    with Store.opened("sqlite://") as store:
        for experiment in experiments:
            guest = dict(jobs_of(compare(experiment.spec, store, NullRunObserver())))
            twin = on_simulator(experiment.spec, chunk=args.chunk)
            simulator = dict(jobs_of(compare(twin, store, NullRunObserver())))
            found: dict[str, Agreement] = {}
            for key, jobs in guest.items():
                found.setdefault(key[0], Agreement()).add(jobs, simulator[key])
            for scheduler, one in found.items():
                sys.stdout.write(
                    f"{experiment.name}, {scheduler}: {one.same} of {one.runs} runs the same; shares within "
                    f"{100 * one.share:.1f} points, rates within {100 * one.rate:.1f} %\n"
                )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
