"""Bisection with real git: the first slower commit, skipped ones, and a repository that stays as it was."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from blklab.errors import UsageError
from blklab.labs.judgement.bisection import Step, bisect

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of 20 commits; the speed in its only file falls with number 13."""
    folder = tmp_path / "linux"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, "config", "user.name", "tester")
    git(folder, "config", "user.email", "tester@example.org")
    for number in range(20):
        (folder / "speed").write_text(f"{100 if number < 13 else 80} {number}\n")
        git(folder, "add", "speed")
        git(folder, "commit", "--quiet", "--message", f"commit {number}")
        git(folder, "tag", f"c{number}")
    return folder


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, check=True, text=True)
    return done.stdout.strip()


class Court:
    """Judges by the speed in the tree; some commits cannot be built."""

    def __init__(self, unbuildable: set[int] = frozenset()) -> None:  # type: ignore[assignment]
        self._unbuildable = unbuildable
        self.base = ""
        self.trees: set[Path] = set()

    def take_good(self, tree: Path) -> None:
        self.base = (tree / "speed").read_text()

    def __call__(self, tree: Path, commit: str) -> Step:
        assert git(tree, "rev-parse", "HEAD") == commit
        self.trees.add(tree)
        speed, number = map(int, (tree / "speed").read_text().split())
        if number in self._unbuildable:
            return "skip"
        return "bad" if speed < int(self.base.split()[0]) else "good"


def test_the_first_slower_commit_is_found_in_few_steps(repository: Path) -> None:
    court = Court()
    found = bisect(repository, "c0", "c19", court.take_good, court)
    assert found.commit == git(repository, "rev-parse", "c13")
    assert court.base == "100 0\n"
    assert len(found.steps) <= 5
    assert len(court.trees) == 1, "builds go on from the objects of the one before"


def test_commits_that_cannot_be_built_are_left_out(repository: Path) -> None:
    found = bisect(repository, "c0", "c19", (court := Court({9, 10, 11})).take_good, court)
    assert found.commit == git(repository, "rev-parse", "c13")


def test_what_is_left_is_named_where_it_cannot_be_built(repository: Path) -> None:
    found = bisect(repository, "c0", "c19", (court := Court({12, 13})).take_good, court)
    assert found.commit is None
    assert set(found.candidates) == {git(repository, "rev-parse", f"c{number}") for number in (12, 13, 14)}


def test_the_repository_stays_as_it_was(repository: Path) -> None:
    (repository / "speed").write_text("an edit\n")

    def state() -> tuple[str, ...]:
        commands = (
            ("status", "--porcelain"),
            ("rev-parse", "HEAD"),
            ("branch", "--all"),
            ("worktree", "list"),
        )
        return tuple(git(repository, *command) for command in commands)

    before = state()
    court = Court()
    bisect(repository, "c0", "c19", court.take_good, court)
    assert state() == before

    def fails(tree: Path, commit: str) -> Step:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bisect(repository, "c0", "c19", court.take_good, fails)
    assert state() == before


def test_bad_commits_are_refused(repository: Path) -> None:
    court = Court()
    with pytest.raises(UsageError, match="has no commit nonsense"):
        bisect(repository, "nonsense", "c19", court.take_good, court)
    with pytest.raises(UsageError, match="c19 is no ancestor of c0"):
        bisect(repository, "c19", "c0", court.take_good, court)
