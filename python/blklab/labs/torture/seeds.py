"""The number of seeds, and the load of each (``torture/plan.rs`` of the guest program)."""

from __future__ import annotations

from typing import Literal

SEEDS = 100
"""Runs of each scheduler, unless another number is asked for."""

Load = Literal["mixed", "long", "equals", "bursts"]
"""Changes of everything; 45 s on a slow disk; the same with equal I/O priorities; bursts."""

_BY_REMAINDER: dict[int, Load] = {3: "bursts", 7: "equals", 11: "bursts", 15: "long"}


def draw_load(seed: int) -> Load:
    """The load of a seed."""
    return _BY_REMAINDER.get(seed % 16, "mixed")
