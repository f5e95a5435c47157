"""A kind of load in guests: its interface with the guest's own generator behind it, and fio."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from blklab.errors import JobFileError
from blklab.guests.guest import GuestResult
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.linux.load.fio import JOB_FILE, OUTPUT_FILE, expected_runtime_ns, job_file_text
from blklab.linux.load.fio_output import FioReport, read_fio_report
from blklab.linux.scratch.layout import regions_in_numbered_files, regions_on_device
from blklab.linux.scratch.space import Announce
from blklab.records.samples import JobSample
from blklab.spec.guest import GuestOptions
from blklab.spec.plan import Cell
from blklab.spec.workloads import Job, Workload

_DISK = "/dev/blklab"
"""Link in the guest to the modelled disk, for every driver."""
_DATA = "/mnt"
"""Mount point of the jobs' file system in the guest."""
_GROUPS = "/sys/fs/cgroup"
_FIO_LOG = "fio.log"
SIMULATED_RESERVE_NS = 3_600_000_000_000
"""Virtual time beyond its jobs' own runtimes after which a run is aborted."""
_USUAL_LIMIT_NS = 24 * SIMULATED_RESERVE_NS
"""Limit in virtual time for jobs that end after a number of I/Os."""
_OFF = ("0", "no", "false")
_ASYNCHRONOUS = ("libaio", "io_uring", "posixaio")


def _switched_on(job: Job, option: str) -> bool:
    return job.options.get(option, "0").lower() not in _OFF


_POLLS: dict[str, Callable[[Job], bool]] = {
    "hipri": lambda job: job.ioengine == "io_uring" and _switched_on(job, "hipri"),
    "sqthread_poll": lambda job: job.ioengine == "io_uring" and _switched_on(job, "sqthread_poll"),
    "iodepth_batch_complete_min": lambda job: _never_waits(job, "iodepth_batch_complete_min"),
    "iodepth_batch_complete": lambda job: _never_waits(job, "iodepth_batch_complete"),
}
"""Options with which fio polls for completions without sleeping or reading the clock."""


class GuestLoad:
    """The making of a load in guests; here by the guest's own generator, from job files and recordings."""

    wanted: tuple[str, ...] = ()
    """Files that the guest leaves behind for `read`."""

    def __init__(self, guest: GuestOptions, runtime_ns: Callable[[Workload], int | None]) -> None:
        """Takes the guests' options, and a function that gives the runtime of time-based jobs."""
        self.guest = guest
        self._runtime_ns = runtime_ns

    def check(self, workloads: Sequence[Workload], kernels: Sequence[KernelBuild]) -> list[str]:  # noqa: ARG002 - for others
        """Makes sure that guests of these kernels can make the loads.

        Returns:
            Deviations from the workloads, as remarks for the user.

        Raises:
            BlklabError: for the first thing that is missing, or that a guest does not support.
        """
        return [remark for workload in workloads for remark in check_own_generator(workload)]

    def job_files(self, workload: Workload) -> list[Workload]:
        """The job files that the generator runs for it."""
        return [workload]

    def request(self, workload: Workload) -> dict[str, Any]:
        """Its part of the guest's request."""
        return {"jobs": {"text": workload.text, "source": workload.source}}

    def longest_ns(self, workload: Workload) -> int:
        """The longest time that the guest's clock may count."""
        expected_ns = expected_runtime_ns(workload, self._runtime_ns(workload))
        return _USUAL_LIMIT_NS if expected_ns is None else expected_ns + SIMULATED_RESERVE_NS

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Does once what must come before all runs.

        Raises:
            BlklabError: if that fails.
        """

    def programs(self) -> Mapping[str, Path]:
        """More programs of this machine for the guest, by their path there."""
        return {}

    def files(self, workload: Workload) -> Mapping[str, Path]:  # noqa: ARG002 - for others
        """The same with the files of a prepared workload."""
        return self.programs()

    def texts(self, cell: Cell) -> dict[str, str]:  # noqa: ARG002 - for others
        """Text files for the guest."""
        return {}

    def steps(self, workload: Workload) -> list[str]:  # noqa: ARG002 - for others
        """Steps before the guest, for people."""
        return []

    def engine(self, workload: Workload) -> dict[str, Any]:  # noqa: ARG002 - for others
        """Facts on the run, for its sample, beside those of the answer."""
        return {}

    def read(self, workload: Workload, answer: Mapping[str, Any], end: GuestResult) -> FioReport:  # noqa: ARG002 - for others
        """Jobs, error and warnings of a guest that ran the load.

        Raises:
            KeyError, TypeError, ValidationError: if the answer is not as expected.
        """
        return FioReport(job_samples(answer), None, [])


class GuestFio(GuestLoad):
    """Job files, whose load this machine's fio makes in the guest."""

    wanted = (OUTPUT_FILE, _FIO_LOG)

    def __init__(
        self, guest: GuestOptions, runtime_ns: Callable[[Workload], int | None], size_bytes: int
    ) -> None:
        """Likewise, with the size of the disk."""
        super().__init__(guest, runtime_ns)
        self._size_bytes = size_bytes

    def check(self, workloads: Sequence[Workload], kernels: Sequence[KernelBuild]) -> list[str]:  # noqa: ARG002 - for others
        """Refuses options that would stop the guest's clock."""
        if self.guest.time == "virtual":
            for workload in workloads:
                _refuse_polling(workload)
        return []

    def texts(self, cell: Cell) -> dict[str, str]:
        """The job file as fio takes it."""
        workload = cell.workload
        joins = {job.cgroup: f"{_GROUPS}/{job.cgroup}/cgroup.procs" for job in workload.jobs if job.cgroup}
        regions = (
            regions_on_device(workload, _DISK, self._size_bytes)
            if self.guest.filesystem is None
            else regions_in_numbered_files(workload, _DATA, self._size_bytes)
        )
        text = job_file_text(
            workload,
            regions,
            seed=cell.key.seed,
            runtime_ns=self._runtime_ns(workload),
            group_joins=joins,
        )
        return {JOB_FILE: text}

    def read(self, workload: Workload, answer: Mapping[str, Any], end: GuestResult) -> FioReport:
        """Fio's report."""
        return read_fio_report(
            end.files.get(OUTPUT_FILE, ""),
            messages=end.files.get(_FIO_LOG, ""),
            returncode=answer["fio"]["exit_code"],
            workload=workload,
        )


