"""The figures of a flash drive as a profile lists them, with their intervals."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.labs.calibration.disk.document import KERNELS_OWN, Figure
from blklab.labs.calibration.disk.fit import TWO_SIDED
from blklab.labs.calibration.disk.flash.figures import rate_of
from blklab.labs.calibration.disk.flash.fit import FlashFit

NOT_COVERED = "the size of erase blocks, and what an idle drive collects"
NO_COLLECTION = (
    "collection of garbage with all that belongs to it (spare space, erasure), and data that were not written"
    " in order"
)
"""Not covered either, unless random overwriting has shown it."""
_UNIDENTIFIED = 0.5
"""Of the prior's standard deviation: above it the loads have told nothing."""
_COUNTED = "counted: which reads wait for each other"
_ASSUMED = "assumed: the loads do not tell"
_RATES = {"channel": "channel_rate", "link_read": "link_read_rate", "link_write": "link_write_rate"}
_KEYS = {"slc_bytes": "slc_cache", "buffer_bytes": "buffer", "fold_rate": "slc_fold_rate"} | _RATES
_HOW = {
    **dict.fromkeys(("capacity", "queue_depth", "hw_queues", "max_sectors_kb", "flush_drains"), KERNELS_OWN),
    **dict.fromkeys(("planes", "page", "erase_block", "erase", "slc_fold_rate"), _ASSUMED),
}


def figures_of(fit: FlashFit, others: Sequence[Figure], unseen: str) -> list[Figure]:
    """All figures of the profile.

    Args:
        fit: What was found.
        others: Figures of random overwriting and of the front end, in place of the drive's own.
        unseen: The reason why long writes tell nothing of slow cells, if they do not.
    """
    intervals = _intervals(fit)
    by_key = {figure.key: figure for figure in others}
    found = []
    for key, value in fit.drive.parameters().items():
        if key in by_key:
            found.append(by_key[key])
            continue
        if key in {"dies", "channels"}:
            found.append(Figure(key=key, value=value, low=value, high=value, how=_COUNTED))
            continue
        low, high, how = intervals.get(key, (None, None, _HOW.get(key, unseen)))
        found.append(Figure(key=key, value=value, low=low, high=high, how=how))
    known = {figure.key for figure in found}
    return [*found, *(figure for figure in others if figure.key not in known)]


def _intervals(fit: FlashFit) -> dict[str, tuple[int | None, int | None, str]]:
    found: dict[str, tuple[int | None, int | None, str]] = {}
    for name, entry, deviation, prior in zip(
        fit.layout.names,
        fit.vector.tolist(),
        fit.deviations.tolist(),
        fit.layout.priors().tolist(),
        strict=True,
    ):
        key = _KEYS.get(name, name)
        half = TWO_SIDED * deviation
        ends = fit.intervals.get(name, (entry - half, entry + half))
        if ends[1] - ends[0] > 2 * TWO_SIDED * _UNIDENTIFIED * prior:
            found[key] = (None, None, "not identified by the loads")
            continue
        low, high = (fit.layout.value(name, end) for end in ends)
        if name == "erase":
            low, high = (fit.drive.erase_of_block * end for end in (low, high))
        if name in _RATES:
            low, high = rate_of(high), rate_of(low)
        found[key] = (round(low), round(high), "fitted")
    return found
