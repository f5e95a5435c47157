"""Studies that a folder describes: a reader's own on the simulator, and folders with mistakes."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from blklab.cli import run
from blklab.errors import BlklabError, ExitCode, SpecError, UnknownNameError
from blklab.experiment.blocks import NullRunObserver
from blklab.labs.studies import replicable_study, study_in
from blklab.labs.studies.described import description, parts
from blklab.labs.studies.published.study import PublishedStudy, read_study_table
from blklab.labs.studies.replication.options import STUDY_BACKENDS, StudyOptions, TomlTable
from blklab.labs.studies.replication.run import run_study
from blklab.records.store import Store
from own_studies import quick_run, study_folder

HOW_TO = Path(__file__).parents[3] / "docs" / "how-to"
CLAIMS = 'title = "Two schedulers on a slow disk"\nsource = "a note of mine"\n'
JOB = """; purpose: Random readers, more than the disk takes.
; decide-by: iops
[readers]
readwrite=randread
blocksize=4k
ioengine=libaio
iodepth=$depth
direct=1
size=64m
time_based
runtime=$runtime
"""
TABLE = "scheduler,run,iops\nnone,1,100\nnone,2,110\nmq-deadline,1,150\nmq-deadline,2,140\n"
STUDY = """
remarks = ["A remark.", { on = ["uml"], says = "Of guests." }]

[[experiments]]
name = "once"
title = "As printed"
device = "hdd-7200"
schedulers = ["none", "mq-deadline"]
order = "by-scheduler"
workloads = [{ file = "readers.fio", values = { depth = 64, runtime = { full = "2s", quick = "500ms" } } }]

[[experiments]]
name = "blocks"
title = "In randomised blocks"
like = "once"
order = "randomised"
blocks = { full = 6, quick = 3 }

[published.iops]
file = "iops.csv"
column = "iops"

[series]
once = { experiment = "once" }
iops = { experiment = "blocks", metric = "iops" }
waits = { experiment = "blocks", metric = "latency_mean" }

[[values]]
table = "I/Os a second"
ours = "once"
published = "iops"

[[values]]
table = "Over none"
name = "{scheduler} over {over}"
statistic = "ratio"
ours = "iops"
published = "iops"
over = "none"

[[statements]]
name = "faster"
says = "{scheduler} is faster than {over}."
origin = "published"
kind = "higher"
ours = "iops"
scheduler = "mq-deadline"
over = "none"

[[statements]]
name = "slower"
says = "none is the fastest."
kind = "higher"
ours = "iops"
scheduler = "none"
over = "the highest other"

[[statements]]
name = "order"
says = "mq-deadline before none."
kind = "ordered"
ours = "iops"
schedulers = ["mq-deadline", "none"]

[[statements]]
name = "alike"
says = "Both wait alike."
kind = "equal"
ours = "waits"
scheduler = "none"
over = "mq-deadline"
margin = 10

[[statements]]
name = "bounded"
says = "Between 1 and 2 I/Os a second."
kind = "within"
ours = "iops"
scheduler = "none"
at_least = 1
at_most = 2

[[pictures]]
name = "over-none"
title = "Over none"
note = "Ours and theirs."
rows = [{ table = "Over none" }]
marks = { "no effect" = 1 }
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A study of a reader's own."""
    return study_folder(tmp_path / "my-study", claims=CLAIMS, study=STUDY, job=JOB, table=TABLE)


