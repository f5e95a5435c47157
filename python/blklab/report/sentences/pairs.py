"""One scheduler against another in words."""

from __future__ import annotations

from blklab.analysis.comparison import PairwiseComparison
from blklab.quantities.formatting import metric_title, ratio_text, scheduler_text


def pair_effect(pair: PairwiseComparison) -> str:
    """The first scheduler against the second: ``IOPS +12 % [+8, +17] against kyber``."""
    return f"{ratio_alone(pair)} against {scheduler_text(pair.second)}"


def ratio_alone(pair: PairwiseComparison) -> str:
    """The same without the second scheduler: ``IOPS +12 % [+8, +17]``."""
    return f"{metric_title(pair.metric)} {ratio_text(pair.ratio, pair.ci_low, pair.ci_high)}"
