"""From samples to a verdict: metrics, statistics, pairwise comparison, ranking."""