def test_a_study_of_ones_own(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document, page = tmp_path / "study.json", tmp_path / "study.html"
    files = ["--json", str(document), "--html", str(page), "--store", str(tmp_path / "runs.sqlite")]
    assert run(["study", "run", str(own), "--quick", "-q", "-v", *files]) == ExitCode.OK
    text = capsys.readouterr().out
    assert "holds: published: mq-deadline is faster than none." in text
    study = json.loads(document.read_text())["studies"][0]
    assert (study["name"], study["title"]) == ("my-study", "Two schedulers on a slow disk")
    assert {one["name"]: one["outcome"] for one in study["statements"]} == {
        "faster": "holds",
        "slower": "fails",
        "order": "holds",
        "alike": "holds",
        "bounded": "fails",
    }
    figures = {(one["table"], one["name"]): one for one in study["figures"]}
    assert figures["I/Os a second", "none"]["published"]["value"] == pytest.approx((100 * 110) ** 0.5)
    ratio = figures["Over none", "mq-deadline over none"]
    assert ratio["published"]["value"] == pytest.approx((150 * 140 / 100 / 110) ** 0.5)
    assert ratio["ours"]["value"] > 1
    assert ratio["ours"]["low"] < ratio["ours"]["value"] < ratio["ours"]["high"]
    assert study["remarks"] == ["A remark."]
    assert [one["runs"] for one in study["experiments"]] == [2, 6]
    assert "<svg" in page.read_text("utf-8")


def test_the_command_prints_answers_and_writes_a_page(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert run(["study", "run", str(own), "--quick", "-q"]) == ExitCode.OK
    text = capsys.readouterr().out
    assert "✓ mq-deadline is faster than none: " in text
    assert "A remark." not in text
    page = tmp_path / "data" / "blklab" / "reports" / "study-my-study.html"
    assert str(page) in text
    assert "A remark." in page.read_text("utf-8")


def test_keys_that_no_shipped_study_needs(own: Path) -> None:
    """A table's column of schedulers, intended values, and settings of control groups."""
    (own / "readers.fio").write_text(f"{JOB}cgroup=readers\n", "utf-8")
    table = own / "published" / "iops.csv"
    table.write_text(table.read_text("utf-8").replace("scheduler", "elevator"), "utf-8")
    text = STUDY.replace('column = "iops"', 'column = "iops"\nby = "elevator"')
    text = text.replace('ours = "once"\n', 'ours = "once"\nbeside = "intended"\n')
    limit = '\ncgroups = { readers = { "io.max" = "riops=20" } }\n'
    (own / "study.toml").write_text(text.replace('order = "by-scheduler"', 'order = "by-scheduler"' + limit))
    found = quick_run(own)
    values = [one for one in found.result.values if one.table == "I/Os a second"]
    assert [one.beside for one in values] == ["intended", "intended"]
    for one in values:
        assert one.published is not None
        assert one.ours is not None
        assert one.published.value > 100
        assert one.ours.value <= 25


def test_a_description_is_parsed_again_only_if_it_has_changed(own: Path) -> None:
    read = partial(read_study_table, own, "claims.toml", "here", PublishedStudy)
    assert read() is read()
    (own / "claims.toml").write_text(CLAIMS.replace("slow", "fast"), "utf-8")
    assert read().title == "Two schedulers on a fast disk"


def test_it_is_the_same_each_time(own: Path) -> None:
    assert quick_run(own).result == quick_run(own).result


def test_show_list_and_check(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["study", "list", str(own)]) == ExitCode.OK
    assert "my-study" in capsys.readouterr().out
    assert run(["study", "show", str(own)]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "a note of mine" in shown
    assert "In randomised blocks (none, mq-deadline; 1 workload, 6 blocks)" in shown
    assert run(["study", "check", str(own), "hdparm-fifteen"]) == ExitCode.OK
    assert "my-study: no mistake" in capsys.readouterr().out


def test_a_copy_of_a_shipped_study_is_the_readers(tmp_path: Path) -> None:
    copy = tmp_path / "hdparm-fifteen"
    shutil.copytree(replicable_study("hdparm-fifteen").files().folder, copy)
    text = (copy / "claims.toml").read_text("utf-8")
    (copy / "claims.toml").write_text(text.replace("title = ", 'title = "Mine" #'), "utf-8")
    study = replicable_study(f"{copy}/")
    assert study.files().claims.title == "Mine"
    shipped = replicable_study("hdparm-fifteen")
    for backend in STUDY_BACKENDS:
        options = StudyOptions(backend)
        assert study.experiments(options, study.files()) == shipped.experiments(options, shipped.files())


def test_runs_that_fail_leave_statements_open(own: Path) -> None:
    finding = quick_run(own)
    records = {
        name: record.model_copy(
            update={"samples": [one for one in record.samples if one.cell.scheduler != "none"]}
        )
        for name, record in finding.records.items()
    }
    result = study_in(own).read(finding.options, finding.folder, records)
    assert {one.name: one.outcome for one in result.statements} == dict.fromkeys(
        ("faster", "slower", "order", "alike", "bounded"), "undecided"
    )
    value = result.value("Over none", "mq-deadline over none")
    assert value.ours is None and value.not_asked


def _edit(file: str, old: str, new: str) -> Callable[[Path], object]:
    def edit(folder: Path) -> None:
        text = (folder / file).read_text("utf-8")
        assert old in text, old
        (folder / file).write_text(text.replace(old, new, 1), "utf-8")

    return edit


def _study(old: str, new: str) -> Callable[[Path], object]:
    return _edit("study.toml", old, new)


def _table(old: str, new: str) -> Callable[[Path], object]:
    return _edit("published/iops.csv", old, new)


def _remove(file: str) -> Callable[[Path], object]:
    return lambda folder: (folder / file).unlink()


def _bytes(file: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / file).write_bytes(content)


def _replaced(file: str, make: Callable[[Path], object]) -> Callable[[Path], object]:
    def replace(folder: Path) -> None:
        (folder / file).unlink()
        make(folder / file)

    return replace


_REPLAY = _study('statistic = "ratio"', 'statistic = "replayed ratio"')


_FITTED = """
[devices.fitted]
published = "iops"
schedulers = ["none"]
unit_bytes = 4096
command_bytes = 4096
window = "10s"
stall = "200ms"
parameters = "{a}{0}"
"""
MISTAKES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no description": (_remove("study.toml"), "study.toml: cannot be read: no such file"),
    "no claims": (_remove("claims.toml"), "claims.toml: cannot be read: no such file"),
    "no job file": (_remove("readers.fio"), "experiment 'once': "),
    "no table": (_remove("published/iops.csv"), "published/iops.csv: cannot be read"),
    "no toml": (_study("[series]", "[series"), "at line 2"),
    "bytes": (_bytes("study.toml", b"\xff\xfe\x00"), "is not valid TOML"),
    "depth": (_bytes("study.toml", b"a = " + b"[" * 100_000), "study.toml: "),
    "a folder": (_replaced("study.toml", Path.mkdir), "study.toml: cannot be read"),
    "a pipe": (_replaced("study.toml", os.mkfifo), "study.toml: cannot be read: not a file"),
    "a device": (_replaced("study.toml", lambda path: path.symlink_to("/dev/zero")), "not a file"),
    "a loop": (_replaced("study.toml", lambda path: path.symlink_to(path)), "study.toml: cannot be read"),
    "empty": (_bytes("study.toml", b""), "experiments: is missing"),
    "no experiment": (_bytes("study.toml", b"experiments = []"), "experiments: "),
    "experiments of another kind": (_bytes("study.toml", b"experiments = 3"), "experiments: "),
    "an experiment of another kind": (_bytes("study.toml", b"experiments = [3]"), "experiments.0: "),
    "a key": (_study("\nmarks =", "\nmark ="), "unknown key 'pictures.0.mark'"),
    "a kind": (_study('kind = "ordered"', 'kind = "sorted"'), "statements.2.kind: must be 'higher'"),
    "a need": (_study("at_most = 2", ""), "statement 'bounded': 'within' needs at_most"),
    "a ratio to nothing": (_study('over = "none"\n', ""), "values 'Over none': 'ratio' needs over"),
    "a word": (_study('over = "the highest other"', 'over = "the lowest published"'), "needs published"),
    "a replay": (
        lambda folder: (_table("mq-deadline,2,140\n", "")(folder), _REPLAY(folder)),
        "3 published values are not a whole number of blocks",
    ),
    "a series": (_study('ours = "waits"', 'ours = "wait"'), "there is no series 'wait'; did you mean waits?"),
    "an experiment": (_study('once = { experiment = "once" }', 'once = { experiment = "one" }'), "'one'"),
    "a metric": (_study('metric = "iops"', 'metric = "iop"'), "series.iops: "),
    "a scheduler": (_study('scheduler = "mq-deadline"', 'scheduler = "mq-deadlin"'), "statement 'faster': "),
    "a table of values": (_study('table = "Over none" }', 'table = "Over" }'), "picture 'over-none': "),
    "a placeholder": (_study("{scheduler} is", "{scheduler.__class__} is {x}"), "{x} stands for nothing"),
    "two of a name": (_study('name = "slower"', 'name = "faster"'), "two statements are called 'faster'"),
    "a like": (_study('like = "once"', 'like = "ones"'), "there is no earlier experiment 'ones'"),
    "a backend": (_study("remarks", 'backends = ["mars"]\nremarks'), "backends.0: must be 'sim'"),
    "a host without scratch": (_study("remarks", 'backends = ["host"]\nremarks'), "host_scratch: is missing"),
    "a device model": (_study("hdd-7200", "hdd-72000"), "experiment 'once': "),
    "braces": (
        lambda folder: (
            _study("[series]", f"{_FITTED}\n[series]")(folder),
            _study('"hdd-7200"', '"fitted"')(folder),
        ),
        "experiment 'once': ",
    ),
    "no schedulers": (_study('"mq-deadline"]', "3]"), "'3' does not name a scheduler"),
    "a scheduler's grammar": (_study('"mq-deadline"]', '"../x"]'), "experiment 'once': "),
    "blocks": (_study("full = 6", "full = 0"), "blocks"),
    "a margin": (_study("margin = 10", "margin = nan"), "statements.3.margin: "),
    "a bound": (_study("at_least = 1", "at_least = -inf"), "statements.4.at_least: "),
    "another folder's job": (_study('"readers.fio"', '"../readers.fio"'), "is not the name of a file"),
    "another folder's table": (_study('"iops.csv"', '"/etc/passwd"'), "is not the name of a file"),
    "a null": (_study('"readers.fio"', '"a\\u0000.fio"'), "is not the name of a file"),
    "a value": (_study("depth = 64,", ""), "readers.fio: no value for $depth"),
    "odd values": (_study("depth = 64,", "name = 1, self = 2, file = 3,"), "no value for $depth"),
    "a job": (_edit("readers.fio", "iodepth=", "iodeepth="), "readers.fio"),
    "a dollar": (_edit("readers.fio", "4k", "4k$"), "readers.fio: "),
    "job bytes": (_bytes("readers.fio", b"\xff"), "readers.fio: is not text"),
    "a cell": (_table("110", "fast"), "column iops: could not convert string to float: 'fast'"),
    "a cell of nothing": (_table("110", "nan"), "is not a positive number"),
    "a cell below 0": (_table("110", "-1"), "is not a positive number"),
    "a cell too few": (_table(",110", ""), "iops.csv, line 3: has more or fewer cells"),
    "a cell too many": (_table("110", "110,7"), "iops.csv, line 3: has more or fewer cells"),
    "a column": (_study('column = "iops"', 'column = "iop"'), "no column 'iop'"),
    "no rows": (_study('column = "iops"', 'column = "iops"\nwhere = { run = "9" }'), "has no row with"),
    "columns like arguments": (
        _study('column = "iops"', 'column = "iops"\nwhere = { file = "9" }'),
        "'file'",
    ),
    "table bytes": (_bytes("published/iops.csv", b"scheduler,iops\nnone,\xff\n"), "is not a table"),
    "an endless cell": (_bytes("published/iops.csv", b"scheduler,iops\n" + b"9" * 200_000), "iops.csv"),
    "claims of another kind": (_bytes("claims.toml", b"title = 3\nsource = 'x'"), "claims.toml: title: "),
    "expectations": (
        _bytes("expected.toml", b"[sim.statements.faster]\noutcome = 'maybe'"),
        "expected.toml: ",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_place(name: str, own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, says = MISTAKES[name]
    make(own)
    code = run(["study", "check", str(own)])
    captured = capsys.readouterr()
    assert code in (ExitCode.USAGE, ExitCode.DATA), captured.err
    assert captured.err.startswith("error: ")
    assert str(own) in captured.err.replace("\n", "")
    assert says in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("name", ["no description", "a cell", "a job"])
def test_no_run_begins_with_a_mistake(name: str, own: Path, tmp_path: Path) -> None:
    MISTAKES[name][0](own)
    with pytest.raises(BlklabError), Store.opened(str(tmp_path / "runs.sqlite")) as store:
        run_study(study_in(own), StudyOptions(quick=True), store, NullRunObserver())
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        assert list(store.list_runs()) == []


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="there is no such folder"):
        replicable_study(f"{tmp_path}/nowhere/")
    with pytest.raises(UnknownNameError, match="there is no such folder"):
        replicable_study("x/" * 3000)
    odd = tmp_path / "two words\n"
    odd.mkdir()
    with pytest.raises(SpecError, match="cannot be the name of a study"):
        study_in(odd)
    with pytest.raises(UnknownNameError, match="there is no study 'ionize'") as refused:
        replicable_study("ionize")
    assert "did you mean ionice?" in str(refused.value.hint)


def test_two_studies_of_one_name_are_refused(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(own, own.parent / "other" / "my-study")
    assert run(["study", "run", str(own), str(own.parent / "other" / "my-study")]) == ExitCode.USAGE
    assert "two of these studies have one name" in capsys.readouterr().err


def test_the_page_on_descriptions_has_every_key() -> None:
    """The table of keys is that of the models, and the page's example is a study."""
    models: dict[str, type[TomlTable]] = {
        "study": description.StudyDescription,
        "experiments": parts.DescribedExperiment,
        "workloads": parts.StudyWorkload,
        "devices": parts.FittedDevice,
        "published": parts.PublishedRuns,
        "series": parts.MeasuredSeries,
        "values": parts.ValueRows,
        "statements": parts.DescribedStatement,
        "pictures": parts.DescribedPicture,
        "rows": parts.PictureRows,
        "lines": parts.PictureLine,
        "sweep": parts.SweptTunables,
        "remarks": parts.Remark,
    }
    keys = {(part, key) for part, model in models.items() for key in model.model_fields}
    with (HOW_TO / "tables" / "study-description.csv").open(encoding="utf-8", newline="") as file:
        table = {(row["part"], row["key"]) for row in csv.DictReader(file)}
    assert table == keys | {("experiments", "like"), ("any", "each"), ("any", "parts")}


def test_the_example_of_the_page_is_a_study(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (HOW_TO / "run-studies.md").read_text("utf-8")
    (own / "study.toml").write_text(page.split("```toml\n")[1].split("```")[0], "utf-8")
    (own / "readers.fio").write_text(JOB.replace("$depth", "64"), "utf-8")
    assert (
        run(["study", "run", f"{own}/", "--quick", "-q", "-v", "--store", str(own.parent / "s")])
        == ExitCode.OK
    )
    assert "holds: published: mq-deadline is faster than none." in capsys.readouterr().out
