"""The experiments: all tests once as printed, again in randomised blocks, and readers beside writers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blklab.labs.studies.iozone_raid10.set_up import IozoneSetUp
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.protocol import NamedExperiment
from blklab.labs.studies.replication.specs import study_spec
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.simulator.benchmark_emulation import IOZONE_TESTS, iozone_job_file
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.guest import guest_options
from blklab.spec.workloads import Workload, parse_workload

PRINTED = "printed"
REPEATED = "repeated"
CONTRAST = "contrast"
SHALLOW = "contrast-shallow"

STDIO_TESTS = tuple(test for test in IOZONE_TESTS if test.startswith("f"))
"""Tests through the C library, and so through the page cache whatever the others do."""
DIRECT_TESTS = tuple(test for test in IOZONE_TESTS if test not in STDIO_TESTS)
"""Tests past the page cache (iozone's ``-I``), as the published rates show; see the study's README."""


def experiments(options: StudyOptions, folder: StudyFolder) -> Sequence[NamedExperiment]:
    """Lists the experiments, in order."""
    set_up = folder.set_up(IozoneSetUp)
    size = set_up.file_bytes(options)
    workloads = [
        one for record in set_up.iozone.records_kib.under(options) for one in _workloads(record, size)
    ]
    return [
        NamedExperiment(
            PRINTED,
            "All tests, as printed: once, one scheduler after another",
            _spec(options, set_up, workloads, blocks=1, as_printed=True),
        ),
        NamedExperiment(
            REPEATED,
            "All tests again, in randomised blocks",
            _spec(options, set_up, workloads, blocks=set_up.iozone.blocks.under(options)),
        ),
        *_contrasts(options, folder, set_up, size),
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
    options: StudyOptions, folder: StudyFolder, set_up: IozoneSetUp, file_bytes: int
) -> Iterator[NamedExperiment]:
    part = set_up.contrast
    cases = [(CONTRAST, "", part.depth, part.blocks.under(options))]
    if options.backend != "host":
        cases.append(
            (SHALLOW, ", which leave tags of the disks free", part.shallow_depth, part.shallow_blocks)
        )
    for name, remark, depth, blocks in cases:
        workload = folder.workload(
            "contrast.fio", runtime=part.runtime.under(options), size=file_bytes, depth=depth
        )
        yield NamedExperiment(
            name,
            f"Random readers beside writers on the same disks{remark}",
            _spec(options, set_up, [workload], blocks=blocks, sim_schedulers=part.sim_schedulers),
        )


def _spec(
    options: StudyOptions,
    set_up: IozoneSetUp,
    workloads: list[Workload],
    *,
    blocks: int,
    as_printed: bool = False,
    sim_schedulers: list[str] | None = None,
) -> ExperimentSpec:
    targets = {
        "sim": set_up.sim.target,
        "uml": set_up.uml.target,
        "host": options.directory if options.directory_named else set_up.host.target,
    }
    guest = None
    schedulers: list[str] = []
    if options.backend == "uml":
        guest = guest_options({"filesystem": set_up.uml.filesystem, "memory": set_up.uml.memory})
        part = set_up.uml
        schedulers = part.legacy_schedulers if options.on_legacy_kernel else part.schedulers
    elif options.backend == "sim":
        schedulers = sim_schedulers or set_up.sim.schedulers
    return study_spec(
        options,
        targets[options.backend],
        schedulers,
        workloads,
        blocks=blocks,
        as_printed=as_printed,
        guest=guest,
    )
