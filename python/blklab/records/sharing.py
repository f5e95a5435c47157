"""Parts that most samples have in common, kept once in memory: names, settings, bins of histograms.

Samples are never changed in place, so nobody can tell. The tables hold what is bounded by the formats (bins,
names of fields) without limit, and of settings the first few thousand.
"""

from __future__ import annotations

from typing import Any

_MOST_SETTINGS = 4_096
_MOST_BINS = 65_536

_names: dict[frozenset[str], set[str]] = {}
_bins: dict[int, int] = {}
_settings: dict[tuple[tuple[str, Any], ...], dict[str, Any]] = {}


def share_names(names: set[str]) -> set[str]:
    """Returns an equal set that others have too."""
    return _names.setdefault(frozenset(names), names)


def share_bins(bins: dict[int, int]) -> dict[int, int]:
    """Returns a histogram with bins that others have too."""
    if len(_bins) > _MOST_BINS:
        return bins
    return {_bins.setdefault(value, value): count for value, count in bins.items()}


def share_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns an equal dict that others have too."""
    if len(_settings) > _MOST_SETTINGS:
        return settings
    return _settings.setdefault(tuple(settings.items()), settings)


def share_engine(engine: dict[str, Any]) -> dict[str, Any]:
    """Returns the facts about a generator with a cost table that others have too."""
    costs = engine.get("machine")
    # By type: True equals 1 and is written otherwise.
    if not isinstance(costs, dict) or not all(type(value) in (int, str) for value in costs.values()):
        return engine
    return engine | {"machine": share_settings(costs)}
