"""Renders one run as a self-contained HTML page, in the style of the comparison report."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from blklab.quantities.formatting import count_of
from blklab.quantities.units import format_duration
from blklab.records.samples import LatencyHistogram
from blklab.report.charts.distribution import LatencySeries, density_chart, exceedance_chart
from blklab.report.charts.time_axis import Window
from blklab.report.drawing.palette import Appearance
from blklab.report.drawing.svg import element, mark
from blklab.report.html.page import inert_json, page_environment, page_script, page_style
from blklab.report.html.shell import with_shell
from blklab.report.trace.depths_chart import depths_chart
from blklab.report.trace.document import ExplainDocument, slowest_request
from blklab.report.trace.holders_chart import Holder, holders_chart
from blklab.report.trace.holding import Holding, holding_of
from blklab.report.trace.latencies_chart import LatencyDots, latencies_chart
from blklab.report.trace.position_chart import HeadPath, PositionSeries, position_chart
from blklab.report.trace.steps import Steps
from blklab.report.trace.submitters import Submitter, TracedRun
from blklab.report.trace.wording import (
    MEMBER_HEADINGS,
    SUBMITTER_HEADINGS,
    findings,
    member_name,
    member_rows,
    submitter_rows,
    title,
)
from blklab.simulator.timeline import FLUSH, SECTOR_BYTES

MOST_MEMBERS_DRAWN = 8
"""Number of an array's disks that are drawn separately; the table has all."""
CLOSE_UP_REQUESTS = 150
"""Approximate number of requests in a close-up, which ends at the completion of the slowest one."""


@dataclass(frozen=True)
class View:
    """One section of the page."""

    title: str
    remark: str
    charts: list[Markup]


def render_explanation_page(
    traced: TracedRun, holding: Holding, document: ExplainDocument, window: Window | None = None
) -> str:
    """The page as the text of one HTML file (UTF-8).

    Args:
        traced: The run and its submitters.
        holding: The holding times.
        document: The document of the run.
        window: The part for the close-up; None: around the slowest request.
    """
    script, digest = page_script()
    page = (
        page_environment()
        .get_template("explain.html.j2")
        .render(
            document=document,
            title=title(document),
            findings=findings(document),
            headings=SUBMITTER_HEADINGS,
            rows=submitter_rows(document),
            member_headings=MEMBER_HEADINGS,
            members=member_rows(document),
            legend=legend_of(traced),
            views=views_of(traced, holding, window),
            distributions=_distributions(traced),
            facts=_facts(document),
            format_duration=format_duration,
            style=page_style(),
            script=script,
            script_digest=digest,
            data=inert_json(document),
        )
    )
    return with_shell(page, f"{title(document)}, {document.target}", "blklab explain")


def _facts(document: ExplainDocument) -> list[tuple[str, str, str]]:
    """The numbers at the head of the page: name, value and remark."""
    busy = 100 * (1 - document.idle_share)
    return [
        ("simulated", format_duration(document.simulated_ns), "from the first job's start to the last's end"),
        ("requests", f"{document.requests:,}".replace(",", "\u202f"), "given to the device"),
        ("device busy", f"{busy:.0f} %" if document.requests else "-", "share of the time with a request"),
        ("in the device", f"{document.mean_in_flight:.1f}", "requests on average at each dispatch"),
    ]


def _swatch(submitter: Submitter) -> Markup:
    box: dict[str, str | float | None] = {
        "viewBox": "0 0 16 16",
        "width": 16,
        "height": 16,
        "aria-hidden": "true",
    }
    return element("svg", box, mark(8, 8, 5, submitter.appearance))


def legend_of(traced: TracedRun) -> list[tuple[str, Markup]]:
    """The submitters with their marks."""
    return [(submitter.name, _swatch(submitter)) for submitter in traced.submitters]


def views_of(traced: TracedRun, holding: Holding, window: Window | None) -> list[View]:
    """The sections of the page: the whole run, a closer look, and the disks of an array."""
    if not len(traced.served):
        return []
    changes = traced.timeline.run.changes
    marks_ns = tuple(float(change.made_ns) for change in changes)
    whole = Window(0.0, float(traced.end_ns), marks_ns)
    marked = f"Lines mark changes: {'; '.join(change.change for change in changes)}." if changes else ""
    views = [View("The whole run", marked, _charts(traced, holding, whole))]
    near = window or _close_up(traced)
    near = None if near is None else replace(near, marks_ns=marks_ns)
    if near is not None:
        start, end = (format_duration(at) for at in (near.start_ns, near.end_ns))
        shown = int(near.holds(traced.served["complete_ns"].astype(np.float64)).sum())
        why = "" if window is not None else ", where the slowest request was served"
        remark = f"{count_of(shown, 'request')} between {start} and {end}{why}."
        views.append(View("A closer look", remark, _charts(traced, holding, near)))
    members = traced.members()
    for disk in list(members)[:MOST_MEMBERS_DRAWN]:
        member = members[disk]
        remark = f"{count_of(len(member.served), 'request')}."
        if len(members) > MOST_MEMBERS_DRAWN:
            remark += f" The first {MOST_MEMBERS_DRAWN} of {len(members)} disks are drawn."
        charts = _device_charts(member, holding_of(member), near or whole)
        views.append(View(member_name(disk).capitalize(), remark, charts))
    return views


