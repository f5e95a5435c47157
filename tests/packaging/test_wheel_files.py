"""The data files that a wheel carries: pyproject.toml lists each kind, since links are not followed."""

from __future__ import annotations

import fnmatch
import subprocess
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

import pytest

ROOT = Path(__file__).parents[2]
SHIPPED = "python/blklab/shipped"
FOLDERS = ("workloads", "devices", "machines", "studies", "kernel")
ONLY_IN_SOURCES = ("kernel/bpf/*", "studies/*/README.md")
"""Programs for the kernel are carried compiled; the README of a study is for readers of the repository."""


def patterns() -> list[str]:
    """The patterns of files that go into a wheel."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        entries = tomllib.load(file)["tool"]["maturin"]["include"]
    paths = [entry["path"] for entry in entries if "wheel" in entry["format"]]
    # Two stars stand for no folder as well.
    return [*paths, *(path.replace("**/", "") for path in paths)]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_wheel_carries_every_file_of_a_shipped_folder(folder: str) -> None:
    """An installed blklab lacked ``torture.config``, and its gate ended with a defect."""
    listed = subprocess.run(
        ["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    files = [
        name for name in listed if name and not any(fnmatch.fnmatch(name, one) for one in ONLY_IN_SOURCES)
    ]
    if not files:
        pytest.skip("this is not a clone: the files that belong to the project are not known")
    carried = patterns()
    missing = [
        name
        for name in files
        if not any(fnmatch.fnmatch(f"{SHIPPED}/{name}", pattern) for pattern in carried)
    ]
    assert not missing, f"pyproject.toml leaves them out of the wheel: {missing}"
