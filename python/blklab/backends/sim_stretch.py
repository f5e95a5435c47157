"""Stretches in the simulator: schedulers that take turns within one simulated load."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Mapping
from typing import Any

from blklab import _core
from blklab.backends.failed_slots import failed_slot
from blklab.errors import SimulationError
from blklab.records.samples import JobSample, RunSample, SlotSample
from blklab.simulator.core import call_core
from blklab.spec.stretches import Stretch

LEAD_IN_NS = 500_000_000
"""Least time for which the load runs before the first slot."""
FREEZE_NS = 28_000_000
"""Least time for which a switch stops the load: the median of 40 switches of a busy loop device, most of it
RCU grace periods."""
_MOST_WINDOW_NS = 10_000_000
_LEAST_WINDOWS = 25
"""Windows of a slot, unless they would be longer than `_MOST_WINDOW_NS`."""
_TAIL_NS = 100_000_000
"""Time for which the load continues after the last slot."""


def stretch_request(stretch: Stretch, request: Mapping[str, Any]) -> dict[str, Any]:
    """A stretch as the core takes it.

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
        "switchback": {"slots": slots, "window_ns": _window_ns(stretch), "freeze_ns": FREEZE_NS},
    }


def simulate_stretch(
    stretch: Stretch, request: Mapping[str, Any], settings: Mapping[str, Mapping[str, str]]
) -> list[RunSample]:
    """Simulates a stretch.

    Args:
        stretch: The slots.
        request: As `stretch_request` makes it.
        settings: The settings in force under each scheduler, by its label.

    Returns:
        One sample per slot; all of them failed if the simulation did, one alone if its switch took too long.
    """
    started_at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
    start_ns = time.monotonic_ns()
    try:
        answer = json.loads(call_core(_core.simulate, json.dumps(request)))
    except SimulationError as error:
        each_ns = (time.monotonic_ns() - start_ns) // len(stretch.slots)
        return [
            failed_slot(stretch, number, error.message, started_at=started_at, elapsed_ns=each_ns)
            for number in range(len(stretch.slots))
        ]
    slot_elapsed_ns = (time.monotonic_ns() - start_ns) // len(stretch.slots)
    samples = []
    # The core leaves out what had no new scheduler when the load ended.
    recorded = [*answer["slots"], *[None] * (len(stretch.slots) - len(answer["slots"]))]
    for number, (slot, record) in enumerate(zip(stretch.slots, recorded, strict=True)):
        slot_ns = number * stretch.slot_ns
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
                settings=dict(settings[slot.scheduler.label]),
                engine={name: answer["engine"][name] for name in ("name", "version", "seed")},
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
