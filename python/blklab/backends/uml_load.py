"""Checks whether a guest's load generator supports a workload."""

from __future__ import annotations

from collections.abc import Callable

from blklab.errors import JobFileError
from blklab.spec.guest import GuestOptions
from blklab.spec.workloads import Job, Workload

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


def check_load(workload: Workload, guest: GuestOptions) -> list[str]:
    """Makes sure that the guest can generate a workload's load.

    Returns:
        Deviations from the job file, as remarks for the user.

    Raises:
        JobFileError: for an option that the guest's own generator does not support, or one that would stop
            the guest's clock.
    """
    if guest.generator == "blkguest":
        workload.refuse_host_only(
            "blklab's own load generator", "leave it out, or let fio make the load: --generator fio"
        )
        return _remarks(workload)
    if guest.time == "virtual":
        _refuse_polling(workload)
    return []


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
