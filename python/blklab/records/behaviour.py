"""A scheduler's doing in one run, in counters that explain its figures: waits, holders, turns, distances.

They come from the timeline of a simulated run, or from a recording of a real one.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

NOBODY = ""
"""The holder while no request is in the device, in `PartyWaits`."""


class PartyWaits(BaseModel):
    """Where the requests of one party waited; means over its requests, in nanoseconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    in_queue_ns: float
    """From submission to dispatch."""
    in_device_ns: float
    """From dispatch to completion."""
    queue_held_ns: dict[str, float]
    """The time in the queue by the party that held the device meanwhile; `NOBODY` if it was idle."""
    device_held_ns: dict[str, float]
    """The time in the device, likewise."""

    @property
    def total_ns(self) -> float:
        """From submission to completion."""
        return self.in_queue_ns + self.in_device_ns


class PartyBehaviour(BaseModel):
    """A job, or the kernel where no job waits for the request, as the device saw it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    requests: int
    """Given to the device."""
    bytes: int
    mean_in_device: float
    """Requests in the device at a time, over the whole run."""
    mean_turn: float
    """Dispatches in a row."""
    overtaken: float
    """Requests of other parties that went to the device while one of these waited in the queue."""
    waits: PartyWaits
    """Of all its requests."""
    slowest: PartyWaits
    """Of the slowest hundredth."""


class Behaviour(BaseModel):
    """One scheduler in one run of one workload."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workload: str
    scheduler: str
    source: Literal["simulation", "recording"]
    span_ns: int
    requests: int
    bytes: int
    idle_share: float
    """Share of the time with nothing in the device."""
    idle_while_waiting_share: float
    """Share of the time with nothing in the device although a request waited."""
    mean_in_device: float
    jumps: int
    """Requests that do not begin where the one before ended."""
    mean_jump_bytes: float | None
    """How far these are; None for devices without a head."""
    cpu_ns_per_io: float | None
    """Processor time of an I/O of the jobs, where it was accounted."""
    parties: list[PartyBehaviour]

    @property
    def bytes_per_second(self) -> float:
        """Bytes that the device moved in a second."""
        return self.bytes / self.span_ns * 1e9

    @property
    def bytes_per_jump(self) -> float:
        """How much is moved in one place before the next."""
        return self.bytes / max(1, self.jumps)

    @property
    def bytes_per_request(self) -> float:
        """The size of requests, after merging."""
        return self.bytes / max(1, self.requests)

    def party(self, name: str) -> PartyBehaviour | None:
        """The party of that name."""
        return next((one for one in self.parties if one.name == name), None)
