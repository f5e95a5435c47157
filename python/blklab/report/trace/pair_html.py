"""Renders two runs side by side as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blklab.report.charts.time_axis import Window
from blklab.report.html.page import inert_json, page_environment, page_script, page_style
from blklab.report.html.shell import with_shell
from blklab.report.trace.holding import Holding
from blklab.report.trace.html import View, legend_of, views_of
from blklab.report.trace.pair import ExplainPairDocument, pair_rows
from blklab.report.trace.submitters import TracedRun


@dataclass(frozen=True)
class _Row:
    """One view of both runs, in the order of the schedulers."""

    title: str
    views: list[View]


def render_pair_page(
    runs: Sequence[tuple[TracedRun, Holding]], document: ExplainPairDocument, window: Window | None = None
) -> str:
    """The page as the text of one HTML file (UTF-8).

    Args:
        runs: Both runs, with their holding times.
        document: Their document.
        window: The part for the close-up; None: around the slowest request of each.
    """
    script, digest = page_script()
    views = [views_of(traced, holding, window) for traced, holding in runs]
    rows = [_Row(of_both[0].title, list(of_both)) for of_both in zip(*views, strict=False)]
    page = (
        page_environment()
        .get_template("explain_pair.html.j2")
        .render(
            document=document,
            rows=pair_rows(document),
            legend=legend_of(runs[0][0]),
            views=rows,
            style=page_style(),
            script=script,
            script_digest=digest,
            data=inert_json(document),
        )
    )
    return with_shell(page, f"{document.workload}, {document.target}", "blklab explain")