def _close_up(traced: TracedRun) -> Window | None:
    """The window around the slowest request's completion; None if the run is short enough to show whole."""
    slowest = slowest_request(traced)
    count = len(traced.served)
    if slowest is None or count < 2 * CLOSE_UP_REQUESTS:
        return None
    last = min(count - 1, slowest + CLOSE_UP_REQUESTS // 5)
    first = max(0, last - CLOSE_UP_REQUESTS)
    start, end = (float(traced.served["complete_ns"][index]) for index in (first, last))
    return Window(start, end) if end > start else None


def _charts(traced: TracedRun, holding: Holding, window: Window) -> list[Markup]:
    """The charts of a run; an array's positions are drawn disk by disk."""
    return [
        *_device_charts(traced, holding, window),
        latencies_chart(
            "Latencies",
            _latency_dots(traced),
            window,
            "One dot per I/O of a job, at its end, with the latency that the job saw.",
        ),
    ]


def _device_charts(traced: TracedRun, holding: Holding, window: Window) -> list[Markup]:
    """The charts of a disk, or of all disks of an array together."""
    served = traced.served
    data = served["operation"] != FLUSH
    positions = []
    for index, submitter in enumerate(traced.submitters):
        rows = served[(traced.submitter_of == index) & data]
        positions.append(
            PositionSeries(
                submitter.name,
                submitter.appearance,
                rows["dispatch_ns"].astype(np.float64),
                rows["complete_ns"].astype(np.float64),
                rows["sector"].astype(np.float64) * SECTOR_BYTES,
            )
        )
    head = None
    if traced.has_head:
        head = HeadPath(
            served["complete_ns"].astype(np.float64),
            served["head_complete"].astype(np.float64) * SECTOR_BYTES,
        )
    arrive, dispatch, complete = (
        served[name].astype(np.float64) for name in ("arrive_ns", "dispatch_ns", "complete_ns")
    )
    holders = [
        Holder(submitter.name, submitter.appearance, index)
        for index, submitter in enumerate(traced.submitters)
    ]
    path = "The grey line is the path of the head." if head else "The device has no head."
    sharing = (
        "The time up to a completion counts for the completed request."
        if traced.has_head
        else "The device serves many requests at once, and they share each moment."
    )
    where = position_chart("Positions", positions, head, window, f"One dot per completed request. {path}")
    return [
        *([where] if traced.disks == 1 else []),
        holders_chart(
            "Who held the device", holders, holding, window, f"A full band means all of the time. {sharing}"
        ),
        depths_chart(
            "Depths",
            Steps.between(arrive, dispatch),
            Steps.between(dispatch, complete),
            window,
            "Requests waiting above the device, and requests in it: means and extremes.",
        ),
    ]


def _latency_dots(traced: TracedRun) -> list[LatencyDots]:
    ios = traced.timeline.ios
    series = []
    for submitter in traced.submitters:
        if submitter.job is not None:
            rows = ios[ios["job"] == submitter.job]
            ends = rows["end_ns"].astype(np.float64)
            series.append(LatencyDots(submitter.name, submitter.appearance, ends, ends - rows["start_ns"]))
    return series


def _distributions(traced: TracedRun) -> list[Markup]:
    """Distributions of each job's measured I/Os; its fsync calls are a separate series."""
    series = []
    for submitter, job in zip(traced.submitters, traced.timeline.run.jobs, strict=False):
        data = LatencyHistogram.merged(entry.latency for entry in job.data_directions())
        if data.count:
            series.append(LatencySeries(submitter.name, submitter.appearance, data))
    for job in traced.timeline.run.jobs:
        calls = LatencyHistogram.merged(e.latency for e in job.directions if e.direction == "sync")
        if calls.count:
            slot = len(traced.submitters) + len(series)
            series.append(LatencySeries(f"{job.name} fsync", Appearance(slot), calls))
    if not series:
        return []
    return [
        exceedance_chart("How slow, how often", series, "The share of I/Os slower than a given latency."),
        density_chart("Where latencies lie", series, "The mark is the median, the tick the 99th percentile."),
    ]
