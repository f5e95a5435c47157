"""Descriptions with lists, sweeps, lines and other series: a reader's own study, and its mistakes."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from blklab.errors import SpecError, UsageError
from blklab.labs.studies import study_in
from blklab.labs.studies.described.lists import LONGEST_TEXT, MOST_PARTS, written_out
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.pictures import IntervalPicture, LinePicture
from blklab.labs.studies.replication.report.finding import StudyFinding
from own_studies import quick_run, study_folder

JOB = """; purpose: Random readers beside random writers, more than the disk takes.
; decide-by: iops
; tool: hdparm -t
[readers]
readwrite=randread
blocksize=$block
ioengine=libaio
iodepth=32
direct=1
size=64m
time_based
runtime=500ms
"""
CLAIMS = 'title = "Depths"\nsource = "a note of mine"\n'
TABLE = "scheduler,iops\nnone,4000\nnone,3000\n"
STUDY = """
[lists]
depth = [{ of = "1" }, { of = "8", published = "iops" }]
setting = [{ name = "writes_starved", value = "10" }, { name = "nr_requests", value = "4" }]

[[experiments]]
each = ["depth"]
schedulers = ["none", "mq-deadline"]
workloads = [{ file = "readers.fio", values.block = "4k" }]
[[experiments.parts]]
name = "depth {depth.of}"
title = "A disk that takes {depth.of}"
device = "fixed,latency=1ms,depth={depth.of}"
blocks = 2
[[experiments.parts]]
name = "small depth {depth.of}"
title = "The same in full runs"
device = "fixed,latency=1ms,depth={depth.of}"
quick = false

[[experiments]]
name = "swept"
title = "Two tunables, crossed"
device = "hdd-7200,queue_depth=1"
blocks = 3
workloads = [{ file = "readers.fio", values.block = "4k" }]
[experiments.sweep]
base = "mq-deadline"
levels = { writes_starved = ["10"], nr_requests = ["4"] }

[published.iops]
file = "iops.csv"
column = "iops"

[series]
other = { experiment = "depth 1", tool = "hdparm -t" }
swept = { experiment = "swept" }
"at {depth.of}" = { each = ["depth"], experiment = "depth {depth.of}" }
[series."requests at {depth.of}"]
each = ["depth"]
experiment = "depth {depth.of}"
metric = "requests per second"
divide_by = 1000
[series."size at {depth.of}"]
each = ["depth"]
experiment = "depth {depth.of}"
metric = "bytes per request"

[[values]]
each = ["depth"]
table = "I/Os a second"
name = "depth {depth.of}"
statistic = "arithmetic mean"
ours = "at {depth.of}"
published = "{depth.published}"
schedulers = ["none"]
x = "{depth.of}"

[[values]]
table = "I/Os a second"
name = "elsewhere"
published = "iops"
schedulers = ["none"]
not_asked = "another disk"

[[values]]
each = ["depth"]
table = "thousand requests over depth"
name = "{depth.of}"
ours = "requests at {depth.of}"
schedulers = ["none"]
hidden = true

[[values]]
table = "deep over shallow"
schedulers = ["all schedulers"]
over = "all schedulers"
ours = "at 8"
against = "at 1"
[[values.parts]]
name = "together"
statistic = "ratio"
[[values.parts]]
name = "pair {pair}"
statistic = "pairs"
hidden = true

[[values]]
table = "with another tool"
name = "other"
ours = "other"

[[values]]
table = "over another tool"
statistic = "ratio"
ours = "at 1"
schedulers = ["none"]
over = "none"
against = "other"

[[values]]
each = ["setting"]
table = "effects"
name = "{setting.name}"
statistic = "effect"
ours = "swept"
schedulers = ["mq-deadline:{setting.name}={setting.value}"]
over = "mq-deadline"

[[statements]]
name = "between"
says = "As published."
kind = "published between"
table = "I/Os a second"
between = ["depth 1", "depth 8"]
published = "iops"
scheduler = "none"

[[statements]]
name = "rate"
says = "A request takes a millisecond."
kind = "within"
table = "thousand requests over depth"
at_least = 0.9
at_most = 9
why = "on average {mean}"

[[statements]]
name = "deeper"
says = "A deeper disk is faster."
kind = "higher"
table = "deep over shallow"
than = 2

