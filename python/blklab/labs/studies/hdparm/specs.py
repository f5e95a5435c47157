"""Builds the experiments of both hdparm studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blklab.labs.studies.hdparm.sizes import TimingTests
from blklab.labs.studies.published.processors import processors_of_study
from blklab.labs.studies.replication.options import StudyOptions
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.sweeps import Sweep
from blklab.spec.workloads import Workload


@dataclass(frozen=True)
class ExperimentBuilder:
    """Builds experiments that share a backend and queue attributes."""

    options: StudyOptions
    tests: TimingTests
    queue: Mapping[str, str]

    def target(self, device: str) -> str:
        """The modelled device; on the host always a loop device over a file."""
        if self.options.backend == "host":
            return f"loop:{self.tests.host_scratch},dir={self.options.directory}"
        return f"{self.options.backend}:{device}"

    def spec(
        self,
        target: str,
        workloads: Sequence[Workload],
        choices: Sequence[SchedulerChoice],
        *,
        blocks: int,
        printed: bool = False,
        queue: Mapping[str, str] | None = None,
        sweep: Sweep | None = None,
    ) -> ExperimentSpec:
        """Builds one experiment.

        Args:
            target: What to test.
            workloads: What to run.
            choices: The schedulers.
            blocks: Number of blocks.
            printed: Run one scheduler after another instead of randomised blocks.
            queue: Attributes in addition to the shared ones.
            sweep: Tunables to cross; its cells are schedulers too.
        """
        return ExperimentSpec(
            target=target,
            schedulers=list(choices),
            workloads=list(workloads),
            blocks=blocks,
            seed=self.options.seed,
            arrangement="fixed",
            machine=processors_of_study(target),
            queue={**self.queue, **(queue or {})},
            order="by-scheduler" if printed else "randomised",
            sweeps=[sweep] if sweep else [],
        )
