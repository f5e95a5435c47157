"""Sentences on how a command was run."""

from __future__ import annotations

from blklab.spec.workloads import Workload


def command_sentence(workload: Workload) -> str | None:
    """The state of the page cache and the load beside a command; None for a job file."""
    if workload.command is None:
        return None
    state = (
        "cold: its file system was unmounted and mounted again before each run"
        if workload.command.cold
        else "warm: each run directly followed another one"
    )
    beside = (
        ""
        if workload.beside is None
        else f"; beside {workload.beside.name}, whose throughput and latencies are given"
    )
    return f"{state}{beside}"
