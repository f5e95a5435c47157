"""Goals in sentences: the metrics that are absent, and the part that decided."""

from __future__ import annotations

from blklab.analysis.goal_parts import GoalLead, GoalPartShare
from blklab.analysis.goal_scores import AbsentMetrics
from blklab.quantities.formatting import count_of, metric_title, ratio_text, scheduler_text

ALIKE = 1.005
"""A part that changes the score by a smaller factor does not count."""
MOST_OTHERS = 3
"""Parts named beside the one that decided."""


def absent_text(absent: AbsentMetrics) -> str:
    """The metrics that a workload does not have."""
    left_out = ": left out" if absent.left_out else ""
    return f"{absent.workload} has no {', '.join(map(metric_title, absent.metrics))}{left_out}"


def lead_text(lead: GoalLead) -> str:
    """``Longest wait decides between kyber and bfq: -90 % [-92, -88]; Jain's index speaks for bfq, …``.

    Without a full stop; empty if nothing tells the two apart, and for a goal of one part, as that decides.
    """
    if len(lead.parts) == 1:
        return ""
    several = len({part.pair.workload for part in lead.parts}) > 1
    counting = [part for part in lead.parts if not 1 / ALIKE < part.factor < ALIKE]
    if not counting:
        return ""
    both = f"{scheduler_text(lead.first)} and {scheduler_text(lead.second)}"
    decisive = max(counting, key=lambda part: max(part.factor, 1 / part.factor))
    verb = "differs most, but does not yet decide, between"
    if lead.is_shown:
        decisive, verb = lead.parts[0], "decides between"
    clauses = [f"{_title(decisive, several=several)} {verb} {both}: {_ratio(decisive)}"]
    others = [part for part in lead.parts if part is not decisive]
    clauses += [_other(part, lead, several=several) for part in others[:MOST_OTHERS]]
    if len(others) > MOST_OTHERS:
        clauses.append(f"{count_of(len(others) - MOST_OTHERS, 'more part')} of less weight")
    text = "; ".join(clauses)
    return text[:1].upper() + text[1:]


def _other(part: GoalPartShare, lead: GoalLead, *, several: bool) -> str:
    title = _title(part, several=several)
    if 1 / ALIKE < part.factor < ALIKE:
        return f"{title} is the same"
    side = lead.first if part.factor > 1 else lead.second
    return f"{title} speaks for {scheduler_text(side)}, {_ratio(part)}"


def _title(part: GoalPartShare, *, several: bool) -> str:
    title = metric_title(part.pair.metric)
    return f"{title} of {part.pair.workload}" if several else title


def _ratio(part: GoalPartShare) -> str:
    return ratio_text(part.pair.ratio, part.pair.ci_low, part.pair.ci_high)