[[statements]]
name = "pooled"
says = "By {scheduler}."
kind = "higher"
ours = "at 8"
scheduler = "all schedulers"
over = "all schedulers"
against = "at 1"
why = "{count} pairs"

[[statements]]
name = "alone"
says = "All at once."
kind = "within"
ours = "at 1"
scheduler = "all schedulers"
at_least = 900
at_most = 1100

[[statements]]
name = "tool"
says = "hdparm agrees."
kind = "equal"
ours = "at 1"
scheduler = "none"
over = "none"
against = "other"

[[statements]]
name = "undone"
says = "A short queue costs."
kind = "higher"
statistic = "effect"
ours = "swept"
scheduler = "mq-deadline"
over = "mq-deadline:nr_requests=4"

[[statements]]
name = "together"
says = "Nothing interacts ({interaction})."
kind = "no interaction"
ours = "swept"
why = "of {count}"

[[statements]]
name = "matters"
says = "A tunable matters: {mean} times."
kind = "changes"
table = "effects"

[[statements]]
name = "elsewhere"
says = "Only there."
on = ["uml"]
kind = "changes"
table = "effects"

[[pictures]]
name = "lines"
title = "By depth"
note = "Ours."
kind = "lines"
x_axis = "depth"
axis = "I/Os a second"
lines = [
    { label = "ours", table = "I/Os a second" },
    { label = "theirs", table = "I/Os a second", origin = "published", dashed = true },
]

