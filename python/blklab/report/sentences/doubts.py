"""Doubts about an answer in sentences: the warnings of its report."""

from __future__ import annotations

from functools import singledispatch

from blklab.analysis.carry_over import CarryOverFindings
from blklab.analysis.doubts import DifferingControl, DifferingCopy, DisturbedAnswer, Doubt, FailedSamples
from blklab.analysis.empty_ramps import EmptyRamp
from blklab.analysis.long_slots import LongSlots
from blklab.analysis.rare_arrangements import ENOUGH_BLOCKS, RareArrangements
from blklab.analysis.starvation import StarvedJob
from blklab.quantities.formatting import count_of, join_schedulers, metric_title, ratio_text, scheduler_text
from blklab.records.starvation import starvation_text
from blklab.report.sentences.pairs import pair_effect
from blklab.report.sentences.slots import carry_over_text, long_slots_text

_OFF = "so its ratios may be off; compare with --design runs"


@singledispatch
def doubt_text(doubt: Doubt) -> str:
    """The doubt and its consequence, without a full stop."""
    raise TypeError(f"there is no sentence for {type(doubt).__name__}")


@doubt_text.register
def _(doubt: DisturbedAnswer) -> str:
    marked = count_of(doubt.marked, "repetition")
    answer = f"{doubt.status}{f' ({join_schedulers(doubt.best)})' if doubt.best else ''}"
    verb, them = ("was", "it") if doubt.marked == 1 else ("were", "them")
    return (
        f"{marked} {verb} disturbed from outside, and without {them} the answer is another: {answer}; "
        "measure again on a quieter machine"
    )


@doubt_text.register
def _(doubt: FailedSamples) -> str:
    unit, part = ("round", "slot") if doubt.in_slots else ("block", "run")
    return f"{doubt.failed} of {doubt.of} {part}s failed; in their {unit}s only the other {part}s count"


@doubt_text.register
def _(doubt: CarryOverFindings) -> str:
    return f"{doubt.workload}: {carry_over_text(doubt)}, {_OFF}"


@doubt_text.register
def _(doubt: LongSlots) -> str:
    return f"{doubt.workload}: {long_slots_text(doubt)}, {_OFF}"


@doubt_text.register
def _(doubt: EmptyRamp) -> str:
    return f"{doubt.workload}: {doubt.job.sentence}"


@doubt_text.register
def _(doubt: DifferingControl) -> str:
    pair = doubt.pair
    return (
        f"the control {pair.workload} differs although no scheduler can influence it "
        f"({scheduler_text(pair.first)}: {pair_effect(pair)}): something else differs between the runs, so "
        "nothing is recommended"
    )


@doubt_text.register
def _(doubt: DifferingCopy) -> str:
    pair = doubt.pair
    return (
        f"{pair.workload}: {pair.first} is {pair.second} without a change, and differs from it "
        f"({pair_effect(pair)}): something else than a patch is at work, so nothing is recommended"
    )


@doubt_text.register
def _(doubt: StarvedJob) -> str:
    starved = starvation_text(doubt.worst, doubt.runs, doubt.of_runs, virtual_time=doubt.virtual_time)
    return f"{doubt.workload}: under {scheduler_text(doubt.scheduler)} {starved}"


@doubt_text.register
def _(found: RareArrangements) -> str:
    first, second = found.pair
    return (
        f"{found.workload}: {first} against {second} by {metric_title(found.metric)} is "
        f"{ratio_text(found.usual_ratio)} in most arrangements of the model, but "
        f"{ratio_text(found.furthest)} in {len(found.rare)} of {found.blocks}. The mean depends on how often "
        f"such arrangements come, which few blocks cannot tell; --blocks {ENOUGH_BLOCKS} finds what one in "
        "20 has"
    )
