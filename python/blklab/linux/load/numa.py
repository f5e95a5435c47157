"""Nodes of memory that a job file names: fio refuses to run with one that the machine does not have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from blklab.linux.machine.kernel_files import text_or_empty
from blklab.spec.workloads import Job, Workload

NUMA_OPTIONS = ("numa_cpu_nodes", "numa_mem_policy")
_ONLINE = Path("/sys/devices/system/node/online")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def nodes_in(text: str) -> set[int]:
    """The numbers in a list of ranges such as ``0-1,4``."""
    found = set()
    for match in _RANGE.finditer(text):
        found |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return found


def missing_nodes(job: Job) -> set[int]:
    """Nodes that a job names and this machine does not have."""
    named = set()
    for option in NUMA_OPTIONS:
        named |= nodes_in(job.options.get(option, ""))
    return named - (nodes_in(text_or_empty(_ONLINE)) or {0})


def numa_warnings(workloads: Iterable[Workload]) -> list[str]:
    """Warnings of options that are left out for want of nodes, with file and line."""
    warnings = []
    for workload in workloads:
        for job in workload.jobs:
            missing = ", ".join(map(str, sorted(missing_nodes(job))))
            if missing:
                line = next(job.option_lines[option] for option in NUMA_OPTIONS if option in job.options)
                warnings.append(
                    f"{workload.source}:{line}: job {job.name} runs on any node: "
                    f"this machine has no node {missing}"
                )
    return warnings
