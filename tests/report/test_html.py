"""The HTML report as text: complete, escaped, and without external requests."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from markupsafe import Markup
from report_cases import CASES, HOSTILE, analysed, html_of

from blklab.analysis.metrics import METRICS
from blklab.analysis.verdict import analyse
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import LatencyHistogram
from blklab.report.charts.distribution import log_density
from blklab.report.documents.comparison import compare_document
from blklab.report.html.comparison import render_html
from blklab.report.html.page import contents_of, style_sheet
from blklab.report.summary.reproduce import repeat_command
from blklab.testing.experiments import bin_value_ns, make_experiment, make_spec, make_target

OF_COMMANDS = {"wall_time", "processor_time", "io_wait", "bytes_read", "bytes_written"}
NEED_SEVERAL_JOBS = {"jain_index", "share_deviation", "longest_wait"}
VOID = {"meta", "link", "br", "img", "hr", "input"}


class _Outline(HTMLParser):
    """Collects elements with their attributes and text, and checks that they are closed in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.raw:
            self.raw[self.open[-1]].append(data)
        else:
            self.text.append(data)

    def having(self, attribute: str) -> list[str]:
        return [value for _, given in self.elements if (value := given.get(attribute)) is not None]


def _outline(html: str) -> _Outline:
    outline = _Outline()
    outline.feed(html)
    outline.close()
    assert outline.open == []
    return outline


def _html(record: ExperimentRecord) -> str:
    return render_html(record, compare_document(record, analyse(record)))


@pytest.mark.parametrize("case", CASES)
def test_well_formed_and_self_contained(case: str) -> None:
    outline = _outline(html_of(case))
    tags = {tag for tag, _ in outline.elements}
    assert not tags & {"img", "iframe", "object", "embed", "base", "form", "b-none"}
    for attribute in ("src", "href", "srcset", "action", "xlink:href", "data"):
        assert all(
            value.startswith(("#", "data:image/png;base64,", "data:image/svg+xml;base64,"))
            for value in outline.having(attribute)
        )
    assert not re.search(r"@import|url\(", "".join(outline.raw["style"]))
    assert not any(
        name.startswith("on") or name == "style" for _, given in outline.elements for name in given
    )
    ids = outline.having("id")
    assert len(ids) == len(set(ids))
    targets = [value[1:] for value in outline.having("href") if value.startswith("#")]
    assert set(targets) <= set(ids)


def test_no_address_in_what_is_ours() -> None:
    assert "://" not in html_of("decided")


def test_hostile_text_stays_text() -> None:
    record = analysed("damaged")[0]
    html = _html(record)
    assert HOSTILE not in html
    assert "<b>name</b>" not in html
    assert "<i>none</i>" not in html
    outline = _outline(html)
    text = "".join(outline.text)
    assert text.count(HOSTILE) >= 4  # purpose, job file, model, warning
    assert "<i>none</i> & \"co\" 'x'" in text
    assert [given.get("type") for tag, given in outline.elements if tag == "script"] == [
        "application/json",
        None,
    ]


