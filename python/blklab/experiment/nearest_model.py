"""The modelled disk nearest to a real one, and its answer to the same question.

The simulator answers within seconds, without root and without noise. Its answer stands for the model, never
for the disk: it is neither stored nor mixed with the disk's figures.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from blklab.errors import BlklabError
from blklab.experiment.blocks import NullRunObserver
from blklab.experiment.limited_simulations import BudgetExceededError, LimitedSimulations
from blklab.experiment.pipeline import compare
from blklab.linux.disks.resolution import resolve
from blklab.linux.scratch.space import Announce
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import DiskDescription
from blklab.records.store import Store
from blklab.report.summary.model_answer import ModelAnswer, model_answer
from blklab.spec.atlas import find_drive
from blklab.spec.drive_classes import has_head
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.workloads import Workload

_DEFAULT = "sim:ssd-sata"
_IN_MEMORY = "sqlite://"

MODEL_BLOCKS = 12
"""At most so many blocks: a model that needs more is as undecided as the disk."""
MODEL_EVENTS = 100_000_000
"""The answer is dropped if it takes more events, so that it never delays a report for long."""
MODEL_EVENTS_OF_A_RUN = 12_000_000
"""Of one run: three simulated seconds of a fast disk are 4 million. They take 1 to 15 s."""
MODEL_TIME_NS = 60_000_000_000
"""The answer is dropped if it takes longer, as it may on a slow and busy machine."""
MOST_SIMULATED_NS = 3_000_000_000
"""Longest simulated run; a noiseless model gains little from longer ones."""


def nearest_model_beneath(path: Path) -> str:
    """The nearest modelled disk (``sim:…``) to the first disk beneath a path.

    Elsewhere than on Linux, and where the disk cannot be found, it is SATA flash.
    """
    try:
        leaf = resolve(str(path)).leaves[0]
    except (BlklabError, OSError):
        return _DEFAULT
    return nearest_model(leaf.name, rotational=leaf.rotational, drive=leaf.model)


def nearest_model(name: str, *, rotational: bool | None, drive: str = "") -> str:
    """The nearest modelled disk: the drive's own entry in the atlas, else rotating, NVMe or SATA flash.

    Args:
        name: The kernel's name of the disk, e.g. ``nvme0n1``.
        rotational: As sysfs has it; None if unknown.
        drive: The drive's model as sysfs has it; empty if it has none.
    """
    if (own := find_drive(drive)) is not None:
        return own.target
    if name.startswith("nvme"):
        return "sim:nvme-tlc"
    return "sim:hdd-7200" if has_head(name, rotational=rotational) else _DEFAULT


def answer_of_nearest_model(record: ExperimentRecord, announce: Announce) -> ModelAnswer | None:
    """Asks the nearest modelled disk what an experiment on a real disk asked.

    Workloads, schedulers, confidence and margin are the same. If the nearest model is undecided as well, SATA
    flash is asked too, and its answer is taken if it is settled.

    Args:
        record: An experiment on the disks of this machine.
        announce: Told which model is asked, and why there is no answer from it.

    Returns:
        The answer; None if the experiment did not run on a real disk, if the simulator lacks one of the
        schedulers, as it does those of modules, or part of a workload, or if it takes more than
        `MODEL_EVENTS`.
    """
    if record.target.backend != "host" or not record.target.disks:
        return None
    if any(choice.kernel is not None for choice in record.spec.schedulers):
        return None
    disk = record.target.disks[0]
    deadline_ns = time.monotonic_ns() + MODEL_TIME_NS
    answers: list[ModelAnswer] = []
    for model in dict.fromkeys(_models_of(disk)):
        announce(f"asking {model}, a model of such a disk, the same question")
        answer = _ask(model, record.spec, deadline_ns, announce)
        if answer is not None:
            if answer.is_settled:
                nearest = answers[0].document.target if answers else None
                return replace(answer, undecided_nearest=nearest)
            answers.append(answer)
    return answers[0] if answers else None


def _models_of(disk: DiskDescription) -> list[str]:
    """The models to ask, in turn."""
    nearest = nearest_model(disk.name, rotational=disk.rotational, drive=disk.model)
    return list(dict.fromkeys((nearest, _DEFAULT)))


def _ask(model: str, spec: ExperimentSpec, deadline_ns: int, announce: Announce) -> ModelAnswer | None:
    if (endless := _as_long_as_the_disk(spec.workloads)) is not None:
        announce(
            f"no answer from {model}: {endless} has neither a size nor a runtime, and would read all of it"
        )
        return None
    runtime_ns = MOST_SIMULATED_NS if spec.runtime_ns is None else min(spec.runtime_ns, MOST_SIMULATED_NS)
    asked = spec.model_copy(
        update={
            "target": model,
            # Sweeps are settled: their cells are among the schedulers.
            "sweeps": [],
            "stopping": "settled",
            "order": "randomised",
            "blocks": None,
            "budget_blocks": MODEL_BLOCKS,
            "budget_ns": None,
            "runtime_ns": runtime_ns,
            "allow_writes": False,
            "rate_window_ns": None,
        }
    )
    workers = LimitedSimulations(
        most_events=MODEL_EVENTS, most_events_of_a_run=MODEL_EVENTS_OF_A_RUN, deadline_ns=deadline_ns
    )
    try:
        with Store.opened(_IN_MEMORY) as store:
            found = compare(asked, store, NullRunObserver(), workers=workers)
    except BudgetExceededError as error:
        announce(f"no answer from {model}: {error}")
        return None
    except BlklabError as error:
        announce(f"no answer from {model}: {error.message}")
        return None
    return model_answer(found)


def _as_long_as_the_disk(workloads: Sequence[Workload]) -> str | None:
    """A job whose length is that of its disk: a test file on a real one, a terabyte on a modelled one."""
    for workload in workloads:
        for job in workload.jobs:
            lengths = (job.size_bytes, job.io_size_bytes, job.number_ios, job.runtime_ns)
            if not workload.replays and not job.time_based and lengths == (None,) * len(lengths):
                return f"job {job.name} of {workload.name}"
    return None
