"""The processors of published studies in models."""

from __future__ import annotations

from blklab.spec.machines import ZERO_CPU_TIME, Machine, load_machine
from blklab.spec.targets import ModelTarget, parse_target


def processors_of_study(target: str) -> Machine | None:
    """The cost table for a study's experiments; None on hosts, which have their own.

    Computing takes no time: no study says what it cost on its machine, and their disks are slow beside any
    processor.
    """
    return load_machine(ZERO_CPU_TIME) if isinstance(parse_target(target), ModelTarget) else None
