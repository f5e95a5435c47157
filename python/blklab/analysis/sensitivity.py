"""Does the answer hinge on the marked blocks? The same analysis with and without them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sensitivity:
    """The answer without the blocks that something on the machine may have spoiled."""

    marked_runs: int
    marked_blocks: list[int]
    """Numbers, from 0."""
    status: str
    best: list[str]
    same: bool
    """Whether it is the same answer as with them."""
    text: str
