"""`blklab playground` writes the page, or says how to get what it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab import shipped
from blklab.cli import run
from blklab.errors import ExitCode


def test_the_page_is_written_where_asked(
    html: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "page.html"
    assert run(["playground", "--output", str(file)]) == 0
    assert file.read_text("utf-8") == html
    assert str(file) in capsys.readouterr().out.replace("\n", "")


def test_standard_output_takes_it_too(html: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["playground", "--output", "-"]) == 0
    assert capsys.readouterr().out.strip() == html.strip()


def test_without_its_program_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shipped, "_SHIPPED", tmp_path)
    assert run(["playground", "--output", str(tmp_path / "page.html")]) == ExitCode.REQUIREMENT
    assert "make playground" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()
