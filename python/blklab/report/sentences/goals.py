"""Goals in sentences."""

from __future__ import annotations

from blklab.analysis.goal_scores import AbsentMetrics
from blklab.quantities.formatting import metric_title


def absent_text(absent: AbsentMetrics) -> str:
    """The metrics that a workload does not have."""
    left_out = ": left out" if absent.left_out else ""
    return f"{absent.workload} has no {', '.join(map(metric_title, absent.metrics))}{left_out}"
