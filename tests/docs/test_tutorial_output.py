"""The tutorial's first verdict is shown as the program prints it."""

from __future__ import annotations

import re
import shlex

import pytest
from test_links import ROOT

from blklab.cli import run
from blklab.errors import ExitCode

COMMAND = "blklab compare sim:hdd-7200 -s mq-deadline,kyber,bfq -w many-readers"
RUN_ID = re.compile(r"\d{8}-\d{4}-[0-9a-z]{4}")
FOLDER = re.compile(r"^/\S+(?=/reports/)", re.MULTILINE)


def test_the_first_verdict_is_printed_as_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page = (ROOT / "docs" / "tutorial" / "first-verdict.md").read_text(encoding="utf-8")
    _, after = page.split(f"```sh\n{COMMAND}\n```\n")
    shown = after.split("```\n")[1]
    assert run(shlex.split(COMMAND)[1:]) == ExitCode.OK
    printed = capsys.readouterr()
    assert _without_names(printed.err + printed.out) == _without_names(shown)


def _without_names(text: str) -> str:
    """The text without the run's name and the folder of its report, which differ each time."""
    return FOLDER.sub("FOLDER", RUN_ID.sub("RUN", text))
