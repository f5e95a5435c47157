"""The experiments: all tests once as printed, again in randomised blocks, and a load with a choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blklab.simulator.benchmark_emulation import IOZONE_TESTS, iozone_job_file
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.guest import GuestOptions, guest_options
from blklab.spec.schedulers import SchedulerChoice, parse_scheduler_choices
from blklab.spec.workloads import Workload, parse_workload
from blklab.studies.iozone_raid10.set_up import SetUp
from blklab.studies.replication.protocol import Asked, NamedExperiment
from blklab.studies.replication.study_folder import Published

PRINTED = "printed"
REPEATED = "repeated"
CONTRAST = "contrast"
SHALLOW = "contrast-shallow"

STDIO_TESTS = tuple(test for test in IOZONE_TESTS if test.startswith("f"))
"""Through the C library, and so through the page cache whatever the others do."""
DIRECT_TESTS = tuple(test for test in IOZONE_TESTS if test not in STDIO_TESTS)
"""Past the page cache (iozone's ``-I``), as the published figures show; see the study's README."""


def experiments(asked: Asked, published: Published) -> Sequence[NamedExperiment]:
    """What to run, in order."""
    set_up = published.set_up(SetUp)
    size = set_up.file_bytes(asked)
    workloads = [one for record in set_up.records_kib(asked) for one in _workloads(record, size)]
    return [
        NamedExperiment(
            PRINTED,
            "All tests, as printed: once, one scheduler after another",
            _spec(asked, set_up, workloads, blocks=1, as_printed=True),
        ),
        NamedExperiment(
            REPEATED,
            "All tests again, in randomised blocks",
            _spec(asked, set_up, workloads, blocks=set_up.repeats(asked)),
        ),
        *_contrasts(asked, published, set_up, size),
    ]


def workload_name(kind: str, record_kib: int) -> str:
    """Name of the workload with the tests of a kind (``direct``, ``stdio``) at a record size."""
    return f"{kind}-{record_kib}k"


def kind_of(test: str) -> str:
    """``stdio`` for tests through the C library, ``direct`` for the others."""
    return "stdio" if test in STDIO_TESTS else "direct"


def _workloads(record_kib: int, file_bytes: int) -> Iterator[Workload]:
    for tests in (DIRECT_TESTS, STDIO_TESTS):
        kind = kind_of(tests[0])
        text = iozone_job_file(record_kib << 10, file_bytes, tests, direct=kind == "direct")
        name = workload_name(kind, record_kib)
        yield parse_workload(text, name=name, source=f"{name}.fio")


def _contrasts(
    asked: Asked, published: Published, set_up: SetUp, file_bytes: int
) -> Iterator[NamedExperiment]:
    part = set_up.contrast
    cases = [(CONTRAST, "", part.depth, set_up.contrast_repeats(asked))]
    if asked.place != "host":
        cases.append(
            (SHALLOW, ", which leave room in the disks' queues", part.shallow_depth, part.shallow_repeats)
        )
    for name, remark, depth, blocks in cases:
        workload = published.workload(
            "contrast.fio", runtime=set_up.contrast_runtime(asked), size=file_bytes, depth=depth
        )
        yield NamedExperiment(
            name,
            f"Random readers beside writers on the same disks{remark}",
            _spec(asked, set_up, [workload], blocks=blocks, sim_schedulers=part.sim_schedulers),
        )


def _spec(
    asked: Asked,
    set_up: SetUp,
    workloads: list[Workload],
    *,
    blocks: int,
    as_printed: bool = False,
    sim_schedulers: list[str] | None = None,
) -> ExperimentSpec:
    targets = {
        "sim": set_up.sim.target,
        "uml": set_up.uml.target,
        "host": asked.directory if asked.directory_named else set_up.host.target,
    }
    guest = GuestOptions()
    schedulers: list[SchedulerChoice] = []
    if asked.place == "uml":
        guest = guest_options({"filesystem": set_up.uml.filesystem, "memory": set_up.uml.memory})
        schedulers = parse_scheduler_choices(set_up.uml.schedulers)
    elif asked.place == "sim":
        schedulers = parse_scheduler_choices(sim_schedulers or set_up.sim.schedulers)
    return ExperimentSpec(
        target=targets[asked.place],
        schedulers=schedulers,
        workloads=workloads,
        blocks=blocks,
        seed=asked.seed,
        order="by-scheduler" if as_printed else "randomised",
        guest=guest,
    )
