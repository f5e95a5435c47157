"""The command line itself: groups, help in two lengths, suggestions, and spellings from before."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from blklab.cli import run
from blklab.cli.commands import CommandHelp
from blklab.cli.reference.tree import CommandNode, all_commands
from blklab.errors import ExitCode

NODES = list(all_commands())
EACH = pytest.mark.parametrize("node", NODES, ids=lambda node: node.usage)
JOB = "[reader]\nrw=randread\nbs=4k\ntime_based\nruntime=100ms\nsize=16m\n"


def test_help_lists_commands_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    text = capsys.readouterr().out
    headings = re.findall(r"^(\w[\w ]*):$", text, re.MULTILINE)
    assert headings == [
        "Options",
        "Ask",
        "Look",
        "Models",
        "Kernels",
        "Results",
        "This program",
        "Examples",
    ]
    for node in NODES:
        if len(node.path) == 1:
            assert re.search(rf"^  {node.path[0]}  +[A-Z]", text, re.MULTILINE), node.usage


@EACH
def test_help_has_three_examples_of_the_command(node: CommandNode) -> None:
    assert isinstance(node.command, CommandHelp)
    examples = node.command.examples
    assert len(examples) >= 3
    assert len({one.command for one in examples}) == len(examples)
    assert any(one.command.startswith(node.usage) for one in examples)
    text = node.command.get_help(node.context)
    assert all(one.command in text and one.purpose in text for one in examples)


@EACH
def test_the_brief_help_is_shorter_and_names_the_long_one(
    node: CommandNode, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*node.path, "-h"]) == 0
    brief = capsys.readouterr().out
    assert run([*node.path, "--help"]) == 0
    full = capsys.readouterr().out
    assert len(brief.splitlines()) <= min(len(full.splitlines()), 45)
    assert f"{node.usage} --help" in " ".join(brief.split())
    assert all(len(line) <= 100 for line in brief.splitlines())


@EACH
def test_help_of_a_name_is_that_of_the_flag(node: CommandNode, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", *node.path]) == 0
    by_name = capsys.readouterr().out
    assert run([*node.path, "--help"]) == 0
    assert by_name == capsys.readouterr().out


def test_the_version_has_a_short_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-V"]) == 0
    short = capsys.readouterr().out
    assert run(["--version"]) == 0
    assert short == capsys.readouterr().out
    assert short.startswith("blklab, version ")


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("compre", "did you mean compare"),
        ("targts", "did you mean targets?"),
        ("kernel biuld", "did you mean build?"),
        ("help kernel biuld", "did you mean build?"),
        ("study rnu", "did you mean run?"),
        ("compare --buget 5m", "did you mean --budget?"),
        ("run sim:fixed mixed-70-30 --schedular bfq", "did you mean --scheduler?"),
        ("compare sim:fixed -s bqf,none", "did you mean bfq?"),
        ("compare sim:fixed -s mqdeadline", "did you mean mq-deadline"),
        ("compare sim:fixed --sweep bqf:slice_idle=0,2", "did you mean bfq?"),
        ("run sim:fixed mixed-70-30 -s kyberr", "did you mean kyber or"),
        ("explain sim:hdd-7200 many-readers -s bqf", "did you mean bfq?"),
        ("compare sim:fixed --goal latncy", "did you mean latency?"),
        ("compare hdd-7200", "did you mean sim:hdd-7200?"),
        ("compare sim:fixed --budget 5", "5s or 5m?"),
        ("compare sim:fixed --good-enough 5", "5%"),
        ("workloads random-raed", "did you mean random-read"),
        (
            "run sim:nvme-tlc,fill=0.9 mixed-70-30",
            'nvme-tlc: fill = "0.9": expected a whole percentage such as 90',
        ),
        ("run sim:nvme-tlc,fil=90 mixed-70-30", "nvme-tlc: fil: no such option; did you mean fill?"),
    ],
)
def test_a_mistake_is_answered_with_a_suggestion(
    typed: str, suggested: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shlex.split(typed)) == ExitCode.USAGE
    assert suggested in capsys.readouterr().err


def test_the_bare_name_of_a_disk_is_answered_with_its_path(capsys: pytest.CaptureFixture[str]) -> None:
    disks = [path.name for path in Path("/sys/block").iterdir() if Path("/dev", path.name).is_block_device()]
    if not disks:
        pytest.skip("this machine has no block device")
    assert run(["compare", disks[0]]) == ExitCode.USAGE
    assert f"did you mean /dev/{disks[0]}?" in capsys.readouterr().err


def test_nothing_is_suggested_for_what_is_like_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["xyzzy"]) == ExitCode.USAGE
    message = capsys.readouterr().err
    assert "there is no command 'xyzzy'" in message
    assert "did you mean" not in message


@pytest.mark.parametrize("name", ["judge", "bisect"])
def test_a_moved_command_works_under_its_old_spelling(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    missing = {"judge": ["--kernel", "nope,other"], "bisect": ["--good", "a", "--bad", "b", "--repo", "nope"]}
    codes, messages = [], []
    for spelling in ([name], ["kernel", name]):
        codes.append(run([*spelling, *missing[name]]))
        messages.append(capsys.readouterr().err)
    assert codes[0] == codes[1] != 0
    note, _, rest = messages[0].partition("\n")
    assert note == f"note: `blklab {name}` is now `blklab kernel {name}`; the old spelling still works"
    assert rest == messages[1]
    assert run(["--help"]) == 0
    assert f"\n  {name} " not in capsys.readouterr().out


def _flags(node: CommandNode) -> dict[str, click.Option]:
    return {spelling: flag for flag in node.flags for spelling in flag.opts}


def test_a_flag_means_the_same_in_every_command() -> None:
    long = {"-s": ("--scheduler", "--schedulers"), "-q": ("--quiet",), "-o": ("--output",)}
    for node in NODES:
        flags = _flags(node)
        for short, spellings in long.items():
            if short in flags:
                assert set(flags[short].opts) & set(spellings), (node.usage, short)
            for spelling in spellings:
                assert spelling not in flags or short in flags[spelling].opts, (node.usage, spelling)
        if "--output" in flags:
            assert (flags["--output"].help or "").startswith(("Write ", "File to write"))
        if "--profile" in flags:
            assert node.usage == "blklab iocost"
    assert all("-q" in _flags(node) for node in NODES if node.usage == "blklab record")


@pytest.mark.parametrize("command", ["compare", "report", "fleet", "runs compare", "analyse", "tune"])
def test_confidence_and_margin_have_one_declaration(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    node = next(one for one in NODES if one.usage == f"blklab {command}")
    for flag, too_much in (("--confidence", "1"), ("--margin", "100%")):
        option = _flags(node)[flag]
        assert option.type.name == "float range"
        assert run([*command.split(), "x", "y", flag, too_much]) == ExitCode.USAGE
        assert f"Invalid value for '{flag}'" in capsys.readouterr().err


@pytest.mark.parametrize(("written", "read"), [("5%", 0.05), ("0.05", 0.05), (" 2.5% ", 0.025)])
def test_a_margin_can_be_in_percent(written: str, read: float) -> None:
    node = next(one for one in NODES if one.usage == "blklab report")
    option = _flags(node)["--margin"]
    assert option.type.convert(written, option, node.context) == read


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("compare sim:hdd-7200 -budget 5s", "--budget"),
        ("compare sim:hdd-7200 -schedulers=bfq", "--schedulers"),
        ("where -html x", "--html"),
        ("-version", "--version"),
    ],
)
def test_a_long_option_with_one_dash_is_told_apart(
    words: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words.split()) == ExitCode.USAGE
    assert f"there is no option {meant[1:]}; did you mean {meant}?" in capsys.readouterr().err


def test_options_of_a_recorded_command_are_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    run(["record", "/nowhere", "--", "tool", "-output", "x"])
    assert "-output" not in capsys.readouterr().err


def test_the_page_of_a_default_name_spares_files_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["playground"]) == ExitCode.OK
    assert capsys.readouterr().err == ""
    assert run(["playground"]) == ExitCode.OK
    assert "playground.html of before is replaced" in capsys.readouterr().err
    assert run(["playground", "-o", "playground.html"]) == ExitCode.OK
    assert capsys.readouterr().err == ""
    for page, words in (
        ("playground.html", "playground"),
        ("explain.html", "explain sim:hdd-7200 many-readers"),
    ):
        Path(page).write_text("<p>My notes</p>")
        assert run(words.split()) == ExitCode.REFUSED
        assert "blklab did not write it" in capsys.readouterr().err
        assert Path(page).read_text() == "<p>My notes</p>"
