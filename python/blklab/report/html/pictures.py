"""A report's charts as SVG files of their own, with a line to cite each."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape

from markupsafe import Markup

from blklab.report.documents.comparison import CompareDocument
from blklab.report.drawing.palette import COLOURS, Appearance
from blklab.report.drawing.svg import CHARACTER_WIDTH, element, group, label, mark
from blklab.report.html.page import style_sheet

_DRAWING = re.compile(r"<svg (.*?)>(.*?)</svg>", re.DOTALL)
_TITLE = re.compile(r"<strong>(.*?)</strong>")
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_LABEL = re.compile(r'aria-label="([^"]*)"')
_FOR_POINTERS = re.compile(r' data-tip="[^"]*"|<path [^>]*class="curve-target"[^>]*></path>')
_VARIABLE = re.compile(r"(--[a-z-]+): ([^;]+);")
_USE = re.compile(r"var\((--[a-z-]+)\)")
_RULE = re.compile(r"^svg (\.[^{]+|text) (\{.*\})$", re.MULTILINE)
_CLASS = re.compile(r'class="([^"]*)"')
_EDGE, _LINE = 10.0, 24.0


@dataclass(frozen=True)
class Picture:
    """A chart as an SVG file."""

    title: str
    description: str
    """The chart in words."""
    svg: Markup


def picture_of(
    figure: Markup, subject: str, looks: Mapping[str, Appearance], style: Markup | None = None
) -> Picture:
    """The first drawing of a figure (the wide one, if there are two) beneath its title and a legend.

    Args:
        figure: The chart in its frame.
        subject: Its workload, goal or sweep, for the title.
        looks: Appearances of the schedulers, for the legend.
        style: Its style sheet; None: only the rules that the drawing needs, with the colours of paper, for
            programs that know no variables.
    """
    title = _first(_TITLE, figure)
    attributes, content = _DRAWING.findall(figure)[0]
    width, height = (float(number) for number in _SIZE.findall(attributes)[0])
    # Charts that name their rows need no legend.
    legend = None if 'class="name"' in content else _legend(looks, width)
    top = _EDGE + _LINE * (1 if legend is None else 2)
    if style is None:
        content = _FOR_POINTERS.sub("", content)
        style = _paper_style(f"{legend or ''}{content}")
    # The drawing was made, and its content escaped, by the report's own charts.
    inner = Markup('<svg y="{}" {}>{}</svg>').format(top, Markup(attributes), Markup(content))  # noqa: S704
    description = unescape(_first(_LABEL, Markup(attributes)))  # noqa: S704
    size = width + 2 * _EDGE, top + height
    svg = element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"{-_EDGE:g} 0 {size[0]:g} {size[1]:g}",
            "width": size[0],
            "height": size[1],
            "role": "img",
            "aria-label": description,
        },
        element("style", {}, style),
        label(0, _EDGE + 10, f"{title} ({subject})", css="title"),
        *([] if legend is None else [legend]),
        inner,
    )
    return Picture(title, description, svg)


def cited(
    figure: Markup, subject: str, *, document: CompareDocument, looks: Mapping[str, Appearance]
) -> Markup:
    """A chart of a comparison with a link that saves it as SVG, and a line to cite."""
    source = (
        f"{document.target}, run {document.run}, {document.created_at[:10]}, blklab {document.blklab_version}"
    )
    return with_link(figure, subject, source, looks, prefix=f"{document.run} ")


def with_link(
    figure: Markup, subject: str, source: str, looks: Mapping[str, Appearance], *, prefix: str = ""
) -> Markup:
    """A figure with a link that saves it as SVG, without script or network, and a line to cite.

    Args:
        figure: The chart in its frame.
        subject: Its workload, goal or file, for the title.
        source: Where it comes from, after title and subject.
        looks: Appearances of the schedulers, for the legend.
        prefix: Of the file's name.
    """
    picture = picture_of(figure, subject, looks)
    name = re.sub(r"[^a-z0-9]+", "-", f"{prefix}{subject} {picture.title}".lower()).strip("-")
    source = f"{picture.title} ({subject}), {source}"
    link = {
        "href": f"data:image/svg+xml;base64,{base64.b64encode(picture.svg.encode()).decode()}",
        "download": f"{name}.svg",
        "aria-label": f"Save as SVG: {picture.title}",
    }
    line = element("p", {"class": "cite"}, element("a", link, "SVG"), " ", element("span", {}, source))
    end = "</figure>"
    return Markup("{}{}{}").format(Markup(figure.removesuffix(end)), line, Markup(end))  # noqa: S704


def _paper_style(content: str) -> Markup:
    """Rules for the classes in a drawing, with each variable replaced by its light value."""
    sheet = style_sheet()
    values = dict(_VARIABLE.findall(sheet.partition("}")[0]))
    present = {name for names in _CLASS.findall(content) for name in names.split()}
    series = [
        (f".series-{slot}", light) for slot, (light, _) in enumerate(COLOURS) if f"series-{slot}" in present
    ]
    rules = ["svg{font:13px sans-serif;background:#fff}.title{font-weight:600;font-size:14px}"]
    for selectors, body in _RULE.findall(sheet):
        kept = [one for one in selectors.split(", svg ") if one == "text" or one[1:] in present]
        for own, light in series if "--series" in body else [("", "")]:
            colours = values | {"--series": light}
            resolved = _USE.sub(lambda found, colours=colours: colours[found[1]], body)  # type: ignore[misc]
            rules += [",".join(f"{one}{own}" for one in kept) + resolved] if kept else []
    return Markup("".join(rules))  # noqa: S704 - this package's own


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
