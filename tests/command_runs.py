"""Running commands in tests: the job file of a module, and a command's JSON document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from blklab.cli import run


@pytest.fixture
def job(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A file with the text of the module's constant ``JOB``."""
    path = tmp_path / "reads.fio"
    path.write_text(request.module.JOB)
    return str(path)


def json_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The document that a successful command prints with ``--json -``."""
    code = run([*arguments, "--json", "-"])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    document: dict[str, Any] = json.loads(printed.out)
    return document
