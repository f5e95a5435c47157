"""A modelled disk with commands of one length, which stalls at random, so that runs scatter."""

from __future__ import annotations

from blklab.quantities.units import parse_duration_ns


def stalling_disk(command_ns: float, parameters: str, *, stalled_share: float = 0.0, stall: str = "") -> str:
    """The device in the target grammar, without the scheme.

    Args:
        command_ns: Duration of a command; with stalls, its mean over the whole time.
        parameters: Other parameters of the device model ``fixed``.
        stalled_share: Share of the time that the disk stalls.
        stall: Length of a stall.
    """
    text = f"fixed,latency={round(command_ns * (1 - stalled_share))}ns,{parameters}"
    if not stalled_share:
        return text
    every_ns = round(parse_duration_ns(stall) * (1 - stalled_share) / stalled_share)
    return f"{text},stall={stall},stall_every={every_ns}ns"
