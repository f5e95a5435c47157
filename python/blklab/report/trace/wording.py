"""A run in sentences, for the terminal and the page alike."""

from __future__ import annotations

from blklab.quantities.formatting import count_of, scale_for
from blklab.quantities.units import format_bytes, format_duration
from blklab.report.trace.document import ExplainDocument, WaitPart

NS_PER_US = 1_000


def title(document: ExplainDocument) -> str:
    """The page's title."""
    return f"{document.workload} under {document.scheduler}"


def findings(document: ExplainDocument) -> list[str]:
    """The findings on a run, the most important first."""
    return [*_device(document), *_turns(document), *_slowest(document)]


def _device(document: ExplainDocument) -> list[str]:
    length = format_duration(document.simulated_ns)
    if not document.requests:
        return [f"In {length} no request reached the device: memory served everything."]
    busy = f"The device served {count_of(document.requests, 'request')} in {length}"
    shares = ", ".join(
        f"{party.name} kept it busy for {_percent(party.device_share)} of the time"
        for party in document.parties
    )
    empty = f"it was idle for {_percent(document.idle_share)}"
    depths = (
        f"When a request reached it, {document.mean_in_flight:.1f} were in the device and "
        f"{document.mean_queued:.1f} were waiting in the scheduler, on average."
    )
    if document.disks > 1:
        array = (
            f"The device is an array of {document.disks} disks, each with a scheduler of its own: requests "
            "are those of the members, depths are a member's, and several jobs can keep it busy at once."
        )
        return [array, f"{busy}: {shares}; {empty}.", depths]
    return [f"{busy}: {shares}; {empty}.", depths]


def _turns(document: ExplainDocument) -> list[str]:
    jumps = [
        f"{format_bytes(party.mean_jump_bytes)} for {party.name}"
        for party in document.parties
        if party.mean_jump_bytes is not None
    ]
    said = []
    if jumps:
        said.append(f"From one request to the next the head moved {', '.join(jumps)}, on average.")
    if len(document.parties) > 1 and document.longest_turn is not None:
        name, length = document.longest_turn
        said.append(
            f"The device changed between them {count_of(document.switches, 'time')}; the longest turn "
            f"was {count_of(length, 'request')} of {name}."
        )
    return said


def _slowest(document: ExplainDocument) -> list[str]:
    slowest = document.slowest
    if slowest is None:
        return []
    waiting, inside = (format_duration(us * NS_PER_US) for us in (slowest.waiting_us, slowest.in_device_us))
    held = ", ".join(
        f"{name} {_percent(share)}"
        for name, share in sorted(slowest.held_meanwhile.items(), key=lambda item: -item[1])
    )
    meanwhile = f" Meanwhile the device served: {held}." if held else ""
    came = f"The slowest request was issued by {slowest.name} at {format_duration(slowest.arrive_ns)}"
    return [f"{came}: it waited {waiting} above the device and {inside} in it.{meanwhile}"]


def times(part: WaitPart) -> list[str]:
    """Mean, p99 and maximum, each with a unit of its own."""
    return [
        "-" if value is None else scale_for("us", [value]).quantity(value) if value else "0"
        for value in (part.mean, part.p99, part.max)
    ]


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 10 or percent == 0 else f"{percent:.1f} %"


PARTY_HEADINGS = (
    "requests",
    "merged",
    "device",
    "waited",
    "p99",
    "max",
    "in device",
    "p99",
    "max",
)
"""The table of parties, after the name: means, 99th percentiles and maxima of both times."""
NARROW_COLUMNS = (0, 1, 2, 3, 5, 6, 8)
"""The columns that fit a terminal of eighty columns."""


MEMBER_HEADINGS = ("requests", "busy", "in it", "queued", "head moved")
"""The table of an array's disks: counts, share of the time, means when a request reached the disk."""


def member_rows(document: ExplainDocument) -> list[tuple[str, list[str]]]:
    """The table of an array's disks; empty for a single one."""
    return [
        (
            member_name(member.disk),
            [
                str(member.requests),
                _percent(member.busy_share),
                f"{member.mean_in_flight:.1f}",
                f"{member.mean_queued:.1f}",
                "-" if member.mean_jump_bytes is None else format_bytes(member.mean_jump_bytes),
            ],
        )
        for member in document.members
    ]


def member_name(disk: int) -> str:
    """The name of an array's disk."""
    return f"disk {disk}"


def party_rows(document: ExplainDocument) -> list[tuple[str, list[str]]]:
    """The table of parties."""
    return [
        (
            party.name,
            [
                str(party.requests),
                str(party.merged),
                _percent(party.device_share),
                *times(party.waiting_us),
                *times(party.in_device_us),
            ],
        )
        for party in document.parties
    ]
