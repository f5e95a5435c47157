"""The plan of an experiment before its first run: its size, its limit, and whether the limit can suffice."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from blklab.analysis.statistics.anytime import fewest_blocks
from blklab.analysis.statistics.switchback import fewest_rounds
from blklab.linux.load.fio import expected_runtime_ns
from blklab.spec.budget import LEAST_ADVISED_NS
from blklab.spec.experiment import ExperimentSpec

RUN_OVERHEAD_NS = 500_000_000
"""Time that a run takes beside its load."""
_SET_UP = 1.25
"""A budget also pays for preparing the disk and the files."""


@dataclass(frozen=True)
class Shortage:
    """A budget of time that ends before any answer is possible."""

    budget_ns: int
    blocks: int
    """Blocks or rounds for which it is enough; 0 if only the first fits, which is made in any case."""
    needed: int
    """Blocks without which nothing can be decided."""
    enough_ns: int
    """A budget that would do, with room for setting up."""


@dataclass(frozen=True)
class Outlook:
    """The size and the limit of an experiment."""

    schedulers: int
    workloads: int
    budget_ns: int | None
    blocks: int | None
    """Its number of blocks, or the most of them; None if only time limits it."""
    ends_when_settled: bool
    shortage: Shortage | None
    longest_ns: int | None = None
    """About the time of so many blocks, where no budget of time limits them; None if it is unknown."""


def outlook_of(spec: ExperimentSpec, in_blocks: Collection[str], *, in_real_time: bool) -> Outlook:
    """The plan of an experiment.

    Args:
        spec: With its schedulers settled.
        in_blocks: Names of the workloads that have runs in blocks; the others are switched.
        in_real_time: Whether a run takes as long as its load.
    """
    limit = spec.budget_blocks if spec.stops_when_settled else spec.blocks
    return Outlook(
        schedulers=len(spec.schedulers),
        workloads=len(spec.workloads),
        budget_ns=spec.budget_ns,
        blocks=limit,
        ends_when_settled=spec.stops_when_settled,
        shortage=_shortage(spec, in_blocks) if in_real_time else None,
        longest_ns=_longest_ns(spec, limit) if in_real_time else None,
    )


def budget_for_an_answer(spec: ExperimentSpec, loads_ns: Sequence[int]) -> int:
    """A budget of time that suffices for an answer in blocks, with room for setting up.

    Args:
        spec: With its schedulers settled.
        loads_ns: The time that each of the loads takes.
    """
    needed = fewest_blocks(_questions(spec, len(loads_ns)), 1 - spec.confidence)
    return int(needed * _block_ns(spec, loads_ns) * _SET_UP)


def shortage_of_rounds(spec: ExperimentSpec, left_ns: int) -> Shortage | None:
    """The shortage of a budget after the pilots, for switched workloads; None if the rest may suffice.

    Args:
        spec: With the slots that the pilots found.
        left_ns: Of the budget.
    """
    if spec.budget_ns is None or not spec.stops_when_settled or not spec.switched:
        return None
    slots_ns = sum(decision.slot_ns or 0 for decision in spec.switched.values())
    round_ns = int(len(spec.schedulers) * slots_ns * _SET_UP)
    # Workloads that have blocks take their part of the budget.
    share = len(spec.switched) / len(spec.workloads)
    needed = fewest_rounds(_questions(spec, _judged(spec)), 1 - spec.confidence)
    rounds = int(left_ns * share // round_ns)
    if rounds >= needed:
        return None
    spent_ns = spec.budget_ns - left_ns
    enough_ns = spent_ns + int(needed * round_ns / share * _SET_UP)
    return Shortage(spec.budget_ns, rounds, needed, max(LEAST_ADVISED_NS, enough_ns))


def _judged(spec: ExperimentSpec) -> int:
    return sum(1 for workload in spec.workloads if not workload.control) or len(spec.workloads)


def _block_ns(spec: ExperimentSpec, loads_ns: Iterable[int]) -> int:
    return sum(len(spec.schedulers) * (load_ns + RUN_OVERHEAD_NS) for load_ns in loads_ns)


def _questions(spec: ExperimentSpec, judged: int) -> int:
    return math.comb(len(spec.schedulers), 2) * (1 if spec.goal is not None else judged)


def _longest_ns(spec: ExperimentSpec, blocks: int | None) -> int | None:
    """The time of so many blocks; workloads that are switched have as much load as in blocks."""
    if blocks is None or spec.budget_ns is not None:
        return None
    loads_ns: list[int] = []
    for workload in spec.workloads:
        run_ns = expected_runtime_ns(workload, spec.runtime_ns)
        if run_ns is None:
            return None
        loads_ns.append(run_ns)
    return int(blocks * _block_ns(spec, loads_ns) * _SET_UP)


def _shortage(spec: ExperimentSpec, in_blocks: Collection[str]) -> Shortage | None:
    if spec.budget_ns is None or not spec.stops_when_settled or not in_blocks:
        return None
    loads_ns: list[int] = []
    for workload in spec.workloads:
        if workload.name in in_blocks:
            run_ns = expected_runtime_ns(workload, spec.runtime_ns)
            if run_ns is None:
                return None
            loads_ns.append(run_ns)
    block_ns = _block_ns(spec, loads_ns)
    # Workloads that are switched have their part of the budget.
    share = len(in_blocks) / len(spec.workloads)
    needed = fewest_blocks(_questions(spec, _judged(spec)), 1 - spec.confidence)
    blocks = int(spec.budget_ns * share // block_ns)
    if blocks >= needed:
        return None
    return Shortage(spec.budget_ns, blocks, needed, int(needed * block_ns / share * _SET_UP))
