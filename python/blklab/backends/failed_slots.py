"""Samples of slots that came to nothing."""

from __future__ import annotations

from blklab.records.samples import RunSample, SlotSample
from blklab.spec.stretches import Stretch


def failed_slot(
    stretch: Stretch,
    number: int,
    error: str,
    *,
    started_at: str,
    elapsed_ns: int = 0,
    engine: dict[str, str] | None = None,
) -> RunSample:
    """A slot in its planned place, without I/O.

    Args:
        stretch: Its stretch.
        number: Its place in the stretch, from 0.
        error: Why it failed.
        started_at: ISO 8601, UTC.
        elapsed_ns: Real time that it took.
        engine: Name and version of the load generator.
    """
    start_ns = number * stretch.slot_ns
    return RunSample(
        cell=stretch.slots[number].key,
        status="failed",
        error=error,
        started_at=started_at,
        elapsed_ns=elapsed_ns,
        jobs=[],
        engine=engine or {},
        slot=SlotSample(
            stretch=stretch.number,
            start_ns=start_ns,
            end_ns=start_ns + stretch.slot_ns,
            switch_ns=0,
            kept_from_ns=start_ns + stretch.settling_ns,
            kept_to_ns=start_ns + stretch.slot_ns,
            window_ns=stretch.slot_ns,
            ios=[],
        ),
    )


def failed_stretch(
    stretch: Stretch,
    error: str,
    *,
    started_at: str,
    elapsed_ns: int = 0,
    engine: dict[str, str] | None = None,
) -> list[RunSample]:
    """All slots of a stretch whose load failed; the arguments are those of `failed_slot`."""
    each_ns = elapsed_ns // len(stretch.slots)
    return [
        failed_slot(stretch, number, error, started_at=started_at, elapsed_ns=each_ns, engine=engine)
        for number in range(len(stretch.slots))
    ]
