"""The shell of pages with several charts: contents, and charts to save and to cite."""

from __future__ import annotations

import base64
import re

from markupsafe import Markup

from blklab.report.charts.heat_map import heat_map
from blklab.report.html.shell import with_shell

CHART = heat_map("Latencies over time", 1_000_000, [1000, 2000], [[1, 2], [3, 4]], "a note")


def _page(*parts: str) -> str:
    return f'<body><main id="x" class="workload">{"".join(parts)}</main><p>end</p></body>'


def _section(number: int) -> str:
    return f'<h2 id="part-{number}">Part &lt;{number}&gt;</h2>'


def test_each_chart_can_be_saved_and_cited() -> None:
    page = with_shell(_page(str(CHART), str(CHART)), "a <b>.csv", "blklab where")
    links = re.findall(r'href="data:image/svg\+xml;base64,([^"]+)" download="([^"]+)"', page)
    assert len(links) == 2
    picture, name = links[0]
    assert name == "a-b-csv-latencies-over-time.svg"
    assert base64.b64decode(picture).startswith(b"<svg ")
    assert page.count("Latencies over time (a &lt;b&gt;.csv), blklab where") == 2
    assert page.endswith("</main><p>end</p></body>")


def test_pages_of_three_sections_have_contents() -> None:
    page = with_shell(_page(*map(_section, (1, 2, 3))), "x", "y")
    assert page.index('<nav class="contents"') > page.index("<main")
    assert '<li><a href="#part-2">Part &lt;2&gt;</a></li>' in page
    assert "<nav" not in with_shell(_page(*map(_section, (1, 2))), "x", "y")


def test_a_frame_without_a_drawing_stays_as_it_is() -> None:
    page = _page(Markup("<figure><p>nothing to draw</p></figure>"))
    assert with_shell(page, "x", "y") == page.replace('workload">', 'workload">\n')
