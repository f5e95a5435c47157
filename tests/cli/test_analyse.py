"""`blklab analyse`: texts, exit codes, JSON and HTML."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from blklab.cli import run
from blklab.errors import ExitCode
from blklab.labs.reanalysis.analysis import AnalysisRequest, analyse_files
from blklab.labs.reanalysis.report.text import render_analysis
from blklab.report.terminal import Terminal

ROOT = Path(__file__).parents[2]
FILES = ROOT / "tests" / "readers" / "files"
GOLDEN = ROOT / "tests" / "labs" / "reanalysis" / "golden"
REFRESH = os.environ.get("BLKLAB_REFRESH_GOLDEN") == "1"

FIFTEEN = ROOT / "studies/hdparm-fifteen/published/hdparm_runs.csv"
TABLE = ["--value", "throughput_MBps", "--factor", "scheduler", "--by", "test", "--run", "run_index"]

DAMAGED = (
    "none [mq-deadline] kyber bfq\n\n/dev/sda:\n"
    " Timing cached reads:   11438 MB in  2.00 seconds = 5725.27 MB/sec\n"
    " Timing buffered disk reads: 3280 MB in  3.00 seconds = 1092.66 MB/sec\n"
    "a remark\n"
    "none mq-deadline [kyber] bfq\n\n/dev/sda:\n"
    " Timing cached reads:   11400 MB in  2.00 seconds = 5705.77 MB/sec\n"
    " Timing buffered disk reads: 31"
)


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files, so that their names in texts are short."""
    for file in FILES.iterdir():
        shutil.copy(file, tmp_path)
    shutil.copy(FIFTEEN, tmp_path / "fifteen.csv")
    (tmp_path / "damaged.log").write_text(DAMAGED, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


CASES: dict[str, tuple[list[str], ExitCode]] = {
    "fifteen": (["fifteen.csv", *TABLE, "--where", "setting=default"], ExitCode.OK),
    "damaged": (["damaged.log"], ExitCode.PARTIAL),
    "one-run": (["fio.json"], ExitCode.OK),
    "two-tools": (
        ["hdparm.log", "table.csv", "--value", "rate_MBps", "--value", "latency_ms", "--run", "run"],
        ExitCode.OK,
    ),
    "phoronix": (["phoronix.xml"], ExitCode.OK),
    "pairs": (["hdparm.log", "--block", "run", "--metric", "buffered disk reads"], ExitCode.OK),
    "ambiguous": (["fifteen.csv", "--value", "throughput_MBps"], ExitCode.USAGE),
    "no-role": (["fifteen.csv", *TABLE], ExitCode.USAGE),
    "table-unasked": (["fifteen.csv"], ExitCode.DATA),
    "unknown": (["README.md"], ExitCode.DATA),
    "twice": (["dd-c.log", "dd-copy.log"], ExitCode.PARTIAL),
}


@pytest.mark.parametrize("case", CASES)
def test_golden(case: str, in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(in_folder / "dd-c.log", in_folder / "dd-copy.log")
    arguments, code = CASES[case]
    assert run(["analyse", *arguments]) == code
    printed = capsys.readouterr()
    text = f"{printed.out}--- standard error\n{printed.err}"
    path = GOLDEN / f"{case}.txt"
    if REFRESH:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "refresh with BLKLAB_REFRESH_GOLDEN=1 if it is meant"


@pytest.mark.parametrize("case", [case for case, (_, code) in CASES.items() if code in (0, ExitCode.PARTIAL)])
def test_json_satisfies_the_schema(case: str, in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(in_folder / "dd-c.log", in_folder / "dd-copy.log")
    arguments, code = CASES[case]
    assert run(["analyse", *arguments, "--json", "-"]) == code
    document = json.loads(capsys.readouterr().out)
    schema = json.loads((ROOT / "docs/reference/schema/analyse-1.json").read_text(encoding="utf-8"))
    validator = Draft202012Validator(schema)
    validator.validate(document)
    assert document["complete"] == (code == ExitCode.OK)
    assert "NaN" not in json.dumps(document)
    del document["cells"][0]["supported"]
    assert not validator.is_valid(document)


def test_a_partial_result_is_nowhere_passed_off_as_whole(
    in_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(["analyse", "damaged.log", "--html", "report.html", "--json", "report.json"]) == ExitCode.PARTIAL
    )
    printed = capsys.readouterr()
    assert "INCOMPLETE" in printed.out
    assert "damaged.log:11" in printed.out
    assert "damaged.log:11" in printed.err
    page = (in_folder / "report.html").read_text(encoding="utf-8")
    assert "Incomplete: 1 place" in page
    assert "damaged.log:11" in page
    document = json.loads((in_folder / "report.json").read_text(encoding="utf-8"))
    assert document["problems"] == [
        {
            "file": "damaged.log",
            "line": 11,
            "message": "buffered disk reads: truncated or damaged: no value could be read",
        }
    ]
    assert document["files"][0]["skipped_lines"] == [6]


def test_the_page_escapes_what_comes_from_files(in_folder: Path) -> None:
    (in_folder / "evil.csv").write_text(
        "scheduler,rate_MBps\n<script>alert(1)</script>,1\n<script>alert(1)</script>,2\nb,3\nb,4\n"
    )
    assert run(["analyse", "evil.csv", "--value", "rate_MBps", "--html", "evil.html"]) == ExitCode.OK
    page = (in_folder / "evil.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert re.search(r"default-src &#39;none&#39;|default-src 'none'", page)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-file"], "cannot be read"),
        (["dd-c.log", "--reader", "word"], "no reader 'word'"),
        (["dd-c.log", "--label", "dd-c.log"], "is not FILE=NAME"),
        (["dd-c.log", "dd-ru.log", "--label", "dd-c.log=a"], "has no label"),
        (["dd-c.log", "--where", "x"], "is not NAME=VALUE"),
        (["table.csv", "--value", "speed"], "no column 'speed'"),
        (["dd-c.log", "--metric", "speed"], "there is no metric 'speed'"),
        (["table.csv", "--value", "rate_MBps", "--delimiter", "::"], "is not one character"),
        (["dd-c.log", "--reader", "hdparm"], "no value could be used"),
        (["dd-c.log", "--reader", "hdparm", "--factor", "device"], "no value could be used"),
    ],
)
def test_mistakes_are_errors(
    arguments: list[str], said: str, in_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["analyse", *arguments]) in (ExitCode.USAGE, ExitCode.DATA)
    printed = capsys.readouterr()
    assert said in " ".join(printed.err.split())
    assert not printed.out


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_no_damage_ends_in_a_traceback(
    data: st.DataObject, in_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = data.draw(st.sampled_from(sorted(path.name for path in FILES.iterdir() if path.suffix != ".md")))
    content = (FILES / name).read_bytes()
    low = data.draw(st.integers(0, len(content)))
    high = data.draw(st.integers(low, min(len(content), low + 200)))
    content = content[:low] + data.draw(st.binary(max_size=8)) + content[high:]
    (in_folder / "mutated").write_bytes(content)
    options = ["--value", "rate_MBps"] if name.startswith("table") else []
    code = run(["analyse", "mutated", *options, "--json", "out.json", "--html", "out.html"])
    printed = capsys.readouterr()
    assert code in (ExitCode.OK, ExitCode.USAGE, ExitCode.DATA, ExitCode.PARTIAL), printed.err
    assert (code == ExitCode.OK) == (not printed.err)


def test_an_ascii_terminal_can_show_it(in_folder: Path) -> None:
    buffer = io.BytesIO()
    file = io.TextIOWrapper(buffer, encoding="ascii")
    render_analysis(analyse_files(AnalysisRequest(paths=["damaged.log"])), Terminal(file=file, width=80))
    file.flush()
    assert all(len(line) <= 80 for line in buffer.getvalue().decode("ascii").splitlines())
