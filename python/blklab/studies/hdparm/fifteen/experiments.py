"""The experiments: the fixed order as printed, randomised blocks, and a disk on which tuning can matter."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.spec.schedulers import parse_scheduler_choice
from blklab.studies.hdparm.fifteen.set_up import BFQ, SetUp, choices, disk_text, tuned_bfq
from blklab.studies.hdparm.jobs import busy_disk, timing_tests
from blklab.studies.hdparm.specs import Bench
from blklab.studies.replication.protocol import Asked, NamedExperiment
from blklab.studies.replication.study_folder import Published

PRINTED = "as-printed"
RANDOMISED = "randomised"
BUSY_DISK = "busy-disk"


def experiments(asked: Asked, published: Published) -> Sequence[NamedExperiment]:
    """What to run, in order."""
    set_up = published.set_up(SetUp)
    bench = Bench(asked, set_up.tests, set_up.queue)
    # A guest's runs are too short for stalls to even out.
    target = bench.target(disk_text(published, set_up, steady=asked.place == "uml"))
    workloads, settings = timing_tests(asked, set_up.tests), choices(published, set_up)
    runs, busy = set_up.runs, set_up.busy_disk
    return [
        NamedExperiment(
            PRINTED,
            "hdparm -tT in the published order: all runs of a scheduler, then the next; the tuned bfq last",
            bench.spec(target, workloads, settings, blocks=runs.printed(asked), printed=True),
        ),
        NamedExperiment(
            RANDOMISED,
            "The same in randomised blocks: each with one run of every scheduler",
            bench.spec(target, workloads, settings, blocks=runs.repeated(asked)),
        ),
        NamedExperiment(
            BUSY_DISK,
            "bfq and the tuned bfq on a busy hard disk",
            bench.spec(
                bench.target(busy.device),
                [busy_disk(asked, busy)],
                [parse_scheduler_choice(BFQ), tuned_bfq(published)],
                blocks=busy.repeated(asked),
                queue={"nr_requests": busy.nr_requests},
            ),
        ),
    ]
