"""One run drawn: a page that needs nothing else, made like the report of a comparison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from blklab.quantities.formatting import count_of
from blklab.quantities.units import format_duration
from blklab.records.samples import LatencyHistogram
from blklab.report.charts.depths import depths_chart
from blklab.report.charts.distribution import LatencySeries, density_chart, exceedance_chart
from blklab.report.charts.holders import Holder, holders_chart
from blklab.report.charts.latencies import LatencyDots, latencies_chart
from blklab.report.charts.position import HeadPath, PositionSeries, position_chart
from blklab.report.charts.time_axis import Window
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import element, mark
from blklab.report.html.page import inert_json, page_environment, page_script, page_style
from blklab.report.trace.document import ExplainDocument, slowest_request
from blklab.report.trace.holding import Holding, holding_of
from blklab.report.trace.parties import Cast, Party
from blklab.report.trace.steps import Steps
from blklab.report.trace.wording import (
    MEMBER_HEADINGS,
    PARTY_HEADINGS,
    findings,
    member_name,
    member_rows,
    party_rows,
    title,
)
from blklab.simulator.timeline import FLUSH, SECTOR_BYTES

MOST_MEMBERS_DRAWN = 8
"""So many disks of an array are drawn, each by itself; all are in the table."""
CLOSE_UP_REQUESTS = 150
"""A close-up shows about so many requests, up to the completion of the slowest one."""


@dataclass(frozen=True)
class View:
    """A part of the run as the page shows it."""

    title: str
    remark: str
    charts: list[Markup]


def render_explanation_page(
    cast: Cast, holding: Holding, document: ExplainDocument, window: Window | None = None
) -> str:
    """The page as the text of one HTML file (UTF-8).

    Args:
        cast: The run's parties and requests.
        holding: Who held the device.
        document: The run in figures.
        window: The part to look at closely; nothing means the surroundings of the slowest request.
    """
    script, digest = page_script()
    return page_environment().get_template("explain.html.j2").render(
        document=document,
        title=title(document),
        findings=findings(document),
        headings=PARTY_HEADINGS,
        rows=party_rows(document),
        member_headings=MEMBER_HEADINGS,
        members=member_rows(document),
        legend=[(party.name, _swatch(party)) for party in cast.parties],
        views=_views(cast, holding, window),
        distributions=_distributions(cast),
        facts=_facts(document),
        format_duration=format_duration,
        style=page_style(),
        script=script,
        script_digest=digest,
        data=inert_json(document),
    )  # fmt: skip


def _facts(document: ExplainDocument) -> list[tuple[str, str, str]]:
    """The head of the page in numbers: name, value and remark."""
    busy = 100 * (1 - document.idle_share)
    return [
        ("simulated", format_duration(document.simulated_ns), "from the first job's start to the last's end"),
        ("requests", f"{document.requests:,}".replace(",", "\u202f"), "given to the device"),
        ("device busy", f"{busy:.0f} %" if document.requests else "-", "of the time held a request"),
        ("in the device", f"{document.mean_in_flight:.1f}", "requests on average when it got one"),
    ]


def _swatch(party: Party) -> Markup:
    box: dict[str, str | float | None] = {
        "viewBox": "0 0 16 16",
        "width": 16,
        "height": 16,
        "aria-hidden": "true",
    }
    return element("svg", box, mark(8, 8, 5, party.appearance))


def _views(cast: Cast, holding: Holding, window: Window | None) -> list[View]:
    if not len(cast.served):
        return []
    whole = Window(0.0, float(cast.end_ns))
    views = [View("The whole run", "", _charts(cast, holding, whole))]
    near = window or _close_up(cast)
    if near is not None:
        start, end = (format_duration(at) for at in (near.start_ns, near.end_ns))
        shown = int(near.holds(cast.served["complete_ns"].astype(np.float64)).sum())
        why = "" if window is not None else ", where the slowest request was served"
        remark = f"{count_of(shown, 'request')} between {start} and {end}{why}."
        views.append(View("A closer look", remark, _charts(cast, holding, near)))
    members = cast.members()
    for disk in list(members)[:MOST_MEMBERS_DRAWN]:
        member = members[disk]
        remark = f"{count_of(len(member.served), 'request')}."
        if len(members) > MOST_MEMBERS_DRAWN:
            remark += f" Of {len(members)} disks the first {MOST_MEMBERS_DRAWN} are drawn."
        charts = _device_charts(member, holding_of(member), near or whole)
        views.append(View(member_name(disk).capitalize(), remark, charts))
    return views


def _close_up(cast: Cast) -> Window | None:
    """Around the completion of the slowest request; nothing if the run is short enough to be seen whole."""
    slowest = slowest_request(cast)
    count = len(cast.served)
    if slowest is None or count < 2 * CLOSE_UP_REQUESTS:
        return None
    last = min(count - 1, slowest + CLOSE_UP_REQUESTS // 5)
    first = max(0, last - CLOSE_UP_REQUESTS)
    start, end = (float(cast.served["complete_ns"][index]) for index in (first, last))
    return Window(start, end) if end > start else None


def _charts(cast: Cast, holding: Holding, window: Window) -> list[Markup]:
    """All of a run; positions of an array are drawn disk by disk."""
    return [
        *_device_charts(cast, holding, window),
        latencies_chart(
            "Latencies",
            _latency_dots(cast),
            window,
            "A dot an I/O of a job, as the job saw it, where it ended.",
        ),
    ]


def _device_charts(cast: Cast, holding: Holding, window: Window) -> list[Markup]:
    """What can be drawn of a disk, or of all disks of an array together."""
    served = cast.served
    data = served["operation"] != FLUSH
    positions = []
    for index, party in enumerate(cast.parties):
        rows = served[(cast.party_of == index) & data]
        positions.append(
            PositionSeries(
                party.name,
                party.appearance,
                rows["dispatch_ns"].astype(np.float64),
                rows["complete_ns"].astype(np.float64),
                rows["sector"].astype(np.float64) * SECTOR_BYTES,
            )
        )
    head = None
    if cast.has_head:
        head = HeadPath(
            served["complete_ns"].astype(np.float64),
            served["head_complete"].astype(np.float64) * SECTOR_BYTES,
        )
    arrive, dispatch, complete = (
        served[name].astype(np.float64) for name in ("arrive_ns", "dispatch_ns", "complete_ns")
    )
    holders = [Holder(party.name, party.appearance, index) for index, party in enumerate(cast.parties)]
    path = "The grey line is the way of the head." if head else "The device has no head."
    sharing = (
        "The time up to a completion counts for the one that completed."
        if cast.has_head
        else "The device serves many at once: each moment is shared by all that are in it."
    )
    where = position_chart(
        "Positions", positions, head, window, f"A dot where and when a request was completed. {path}"
    )
    return [
        *([where] if cast.disks == 1 else []),
        holders_chart(
            "Who held the device", holders, holding, window, f"A full band: all the time. {sharing}"
        ),
        depths_chart(
            "Depths",
            Steps.between(arrive, dispatch),
            Steps.between(dispatch, complete),
            window,
            "Requests that were submitted and not yet in the device, and those in it: means and extremes.",
        ),
    ]


def _latency_dots(cast: Cast) -> list[LatencyDots]:
    ios = cast.timeline.ios
    series = []
    for party in cast.parties:
        if party.job is not None:
            rows = ios[ios["job"] == party.job]
            ends = rows["end_ns"].astype(np.float64)
            series.append(LatencyDots(party.name, party.appearance, ends, ends - rows["start_ns"]))
    return series


def _distributions(cast: Cast) -> list[Markup]:
    """Of the measured I/Os of each job; its calls of fsync are a series of their own."""
    series = []
    for party, job in zip(cast.parties, cast.timeline.run.jobs, strict=False):
        data = LatencyHistogram.merged(entry.latency for entry in job.data_directions())
        if data.count:
            series.append(LatencySeries(party.name, party.appearance, data))
    for job in cast.timeline.run.jobs:
        calls = LatencyHistogram.merged(e.latency for e in job.directions if e.direction == "sync")
        if calls.count:
            slot = len(cast.parties) + len(series)
            series.append(LatencySeries(f"{job.name} fsync", Appearance(slot), calls))
    if not series:
        return []
    return [
        exceedance_chart("How slow, how often", series, "The share of I/Os slower than a latency."),
        density_chart("Where latencies lie", series, "The mark is the median, the tick the 99th percentile."),
    ]
