"""Man pages, and the files that a package installs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from blklab.cli.reference.installed import shared_files, write_shared_files
from blklab.cli.reference.manual import manual_pages, write_manual
from blklab.cli.reference.tree import all_commands, spellings_of

ROOT = Path(__file__).parents[2]


def test_every_command_has_a_page_with_all_its_flags() -> None:
    pages = manual_pages()
    for node in all_commands():
        page = pages["-".join(("blklab", *node.path)) + ".1"].replace("\\-", "-")
        for flag in node.flags:
            assert all(f"\\fB{one}\\fR" in page for one in spellings_of(flag))


@pytest.mark.parametrize(
    "check",
    [
        ("mandoc", "-Tlint", "-Wwarning"),
        ("groff", "-man", "-ww", "-Kutf8", "-Tutf8"),
    ],
    ids=lambda check: check[0],
)
def test_formatters_find_no_fault(check: tuple[str, ...], tmp_path: Path) -> None:
    if shutil.which(check[0]) is None:
        pytest.skip(f"{check[0]} is not installed")
    for page in write_manual(tmp_path):
        done = subprocess.run([*check, str(page)], capture_output=True, text=True, check=False)
        complaints = done.stderr + (done.stdout if check[0] == "mandoc" else "")
        # A date would change the page from build to build.
        faults = [line for line in complaints.splitlines() if "missing date" not in line]
        assert faults == []


def test_man_shows_a_page(tmp_path: Path) -> None:
    if shutil.which("man") is None:
        pytest.skip("man is not installed")
    write_manual(tmp_path)
    shown = subprocess.run(
        ["man", "--local-file", str(tmp_path / "blklab-compare.1")],
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MANOPT": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "--workload NAME|FILE.fio" in shown
    assert "a single quote" not in shown
    assert "…" in shown


def test_files_lie_where_packages_install_them(tmp_path: Path) -> None:
    write_shared_files(tmp_path)
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == shared_files().keys()
    assert {
        "man/man1/blklab.1",
        "man/man1/blklab-compare.1",
        "bash-completion/completions/blklab",
        "zsh/site-functions/_blklab",
        "fish/vendor_completions.d/blklab.fish",
    } <= written


@pytest.mark.slow
def test_a_wheel_holds_them(tmp_path: Path) -> None:
    cargo = subprocess.run([ROOT / "scripts" / "find-cargo"], capture_output=True, text=True, check=False)
    if cargo.returncode != 0:
        pytest.skip("no Rust compiler")
    write_shared_files(ROOT / "packaging" / "data" / "share")
    subprocess.run(
        [sys.executable, "-m", "maturin", "build", "--release", "--quiet", "--out", tmp_path],
        cwd=ROOT,
        env={"PATH": f"{Path(cargo.stdout.strip()).parent}:{Path(sys.executable).parent}:/usr/bin:/bin"},
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for name in shared_files():
        assert any(one.endswith(f".data/data/share/{name}") for one in names)
    assert not any(one.endswith(".gitignore") for one in names)
