"""Sentences and tables on a run, shared by the terminal and the page."""

from __future__ import annotations

from blklab.quantities.formatting import count_of, scale_for
from blklab.quantities.units import NS_PER_US, format_bytes, format_duration
from blklab.report.trace.document import ExplainDocument, WaitPart


def title(document: ExplainDocument) -> str:
    """Title of the page."""
    return f"{document.workload} under {document.scheduler}"


def findings(document: ExplainDocument) -> list[str]:
    """Sentences on the run, the most important first."""
    return [*_device(document), *_turns(document), *_slowest(document)]


def _device(document: ExplainDocument) -> list[str]:
    length = format_duration(document.simulated_ns)
    if not document.requests:
        return [f"In {length} no request reached the device: memory answered everything."]
    busy = f"The device served {count_of(document.requests, 'request')} in {length}"
    shares = ", ".join(
        f"{submitter.name} held it for {_percent(submitter.device_share)} of the time"
        for submitter in document.parties
    )
    empty = f"it was idle for {_percent(document.idle_share)}"
    depths = (
        f"At each dispatch, {document.mean_in_flight:.1f} requests were in the device and "
        f"{document.mean_queued:.1f} waited in the scheduler, on average."
    )
    if document.disks > 1:
        array = (
            f"The device is an array of {document.disks} disks, each with its own scheduler: requests "
            "are those of the members, depths are per member, and several can hold the array at once."
        )
        return [array, f"{busy}: {shares}; {empty}.", depths]
    return [f"{busy}: {shares}; {empty}.", depths]


def _turns(document: ExplainDocument) -> list[str]:
    jumps = [
        f"{format_bytes(submitter.mean_jump_bytes)} for {submitter.name}"
        for submitter in document.parties
        if submitter.mean_jump_bytes is not None
    ]
    said = []
    if jumps:
        said.append(f"Between requests the head moved {', '.join(jumps)} on average.")
    if len(document.parties) > 1 and document.longest_turn is not None:
        name, length = document.longest_turn
        said.append(
            f"The device switched between them {count_of(document.switches, 'time')}; the longest turn "
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
    meanwhile = f" During that time the device was held by {held}." if held else ""
    came = f"The slowest request was issued by {slowest.name} at {format_duration(slowest.arrive_ns)}"
    return [f"{came}: it waited {waiting} above the device and {inside} in it.{meanwhile}"]


def times(part: WaitPart) -> list[str]:
    """Mean, p99 and maximum, each in a suitable unit."""
    return [
        "-" if value is None else scale_for("us", [value]).quantity(value) if value else "0"
        for value in (part.mean, part.p99, part.max)
    ]


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 10 or percent == 0 else f"{percent:.1f} %"


SUBMITTER_HEADINGS = (
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
"""Columns of the table of submitters after the name: mean, 99th percentile and maximum of both times."""
NARROW_COLUMNS = (0, 1, 2, 3, 5, 6, 8)
"""Columns that fit into a terminal of eighty columns."""


MEMBER_HEADINGS = ("requests", "busy", "in it", "queued", "head moved")
"""Columns of the table of an array's disks: count, share of the time, means at each dispatch."""


def member_rows(document: ExplainDocument) -> list[tuple[str, list[str]]]:
    """Rows of the table of an array's disks; empty for a single disk."""
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
    """Name of a disk of an array."""
    return f"disk {disk}"


def submitter_rows(document: ExplainDocument) -> list[tuple[str, list[str]]]:
    """Rows of the table of submitters."""
    return [
        (
            submitter.name,
            [
                str(submitter.requests),
                str(submitter.merged),
                _percent(submitter.device_share),
                *times(submitter.waiting_us),
                *times(submitter.in_device_us),
            ],
        )
        for submitter in document.parties
    ]