[[pictures]]
name = "pairs"
title = "In pairs"
note = "Each."
rows = [{ table = "deep over shallow", label = "{name}" }, { on = ["uml"], table = "effects" }]
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the study."""
    return _folder(tmp_path_factory.mktemp("studies"), STUDY)


@pytest.fixture(scope="module")
def finding(own: Path) -> StudyFinding:
    """A quick run of it on the simulator."""
    return quick_run(own)


def _folder(parent: Path, study: str) -> Path:
    return study_folder(parent / "own", claims=CLAIMS, study=study, job=JOB, table=TABLE)


def test_a_part_is_made_for_every_item(own: Path) -> None:
    study = study_in(own)
    quick = [one.name for one in study.experiments(StudyOptions(quick=True), study.files())]
    assert quick == ["depth 1", "depth 8", "swept"]
    full = study.experiments(StudyOptions(), study.files())
    assert [one.name for one in full][:4] == ["depth 1", "small depth 1", "depth 8", "small depth 8"]
    assert full[2].title == "A disk that takes 8"
    assert full[2].spec.target == "sim:fixed,latency=1ms,depth=8"
    (sweep,) = full[-1].spec.sweeps
    assert len(sweep.cells()) == 4


def test_values_of_other_series_of_no_run_and_of_another_tool(finding: StudyFinding) -> None:
    result = finding.result
    deep = result.value("I/Os a second", "depth 8")
    assert deep.published is not None and deep.published.value == 3500
    assert deep.ours is not None and deep.ours.value == pytest.approx(8000, rel=0.02)
    assert result.value("I/Os a second", "depth 1").published is None
    elsewhere = result.value("I/Os a second", "elsewhere")
    assert (elsewhere.ours, elsewhere.not_asked) == (None, "another disk")
    together = result.value("deep over shallow", "together").ours
    assert together is not None and together.value == pytest.approx(8, rel=0.02)
    tables = {one.table for one in result.values}
    assert tables == {"I/Os a second", "deep over shallow", "effects"}


def test_effects_are_averaged_over_the_combinations(finding: StudyFinding) -> None:
    rates: dict[str, list[float]] = {}
    for sample in finding.records["swept"].samples:
        (job,) = sample.jobs
        logs = rates.setdefault(sample.cell.scheduler, [])
        logs.append(math.log(sum(one.ios for one in job.directions) / job.runtime_ns))
    mean = {label: sum(logs) / len(logs) for label, logs in rates.items()}
    batch, both = "mq-deadline:nr_requests=4", "mq-deadline:writes_starved=10:nr_requests=4"
    expected = (mean[batch] - mean["mq-deadline"] + mean[both] - mean["mq-deadline:writes_starved=10"]) / 2
    found = finding.result.value("effects", "nr_requests").ours
    assert found is not None and found.value == pytest.approx(math.exp(expected))
    assert found.value != pytest.approx(1, rel=1e-3)
    undone = finding.result.statement("undone")
    assert undone.outcome == "undecided"
    assert float(undone.found.split()[0]) == pytest.approx(1 / found.value, rel=0.02)


def test_statements_on_rows_and_on_all_schedulers_together(finding: StudyFinding) -> None:
    found = {one.name: one for one in finding.result.statements}
    assert list(found) == [
        "between",
        "rate",
        "deeper",
        "pooled",
        "alone",
        "tool",
        "undone",
        "together",
        "matters",
    ]
    assert found["between"].outcome == "holds"
    assert (found["rate"].outcome, found["rate"].why.split()[:2]) == ("holds", ["on", "average"])
    assert found["deeper"].outcome == "holds"
    assert (found["pooled"].outcome, found["pooled"].why) == ("holds", "4 pairs")
    assert found["alone"].outcome == "holds"
    assert (found["tool"].outcome, found["tool"].found) == ("undecided", "the load came from blksim")
    assert found["together"].says == "Nothing interacts (writes_starved=10 with nr_requests=4)."
    assert found["together"].why == "of 1"
    assert found["matters"].found.startswith("writes_starved ")
    assert re.fullmatch(r"A tunable matters: [\d.]+ times\.", found["matters"].says)


def test_all_schedulers_have_no_pair_with_one(finding: StudyFinding, tmp_path: Path) -> None:
    one = 'over = "all schedulers"\nagainst = "at 1"\nwhy'
    study = study_in(_folder(tmp_path, STUDY.replace(one, one.replace("all schedulers", "none"))))
    pooled = study.read(finding.options, study.files(), finding.records).statement("pooled")
    assert (pooled.outcome, pooled.why) == ("undecided", "0 pairs")


def test_lines_have_the_rows_with_a_place(finding: StudyFinding) -> None:
    lines, pairs = finding.result.pictures
    assert isinstance(lines, LinePicture)
    ours, theirs = lines.series
    assert (ours.x, ours.dashed) == ((1.0, 8.0), False)
    assert (theirs.x, theirs.y, theirs.dashed) == ((8.0,), (3500.0,), True)
    assert isinstance(pairs, IntervalPicture)
    assert [row.label for row in pairs.rows] == ["together", *(f"pair {number}" for number in (1, 2, 3, 4))]


def test_a_study_is_read_without_runs_and_without_experiments(finding: StudyFinding) -> None:
    study, records = study_in(finding.folder.folder), finding.records
    none = {name: record.model_copy(update={"samples": []}) for name, record in records.items()}
    result = study.read(finding.options, finding.folder, none)
    outcomes = {one.name: one.outcome for one in result.statements}
    assert set(outcomes.values()) == {"undecided"}
    assert result.statement("rate").why == "on average -"
    assert all(value.ours is None and value.not_asked for value in result.values)
    left_out = {name: record for name, record in records.items() if name != "depth 1"}
    result = study.read(finding.options, finding.folder, left_out)
    assert result.statement("pooled").outcome == "undecided"
    assert result.value("deep over shallow", "together").ours is None


MISTAKES = {
    "too large a sweep": (
        '["10"]',
        '["1"], a = ["1", "2", "3"], b = ["1", "2", "3", "4"]',
        "= 80 combinations",
    ),
    "a list": ('depth = [{ of = "1" }', 'depth = "x"\nother = [{ of = "1" }', "lists: each must be a list"),
    "each of another kind": (
        'each = ["depth"]\ntable',
        'each = "depth"\ntable',
        "each: must be a list of names",
    ),
    "each of none": ('each = ["setting"]', 'each = ["settings"]', "each: there is no list 'settings'"),
    "a key of no item": (
        "takes {depth.of}",
        "takes {depth.off}",
        "{depth.off}: no item of lists.depth has 'off'",
    ),
    "a key that items lack": ("takes {depth.of}", "takes {depth.published}", "is no text in every item"),
    "without each": ('name = "together"\nsays', 'name = "{setting.name}"\nsays', "needs each with 'setting'"),
    "parts of another kind": ("hidden = true", 'parts = "x"', "parts: must be an array of tables"),
    "two of a key": ('"at {depth.of}" =', '"at" =', "two parts are called 'at'"),
    "a key that a list makes": (
        '[series."size at {depth.of}"]',
        '[series."at 1"]\nexperiment = "swept"\n[series."size at {depth.of}"]',
        "two parts are called 'at 1'",
    ),
    "a label of the sweep": (
        "blocks = 3",
        'blocks = 3\nschedulers = ["mq-deadline=none"]',
        "is needed by the",
    ),
    "a sweep": ('base = "mq-deadline"', 'base = "../x"', "experiment 'swept': "),
    "a sweep's level": ('nr_requests = ["4"]', 'nr_requests = ["4 5"]', "experiment 'swept': "),
    "no pair": ('over = "all schedulers"\nours', "ours", "'ratio' needs over"),
    "neither ours nor a reason": ('not_asked = "another disk"', "", "needs ours, or published and not_asked"),
    "another tool": ('tool = "hdparm -t"', 'tool = "hdparm -T"', "there is no tool 'hdparm -T'"),
    "a series of over": ('against = "other"', 'against = "others"', "there is no series 'others'"),
    "a kind for rows": ('kind = "within"', 'kind = "equal"', "'equal' is not about a table's rows"),
    "no rows between": ('between = ["depth 1", "depth 8"]', "", "'published between' needs between"),
    "no axis": ('x_axis = "depth"', "", "'lines' needs lines and x_axis"),
    "a swept scheduler": (
        'over = "mq-deadline:nr_requests=4"',
        'over = "mq-deadline:nr_requests=5"',
        "'undone'",
    ),
    "a backend": ('on = ["uml"]\nkind', 'on = ["mars"]\nkind', "on.0: must be 'sim'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named(name: str, tmp_path: Path) -> None:
    old, new, says = MISTAKES[name]
    assert old in STUDY, old
    folder = _folder(tmp_path, STUDY.replace(old, new, 1))
    with pytest.raises((SpecError, UsageError)) as refused:
        study_in(folder).experiments(StudyOptions(), study_in(folder).files())
    assert says in str(refused.value)
    assert str(folder) in str(refused.value)


def test_an_experiment_may_differ_by_backend_but_not_be_there_twice(tmp_path: Path) -> None:
    again = '[[experiments]]\nname = "swept"\ntitle = "Elsewhere"\nlike = "swept"\non = ["uml"]\n'
    both = 'backends = ["sim", "uml"]\n' + STUDY.replace("[published.iops]", f"{again}[published.iops]")
    folder = _folder(tmp_path, both)
    with pytest.raises(SpecError, match="two experiments are called 'swept'"):
        study_in(folder)
    title = 'title = "Two tunables, crossed"'
    (folder / "study.toml").write_text(both.replace(title, f'{title}\non = ["sim"]'), "utf-8")
    study = study_in(folder)
    titles = [study.experiments(StudyOptions(place), study.files())[-1].title for place in ("sim", "uml")]
    assert titles == ["Two tunables, crossed", "Elsewhere"]


def test_lists_make_no_more_than_a_page() -> None:
    many = {"a": [str(number) for number in range(100)]}
    with pytest.raises(ValueError, match=f"more than {MOST_PARTS:,}"):
        written_out({"lists": many, "values": [{"each": ["a", "a", "a"]}]})


def test_lists_make_no_longer_texts_than_a_page() -> None:
    half = "x" * (LONGEST_TEXT // 2)
    with pytest.raises(ValueError, match=f"longer than {LONGEST_TEXT:,} characters"):
        written_out({"lists": {"a": [half]}, "values": [{"each": ["a"], "table": "{a} {a}"}]})


def test_an_item_joins_a_list_as_its_own_items() -> None:
    content = {
        "lists": {"a": [{"all": ["x", "y"]}, {"none": 1}]},
        "values": [
            {"each": ["a"], "schedulers": ["{a.all}", "z"], "over": "{a.none}", "name": "{scheduler}"}
        ],
    }
    assert written_out(content)["values"] == [
        {"schedulers": ["x", "y", "z"], "name": "{scheduler}"},
        {"schedulers": ["z"], "over": 1, "name": "{scheduler}"},
    ]
