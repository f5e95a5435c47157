"""Finds the commit that made a kernel slower: git chooses, every step is built and judged.

Works in a worktree of its own, so that the user's stays as it is, and so that each build begins with the
objects of the one before.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from blklab.errors import DataError, MissingToolError, UsageError
from blklab.guests.kernels.cache import kernel_cache, make_folder

Step = Literal["good", "bad", "skip"]

_FIRST_BAD = re.compile(r"^([0-9a-f]{40}) is the first bad commit$", re.MULTILINE)


@dataclass(frozen=True)
class Found:
    """The end of a bisection."""

    commit: str | None
    """The first slower commit; None if those that could not be judged are in the way."""
    candidates: tuple[str, ...]
    """The commits among which it is, in that case."""
    steps: tuple[tuple[str, Step], ...]
    """The commits that were judged, in order."""


def bisect(
    repository: Path,
    good: str,
    bad: str,
    take_good: Callable[[Path], None],
    judge_tree: Callable[[Path, str], Step],
) -> Found:
    """Bisects a repository between two commits.

    Args:
        repository: A git repository with a kernel's source.
        good: A commit that is fast.
        bad: A later one that is slow.
        take_good: Called with the tree of the good commit, before the first step.
        judge_tree: Judges the tree in a folder, which is the same at each step, at a commit.

    Raises:
        MissingToolError: without git.
        UsageError: if git does not know the commits, or they are in no order.
        DataError: if git fails.
    """
    if shutil.which("git") is None:
        raise MissingToolError("bisecting needs git", hint="install it (Debian: sudo apt-get install git)")
    for commit in (good, bad):
        if _git(repository, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}").returncode:
            raise UsageError(f"{repository} has no commit {commit}")
    if _git(repository, "merge-base", "--is-ancestor", good, bad).returncode:
        raise UsageError(f"{good} is no ancestor of {bad}", hint="--good names the earlier commit")
    steps: list[tuple[str, Step]] = []
    with _worktree(repository, good) as tree:
        take_good(tree)
        said = _must(_git(tree, "bisect", "start", bad, good))
        while (found := _FIRST_BAD.search(said)) is None and "only 'skip'ped commits left" not in said:
            commit = _must(_git(tree, "rev-parse", "HEAD")).strip()
            step = judge_tree(tree, commit)
            steps.append((commit, step))
            done = _git(tree, "bisect", step)
            # With nothing but skipped commits left, git exits with 2.
            said = done.stdout if done.returncode in (0, 2) else _must(done)
        candidates = tuple(re.findall(r"^[0-9a-f]{40}$", said, re.MULTILINE))
        _git(tree, "bisect", "reset")
    return Found(found[1] if found else None, candidates, tuple(steps))


@contextmanager
def _worktree(repository: Path, commit: str) -> Iterator[Path]:
    """A worktree in the cache of kernels; removed at the end."""
    tree = make_folder(kernel_cache() / "bisect") / "tree"
    _remove(repository, tree)
    _must(_git(repository, "worktree", "add", "--detach", "--force", str(tree), commit))
    try:
        yield tree
    finally:
        _remove(repository, tree)


def _remove(repository: Path, tree: Path) -> None:
    _git(repository, "worktree", "remove", "--force", str(tree))
    shutil.rmtree(tree, ignore_errors=True)
    _git(repository, "worktree", "prune")


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, check=False, text=True, errors="replace"
    )


def _must(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode:
        complaint = next(iter((done.stderr or done.stdout).strip().splitlines()), "no reason given")
        raise DataError(f"git {done.args[3]} failed: {complaint}")
    return done.stdout