def job_samples(answer: Mapping[str, Any]) -> list[JobSample]:
    """The samples of a guest's own generator."""
    return [JobSample.model_validate(job) for job in answer["jobs"]]


def check_own_generator(workload: Workload) -> list[str]:
    """Makes sure that the guest's own generator knows all options of a job file.

    Returns:
        Deviations from the job file, as remarks for the user.

    Raises:
        JobFileError: for the first option that it does not know.
    """
    workload.refuse_host_only(
        "blklab's own load generator", "leave it out, or let fio make the load: --generator fio"
    )
    for job in workload.jobs:
        if job.options.get("ioengine") == "mmap":
            raise JobFileError(
                "blklab's own load generator reads and writes by calls and maps no files",
                source=workload.source,
                line=job.option_lines.get("ioengine"),
                option="ioengine",
                hint="let fio make the load: --generator fio",
            )
    return _remarks(workload)


def _refuse_polling(workload: Workload) -> None:
    for job in workload.jobs:
        for option, polls in _POLLS.items():
            if polls(job):
                raise JobFileError(
                    f"with {option} fio polls for completions without sleeping, and virtual time advances "
                    "only while every task sleeps: the run would never end",
                    source=workload.source,
                    line=job.option_lines.get(option),
                    option=option,
                    hint="leave it out, or run the guest on this machine's clock: --time host",
                )


def _never_waits(job: Job, option: str) -> bool:
    return job.ioengine in _ASYNCHRONOUS and job.options.get(option, "").strip() == "0"


def _remarks(workload: Workload) -> list[str]:
    """Remarks on asynchronous I/O interfaces that the guest's own generator lacks."""
    lines = {
        (job.option_lines.get("ioengine", job.line), job.ioengine)
        for job in workload.jobs
        if job.direct and job.ioengine in ("io_uring", "posixaio")
    }
    return [
        f"{workload.source}:{line}: ioengine={engine}: the guest submits through the kernel's native "
        "asynchronous I/O, as libaio: while the queue is full a submission waits, where "
        + ("io_uring hands it to kernel threads" if engine == "io_uring" else "posixaio has a thread for it")
        for line, engine in sorted(lines)
    ]
