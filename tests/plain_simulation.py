"""Simulations in which computing costs nothing and nothing is left to chance, by default."""

from __future__ import annotations

from typing import Any

import blklab

PLAIN = {"costs": "zero-cpu-time", "arrangement": "fixed"}


def simulate(*arguments: Any, **given: Any) -> blklab.SimulationResult:
    """`blklab.simulate` under these conditions."""
    return blklab.simulate(*arguments, **{**PLAIN, **given})


def plain_request(*arguments: Any, **given: Any) -> blklab.SimulationRequest:
    """A request under these conditions."""
    return blklab.SimulationRequest(*arguments, **{**PLAIN, **given})
