"""The length of an experiment: a fixed number of blocks, or a budget in time or blocks."""

from __future__ import annotations

import re
from typing import Any

from blklab.errors import SpecError
from blklab.quantities.units import exact_duration, parse_budget_ns
from blklab.spec.options import Form, Use

MAX_BLOCKS = 100_000
LEAST_ADVISED_NS = 60 * 1_000_000_000
"""The shortest budget of time that is advised: it also pays for setting up and for the pilots."""
DEFAULT_BUDGET_BLOCKS = 18
"""The default budget: a fifth more than the fifteen runs of a careful fixed design."""

NO_LIMITS: dict[str, Any] = {"blocks": None, "budget_ns": None, "budget_blocks": None}


def parse_budget(text: str) -> dict[str, int]:
    """Reads a budget: a time such as ``5m``, or a number of blocks such as ``30blocks``.

    Returns:
        The field of `ExperimentSpec` that it sets (``budget_ns`` or ``budget_blocks``) with its value.

    Raises:
        SpecError: if it is neither.
    """
    counted = re.fullmatch(r"\s*(\d+)\s*blocks?\s*", text)
    if counted is None:
        return {"budget_ns": parse_budget_ns(text)}
    blocks = int(counted[1])
    if not 1 <= blocks <= MAX_BLOCKS:
        raise SpecError(f"budget: {blocks} blocks, but 1 to {MAX_BLOCKS} are possible")
    return {"budget_blocks": blocks}


def limits(blocks: int | None, budget: str | None) -> dict[str, Any]:
    """The three fields of `ExperimentSpec` that limit its length; `NO_LIMITS` if neither is given.

    Raises:
        SpecError: if both blocks and a budget are given, or the budget cannot be read.
    """
    if blocks is not None and budget is not None:
        raise SpecError(
            "blocks and budget cannot both be given",
            hint="blocks fixes their number; a budget limits how many are added to settle every question",
        )
    if budget is None:
        return NO_LIMITS | {"blocks": blocks}
    return NO_LIMITS | parse_budget(budget)


def _words(fields: dict[str, int]) -> list[str]:
    if "budget_ns" in fields:
        return [exact_duration(fields["budget_ns"])]
    return [f"{fields['budget_blocks']}blocks"]


BUDGET = Form(Use.ONCE, _words, parse_budget, in_file=str)
