"""The report's charts as pictures of their own, which notebooks show."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import unescape

from markupsafe import Markup

from blklab.analysis.values import experiment_values
from blklab.records.experiment import ExperimentRecord
from blklab.report.documents.comparison import CompareDocument
from blklab.report.drawing.palette import Appearance, appearances
from blklab.report.drawing.svg import CHARACTER_WIDTH, element, group, label, mark
from blklab.report.html.page import page_style
from blklab.report.html.sections import workload_section

_DRAWING = re.compile(r"<svg (.*?)>(.*?)</svg>", re.DOTALL)
_TITLE = re.compile(r"<strong>(.*?)</strong>")
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_LABEL = re.compile(r'aria-label="([^"]*)"')
_OWN_STYLE = (
    "svg{font:13px system-ui,-apple-system,'Segoe UI','Noto Sans','DejaVu Sans',sans-serif;"
    "font-variant-numeric:tabular-nums;background:var(--page)}.title{font-weight:600;font-size:14px}"
)
"""The page sets these on its body, which a picture does not have."""
_EDGE, _LINE = 10.0, 24.0


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
    """The first drawing of a figure (the wide one, if there are two) beneath its title and a legend."""
    title = _first(_TITLE, figure)
    attributes, content = _DRAWING.findall(figure)[0]
    width, height = (float(number) for number in _SIZE.findall(attributes)[0])
    # Charts that name their rows need no legend.
    legend = None if 'class="name"' in content else _legend(looks, width)
    top = _EDGE + _LINE * (1 if legend is None else 2)
    whole = f"{-_EDGE:g} 0 {width + 2 * _EDGE:g} {top + height:g}"
    # The drawing was made, and its content escaped, by the report's own charts.
    inner = Markup('<svg y="{}" {}>{}</svg>').format(top, Markup(attributes), Markup(content))  # noqa: S704
    description = _first(_LABEL, Markup(attributes))  # noqa: S704
    picture = element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": whole,
            "width": width + 2 * _EDGE,
            "height": top + height,
            "role": "img",
            "aria-label": description,
        },
        element("style", {}, page_style(), Markup(_OWN_STYLE)),  # noqa: S704 - this package's own
        label(0, _EDGE + 10, f"{title} ({workload})", css="title"),
        *([] if legend is None else [legend]),
        inner,
    )
    return Chart(workload, title, description, str(picture))


def _legend(looks: Mapping[str, Appearance], width: float) -> Markup:
    """Marks and names in one row, as many as fit."""
    parts, x = [], 6.0
    for name, look in looks.items():
        room = 24 + len(name) * CHARACTER_WIDTH
        if x + room > width:
            parts.append(label(x, _EDGE + 34, "…"))
            break
        parts += [mark(x, _EDGE + 30, 5, look), label(x + 10, _EDGE + 34, name)]
        x += room
    return group(parts)


def _first(pattern: re.Pattern[str], markup: Markup) -> str:
    found = pattern.search(markup)
    return unescape(found.group(1)) if found else ""
