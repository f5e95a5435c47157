"""The report's charts as pictures of their own, which notebooks show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from blklab.analysis.values import experiment_values
from blklab.records.experiment import ExperimentRecord
from blklab.report.documents.comparison import CompareDocument
from blklab.report.drawing.palette import Appearance, appearances
from blklab.report.html.page import page_style
from blklab.report.html.pictures import picture_of
from blklab.report.html.sections import workload_section

_OWN_STYLE = (
    "svg{font:13px system-ui,-apple-system,'Segoe UI','Noto Sans','DejaVu Sans',sans-serif;"
    "font-variant-numeric:tabular-nums;background:var(--page)}.title{font-weight:600;font-size:14px}"
)
"""The page sets these on its body, which a picture does not have."""


@dataclass(frozen=True)
class Chart:
    """A chart of the report."""

    workload: str
    title: str
    description: str
    """The chart in words."""
    svg: str
    """The picture as the text of one SVG file, with its style; light or dark as the reader prefers."""

    def __repr__(self) -> str:
        """Workload and title."""
        return f"<Chart of {self.workload}: {self.title}>"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"image/svg+xml": self.svg, "text/plain": self.description}


def charts_of(record: ExperimentRecord, document: CompareDocument, workloads: Sequence[str]) -> list[Chart]:
    """The charts of workloads: means, against the leader, runs in order, distributions, further metrics."""
    record = record.without_uncounted_slots()
    looks, values = appearances(record.spec.schedulers), experiment_values(record)
    charts = []
    for workload in record.spec.workloads:
        if workload.name not in workloads:
            continue
        section = workload_section(record, document, values, workload, looks, "workload")
        figures = [
            section.forest,
            section.relative,
            section.sequence,
            *section.distributions,
            *section.panels,
        ]
        charts += [_chart(workload.name, figure, looks) for figure in figures if figure is not None]
    return charts


def _chart(workload: str, figure: Markup, looks: Mapping[str, Appearance]) -> Chart:
    picture = picture_of(figure, workload, looks, page_style() + Markup(_OWN_STYLE))  # noqa: S704 - own
    return Chart(workload, picture.title, picture.description, str(picture.svg))
