"""Sources of Debian's other suites: fetched once, by an apt of their own, and never installed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from blklab.cli import run
from blklab.errors import KernelSourceError, UsageError
from blklab.guests.kernels import releases
from blklab.guests.kernels.building import BuildRequest, plan_build
from blklab.guests.kernels.cache import kernel_cache
from blklab.guests.kernels.store import remove_trees

APT_GET = """#!/usr/bin/env python3
import re, subprocess, sys
from pathlib import Path

arguments = sys.argv[1:]
if "indextargets" in arguments:
    print("bookworm-security mirror:/security Debian")
    print("bookworm mirror:/debian Debian")
    sys.exit()
import re
configuration = next(Path(a.split("=", 1)[1]) for a in sys.argv if a.startswith("--config-file=")).read_text()
suite = Path(re.search(r'Dir::Etc::SourceList "(.*)";', configuration)[1]).read_text()
if "update" in arguments and "unreachable" in suite:
    sys.exit("E: the suite cannot be reached")
if "download" in arguments:
    tree = Path("package")
    (tree / "usr/src").mkdir(parents=True)
    (tree / "DEBIAN").mkdir()
    (tree / "usr/src/linux-source-7.3.tar.xz").write_bytes(b"an archive")
    fields = {"Package": "linux-source-7.3", "Version": "7.3.4-1", "Architecture": "all"}
    fields |= {"Maintainer": "a <a@b>", "Description": "a"}
    (tree / "DEBIAN/control").write_text("".join(f"{name}: {value}\\n" for name, value in fields.items()))
    print("dlstatus:1:50.5:Retrieving file 1 of 1 (12s remaining)")
    subprocess.run(["dpkg-deb", "--build", tree, "linux-source-7.3_7.3.4-1_all.deb"], check=True)
"""

APT_CACHE = """#!/usr/bin/env python3
import sys
from pathlib import Path

import re
configuration = next(Path(a.split("=", 1)[1]) for a in sys.argv if a.startswith("--config-file=")).read_text()
suite = Path(re.search(r'Dir::Etc::SourceList "(.*)";', configuration)[1]).read_text()
if "new-backports" in suite and "linux-source-7.3" in sys.argv:
    print("Package: linux-source-7.3")
"""


@pytest.fixture(autouse=True)
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An apt whose suite `new-backports` alone has Linux 7.3: the suites' contents change with time."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("apt-get", APT_GET), ("apt-cache", APT_CACHE)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


SUITES = ("bookworm", "unreachable", "new-backports")


def test_the_first_suite_that_has_a_release_gives_its_archive() -> None:
    said: list[str] = []
    archive = releases.fetch_archive("7.3", said.append, SUITES)
    assert archive == kernel_cache() / "sources" / "linux-source-7.3_7.3.4-1.tar.xz"
    assert archive.read_bytes() == b"an archive"
    assert said[:3] == [f"looking for Linux 7.3 in Debian's suite {suite}" for suite in SUITES]
    assert "downloading linux-source-7.3: 50 %, 12s left" in said
    assert list((kernel_cache() / "fetching").iterdir()) == []


def test_an_archive_is_fetched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = releases.fetch_archive("7.3", lambda _: None, SUITES)
    monkeypatch.setattr(subprocess, "run", pytest.fail)
    assert releases.fetch_archive("7.3", lambda _: None, SUITES) == archive


def test_a_build_takes_the_archive() -> None:
    with pytest.raises(KernelSourceError, match="was not fetched yet"):
        plan_build(BuildRequest(release="7.3"))
    archive = releases.fetch_archive("7.3", lambda _: None, SUITES)
    assert plan_build(BuildRequest(release="7.3")).source.path == archive
    with pytest.raises(UsageError, match="a source or a release"):
        plan_build(BuildRequest(source=str(archive), release="7.3"))


def test_fetched_archives_go_with_kept_sources() -> None:
    archive = releases.fetch_archive("7.3", lambda _: None, SUITES)
    assert remove_trees() > 0
    assert not archive.exists()


def test_a_release_that_no_suite_has_is_refused_with_what_to_do() -> None:
    with pytest.raises(
        KernelSourceError, match=r"no source of Linux 9.9 \(the suite cannot be reached\)"
    ) as caught:
        releases.fetch_archive("9.9", lambda _: None, SUITES)
    assert caught.value.hint is not None and "--source" in caught.value.hint


@pytest.mark.parametrize("text", ["7", "seven", "7.3.4", "../7.3"])
def test_a_release_has_two_numbers(text: str) -> None:
    with pytest.raises(UsageError, match="not the release of a kernel"):
        releases.fetch_archive(text, lambda _: None, SUITES)


def test_a_dry_run_fetches_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kernel", "build", "new", "--release", "7.3", "--dry-run"]) == 0
    assert "linux-source-7.3, which would be fetched" in capsys.readouterr().out
    assert not (kernel_cache() / "sources").exists()
