"""The experiments: the published order, randomised blocks, and a disk on which tuning can matter."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.labs.studies.hdparm.fifteen.set_up import BFQ, FifteenSetUp, choices, device_text, tuned_bfq
from blklab.labs.studies.hdparm.jobs import busy_disk, timing_tests
from blklab.labs.studies.hdparm.specs import ExperimentBuilder
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.protocol import NamedExperiment
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.spec.schedulers import parse_scheduler_choice

PRINTED = "as-printed"
RANDOMISED = "randomised"
BUSY_DISK = "busy-disk"


def experiments(options: StudyOptions, folder: StudyFolder) -> Sequence[NamedExperiment]:
    """Lists the experiments, in order."""
    set_up = folder.set_up(FifteenSetUp)
    builder = ExperimentBuilder(options, set_up.tests, set_up.queue)
    # Runs in a guest are too short for stalls to average out.
    target = builder.target(device_text(folder, set_up, steady=options.backend == "uml"))
    workloads, settings = timing_tests(options, set_up.tests), choices(folder, set_up)
    runs, busy = set_up.runs, set_up.busy_disk
    return [
        NamedExperiment(
            PRINTED,
            "hdparm -tT in the published order: all runs of one scheduler, then the next; the tuned bfq last",
            builder.spec(target, workloads, settings, blocks=runs.as_printed.under(options), printed=True),
        ),
        NamedExperiment(
            RANDOMISED,
            "The same in randomised blocks, each with one run of every scheduler",
            builder.spec(target, workloads, settings, blocks=runs.blocks.under(options)),
        ),
        NamedExperiment(
            BUSY_DISK,
            "bfq and the tuned bfq on a busy hard disk",
            builder.spec(
                builder.target(busy.device),
                [busy_disk(options, busy)],
                [parse_scheduler_choice(BFQ), tuned_bfq(folder)],
                blocks=busy.blocks.under(options),
                queue={"nr_requests": busy.nr_requests},
            ),
        ),
    ]
