"""The cells for blk-mq and its schedulers on Linux 4.19 and 4.20, which have both block layers.

The simulator follows 6.1, so a difference here is one between releases or a mistake, and the limits need
not hold. Only kyber is simulated as it was: its heuristic was replaced in 4.20.
"""

from __future__ import annotations

import dataclasses

from blklab.labs.fidelity.cells import FidelityCell
from blklab.labs.fidelity.matrix import matrix

LATER_TUNABLES = frozenset({"async_depth", "prio_aging_expire"})
"""Tunables of mq-deadline that came with 5.14 and 5.15."""
FIRST_KYBER = "kyber-4.12"
"""The simulator's name of kyber before 4.20."""


def early_blk_mq_matrix() -> list[FidelityCell]:
    """The cells of the usual matrix whose tunables these releases have."""
    return [_as_then(cell) for cell in matrix() if LATER_TUNABLES.isdisjoint(cell.tunables)]


def _as_then(cell: FidelityCell) -> FidelityCell:
    return dataclasses.replace(cell, simulated_as=FIRST_KYBER) if cell.scheduler == "kyber" else cell
