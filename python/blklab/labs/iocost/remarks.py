"""Notes for the reader of the parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from blklab.labs.calibration.disk.ground import DiskFacts
from blklab.labs.iocost.document import Sweep
from blklab.labs.iocost.estimates import Estimate
from blklab.labs.iocost.sweep import SWEPT_VRATES
from blklab.spec.targets import LoopTarget, Target

_SMALL_SHARE = 0.1
"""Of a disk with an arm: I/O within less of it is not random over the disk."""
_BAD_MODEL = 0.1
"""Difference of a coefficient from which on the model of the disk is not the disk."""

_MOST_OF_IT = 0.9
"""Part of the bandwidth without io.cost that some vrate should reach."""


def remarks_on_disk(target: Target, facts: DiskFacts) -> list[str]:
    """Notes on the disk and on how it was reached."""
    remarks = [*facts.remarks]
    share = facts.space_bytes / facts.capacity_bytes
    if facts.rotational and share < _SMALL_SHARE:
        remarks.append(
            f"random I/O stayed within {100 * share:.2g} % of the disk: if it has an arm, the random"
            " coefficients are too high for the whole (--file-size)"
        )
    if isinstance(target, LoopTarget):
        remarks.append("measured on a scratch loop device: put the disk's own number in place of MAJ:MIN")
    return remarks


def remarks_on_profile(disk: Sequence[Estimate], profile: Sequence[Estimate]) -> list[str]:
    """Notes on the coefficient that a model of the disk gets most wrong."""
    off = {one.name: math.log(other.value / one.value) for one, other in zip(disk, profile, strict=True)}
    worst = max(off, key=lambda name: abs(off[name]))
    if abs(off[worst]) < _BAD_MODEL:
        return []
    wrong = f"the profile is off by {100 * math.expm1(off[worst]):+.0f} % in {worst}"
    return [f"{wrong}: it is of another disk, or needs another calibration, so do not rely on the sweep"]


def remarks_on_sweep(sweep: Sweep) -> list[str]:
    """Notes on a sweep without an end, or in which io.cost takes bandwidth at every vrate."""
    if sweep.range is None:
        return ["no vrate protects the group on this model, so there is no range"]
    remarks = []
    if sweep.range.saturation.value == SWEPT_VRATES[-1]:
        remarks.append(f"bandwidth may still grow beyond {SWEPT_VRATES[-1]} %, the highest vrate swept")
    most = max(one.expected.bytes_per_second for one in sweep.vrates)
    part = most / sweep.without.bytes_per_second
    if part < _MOST_OF_IT:
        remarks.append(
            f"under io.cost the groups get {100 * part:.0f} % of their bandwidth without it at most"
        )
    return remarks