def test_hostile_text_of_every_field_stays_text() -> None:
    # JSON has no other quoting than its own: every string of the record becomes hostile.
    record = analysed("decided")[0]
    plain = record.model_dump(mode="json")

    def poison(value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {name: poison(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [poison(one, key) for one in value]
        free_text = (
            "summary",
            "model",
            "cpu",
            "kernel",
            "purpose",
            "text",
            "started_at",
            "created_at",
            "source",
        )
        return f"{value}{HOSTILE}" if isinstance(value, str) and key in free_text else value

    poisoned = ExperimentRecord.model_validate(poison(plain))
    outline = _outline(_html(poisoned))
    assert sum(1 for tag, _ in outline.elements if tag == "script") == 2
    assert "img" not in {tag for tag, _ in outline.elements}


@pytest.mark.parametrize("case", CASES)
def test_embedded_figures_are_the_document(case: str) -> None:
    record, analysis = analysed(case)
    html = html_of(case)
    embedded = re.search(r'<script type="application/json" id="blklab-data">(.*?)</script>', html, re.DOTALL)
    assert embedded is not None
    assert not set("<>&") & set(embedded[1])
    expected = compare_document(record, analysis).model_dump(mode="json", by_alias=True)
    assert json.loads(embedded[1]) == json.loads(json.dumps(expected))


def test_only_our_script_may_run() -> None:
    html = html_of("equal")
    script = html.rsplit("<script>", 1)[1].split("</script>", 1)[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert (
        f"script-src &#39;sha256-{digest}&#39;" in policy[1] or f"script-src 'sha256-{digest}'" in policy[1]
    )
    assert policy[1].startswith("default-src 'none'")


def test_order_of_the_content() -> None:
    contents = re.compile(r"<nav.*?</nav>", re.DOTALL)
    text = "".join(_outline(contents.sub("", html_of("suspicious"))).text)
    order = [
        "No recommendation",
        "The control cached-read differs",
        "IOPS, which decides",
        "Find what else was at work",
        "1 warning",
        "Against none, block by block",
        "Other figures",
        "how many were slower",
        "where most lie",
        "Every run: IOPS",
        "Each against each",
        "How to read this",
        "Machine, disk and settings",
        "Schedulers as requested",
        "Repeat it",
        "Seed",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_disturbances_are_counted_above_and_listed_below_the_workloads() -> None:
    html = html_of("purpose")
    places = [
        html.index(words)
        for words in ("Disturbed from outside: 2 of", 'id="workloads"', 'id="meanwhile-title"')
    ]
    assert places == sorted(places)
    assert html.index("of the CPU time stolen (typical") > places[-1]
    assert "<code>--precondition</code> may reach a steady state" in html


def test_every_chart_of_every_workload() -> None:
    record = analysed("undecided")[0]
    outline = _outline(_html(record))
    kinds = outline.having("data-chart")
    for kind in ("forest", "relative", "exceedance", "density", "sequence"):
        assert kinds.count(kind) >= len(record.spec.workloads)
    assert kinds.count("exceedance") == 3  # reads, and the log's writes and syncs
    panels = {kind.removeprefix("panel-") for kind in kinds if kind.startswith("panel-")}
    # All but the one that decides: IOPS in one workload, sync latency, which only the log has, in the other;
    # neither load ends by itself.
    others = {"sync_latency_p99", "makespan", *NEED_SEVERAL_JOBS, *OF_COMMANDS}
    assert panels == METRICS.keys() - others
    images = [given for tag, given in outline.elements if tag == "svg" and given.get("role") == "img"]
    assert images
    assert all(len(given["aria-label"] or "") > 20 for given in images)


def test_every_chart_can_be_saved_and_cited() -> None:
    record = analysed("decided")[0]
    outline = _outline(_html(record))
    links = [given for tag, given in outline.elements if tag == "a" and "download" in given]
    assert len(links) == len(outline.having("data-chart"))
    names = [given["download"] for given in links]
    assert len(set(names)) == len(names) - 1  # the chart at the head is also in its workload's section
    for link in links:
        assert re.fullmatch(r"[a-z0-9-]+\.svg", link["download"] or "")
        svg = base64.b64decode((link["href"] or "").partition(",")[2]).decode()
        assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - our own drawing
        # Programs for drawings know no variables.
        assert "var(" not in svg
    source = (
        f"{record.spec.target}, run {record.run_id}, {record.created_at[:10]}, blklab {record.blklab_version}"
    )
    assert "".join(outline.text).count(source) == len(links)


def test_contents_lead_to_every_section() -> None:
    html = html_of("undecided")
    nav = html[html.index('<nav class="contents"') : html.index("</nav>")]
    titles = dict(re.findall(r'<a href="#([^"]+)">([^<]+)</a>', nav))
    assert titles["workload-1"] == analysed("undecided")[0].spec.workloads[0].name
    assert list(titles)[-3:] == ["reading-title", "machine-title", "again-title"]
    two = Markup('<h2 id="first">First</h2><h2 id="second">Second</h2>')
    assert contents_of(two) == []
    assert contents_of(two + Markup('<h2 id="third">Third</h2>'))[2] == ("third", "Third")


def test_says_how_to_repeat_and_what_was_found() -> None:
    record = analysed("decided")[0]
    text = "".join(_outline(_html(record)).text)
    assert repeat_command(record.spec) in text
    assert record.spec.workloads[0].text in text
    for expected in ("6.1.0-21-amd64", "EXAMPLE HDD 4000", "wbt_lat_usec", "iosched/fifo_batch", "fio 3.33"):
        assert expected in text


def test_every_block_of_the_style_sheet_ends_once() -> None:
    """A brace too many would take the rule behind it along."""
    depths = itertools.accumulate({"{": 1, "}": -1}.get(letter, 0) for letter in style_sheet())
    *within, last = depths
    assert min(within) == last == 0


def test_settings_that_change_between_runs_are_marked() -> None:
    record = analysed("equal")[0]
    assert "changed between runs" not in _html(record)
    last = record.samples[-1]
    leaky = last.model_copy(update={"settings": last.settings | {"vda/nr_requests": "64"}})
    record = record.model_copy(update={"samples": [*record.samples[:-1], leaky]})
    assert "changed between runs" in _html(record)


def test_a_control_that_differs_is_no_winner() -> None:
    text = "".join(_outline(html_of("suspicious")).text)
    assert text.count("⚠ differs") == 2
    # The other workload, in the overview and at its head: what differs there may have the same cause.
    assert (text.count("? withheld"), text.count("★ best")) == (2, 0)
    assert "Find what else was at work (other load" in text
    assert "⚠ differs" not in html_of("decided")


def test_density_is_complete_and_smooth() -> None:
    """Bins spread over their width: shares add up, and evenly filled bins make no ripple."""
    bins = {bin_value_ns(value): 1 for value in range(1 << 20, 1 << 22)}
    widths = {value: 1 << (value.bit_length() - 7) for value in bins}
    even = LatencyHistogram(
        count=sum(widths.values()), sum_ns=0, min_ns=1 << 20, max_ns=(1 << 22) - 1, bins=widths
    )
    shares = log_density(even, 60)
    assert sum(shares.values()) == pytest.approx(1)
    inner = [shares[part] for part in sorted(shares)[1:-1]]
    growth = [later / earlier for earlier, later in itertools.pairwise(inner)]
    # An even density per ns grows by the parts' own ratio on a logarithmic axis.
    assert all(step == pytest.approx(10 ** (1 / 60), rel=0.02) for step in growth)


def test_no_apply_command_for_a_model_or_without_a_winner() -> None:
    spec = make_spec(target="sim:hdd-7200")
    record = make_experiment(spec, target=make_target(spec, backend="sim"))
    assert "blklab apply" not in _html(record)
    assert "blklab apply" not in html_of("undecided")
    assert "modelled disk" in _html(record)


def test_same_record_same_report() -> None:
    assert _html(CASES["undecided"]()) == html_of("undecided")


def test_size_stays_reasonable() -> None:
    assert len(html_of("twelve").encode()) < 1_500_000


def test_a_goal_is_drawn_with_its_front_and_intervals() -> None:
    outline = _outline(html_of("purpose"))
    text = " ".join("".join(outline.text).split())
    assert outline.having("data-chart").count("pareto") == 1
    assert "The goal: iops=0.6,latency_p99=0.4" in text
    assert "on the front: none and kyber" in text
    assert "these goals conflict, so the choice depends on the weights" in text
    described = [given["aria-label"] or "" for tag, given in outline.elements if given.get("role") == "img"]
    pareto = [words for words in described if words.startswith("IOPS and latency p99 at once")]
    assert len(pareto) == 2  # a wide drawing and a narrow one
    assert all(f"{name}: IOPS" in pareto[0] for name in ("none", "kyber", "bfq", "mq-deadline"))


def test_marked_blocks_and_unsteady_runs_are_said() -> None:
    text = " ".join("".join(_outline(html_of("purpose")).text).split())
    assert "2 blocks marked" in text
    assert "20 % of the CPU time stolen (typical: 0.1 % of the CPU time stolen)" in text
    assert "Without the 2 marked blocks the answer is the same: best (kyber)." in text
    assert "\u26a0 changing" in text
    assert "During the runs" not in "".join(_outline(html_of("decided")).text)


def test_effects_of_a_sweep_are_drawn_and_tabled() -> None:
    outline = _outline(html_of("swept"))
    text = " ".join("".join(outline.text).split())
    assert "Sweep of bfq" in text
    assert "slice_idle=0 with low_latency=0interaction" in text.replace(" interaction", "interaction")
    described = [given["aria-label"] or "" for tag, given in outline.elements if given.get("role") == "img"]
    effects = next(words for words in described if "against the default" in words)
    assert "slice_idle=0 +30" in effects
    assert "better" in effects
