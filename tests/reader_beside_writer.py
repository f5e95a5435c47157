"""A load in which settings matter: a reader's latency beside a writer that fills the queue."""

from __future__ import annotations


def reader_beside_writer(*, runtime: str, size: str) -> str:
    """The text of a job file.

    Args:
        runtime: Of both jobs.
        size: Of each job's file.
    """
    return (
        "; decide-by: latency_p99\n; focus: reader\n"
        f"[global]\ndirect=1\ntime_based\nruntime={runtime}\nsize={size}\n"
        "[reader]\nrw=randread\nbs=4k\n"
        "[writer]\nrw=write\nbs=256k\nioengine=libaio\niodepth=16\n"
    )
