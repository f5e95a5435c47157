"""Stretches of slots on models: the request for one load with its switches, and the samples of the answer.

The simulator's core and the program in guests take the same request and give the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from blklab.backends.failed_slots import failed_slot
from blklab.records.samples import JobSample, RunSample, SlotSample
from blklab.simulator.request import FREEZE_NS
from blklab.spec.stretches import Slot, Stretch

LEAD_IN_NS = 500_000_000
"""Least time for which the load runs before the first slot."""
_MOST_WINDOW_NS = 10_000_000
_LEAST_WINDOWS = 25
"""Windows of a slot, unless they would be longer than `_MOST_WINDOW_NS`."""
_TAIL_NS = 100_000_000
"""Time for which the load continues after the last slot."""


def stretch_request(stretch: Stretch, request: Mapping[str, Any]) -> dict[str, Any]:
    """A stretch as the core and guests take it.

    Args:
        stretch: The slots.
        request: The request for a run of the load under the first slot's scheduler.
    """
    lead_in_ns = _lead_in_ns(stretch)
    slots = []
    for number, slot in enumerate(stretch.slots):
        begins_ns = lead_in_ns + number * stretch.slot_ns
        slots.append(
            {
                "scheduler": slot.scheduler.name,
                "tunables": slot.scheduler.tunables,
                "start_ns": begins_ns,
                "end_ns": begins_ns + stretch.slot_ns,
                "kept_from_ns": begins_ns + stretch.settling_ns,
                "kept_to_ns": begins_ns + stretch.slot_ns,
            }
        )
    return dict(request) | {
        "runtime_ns": lead_in_ns + stretch.length_ns + _TAIL_NS,
        "timeline": False,
        "switchback": {
            "slots": slots,
            "window_ns": _window_ns(stretch),
            "focus": list(stretch.workload.focus),
            # In the simulator; a guest's kernel takes its own time.
            "freeze_ns": FREEZE_NS,
        },
    }


def stretch_samples(
    stretch: Stretch,
    recorded: Sequence[Mapping[str, Any]],
    settings_of: Callable[[Slot, Mapping[str, Any]], dict[str, str]],
    *,
    started_at: str,
    elapsed_ns: int,
    engine: Mapping[str, Any],
) -> list[RunSample]:
    """The samples of a stretch that a model has run.

    Args:
        stretch: The slots.
        recorded: The answer's ``slots``; those are missing that had no new scheduler when the load ended.
        settings_of: The settings in force in a slot, from the slot and its record.
        started_at: ISO 8601, UTC.
        elapsed_ns: Real time of the whole stretch.
        engine: What made the load.

    Returns:
        One sample per slot; one has failed if its switch took too long.
    """
    slot_elapsed_ns = elapsed_ns // len(stretch.slots)
    samples = []
    for number, slot in enumerate(stretch.slots):
        slot_ns = number * stretch.slot_ns
        record = recorded[number] if number < len(recorded) else None
        if record is None or record["switch_ns"] >= stretch.slot_ns:
            message = f"the switch to {slot.scheduler.label} took longer than its slot"
            samples.append(
                failed_slot(stretch, number, message, started_at=started_at, elapsed_ns=slot_elapsed_ns)
            )
            continue
        samples.append(
            RunSample(
                cell=slot.key,
                status="ok",
                started_at=started_at,
                elapsed_ns=slot_elapsed_ns,
                jobs=[JobSample.model_validate(job) for job in record["jobs"]],
                settings=settings_of(slot, record),
                engine=dict(engine),
                slot=SlotSample(
                    stretch=stretch.number,
                    start_ns=slot_ns,
                    end_ns=slot_ns + stretch.slot_ns,
                    switch_ns=record["switch_ns"],
                    kept_from_ns=slot_ns + stretch.settling_ns,
                    kept_to_ns=slot_ns + stretch.slot_ns,
                    window_ns=_window_ns(stretch),
                    ios=record["ios"],
                ),
            )
        )
    return samples


def _lead_in_ns(stretch: Stretch) -> int:
    """The load's own ramp time is never recorded, so no slot begins before its end."""
    return max(LEAD_IN_NS, *(job.ramp_time_ns for job in stretch.workload.jobs))


def _window_ns(stretch: Stretch) -> int:
    return max(1, min(_MOST_WINDOW_NS, stretch.slot_ns // _LEAST_WINDOWS))
