#!/usr/bin/env python3
"""Measures how often `blklab kernel judge` finds a difference where there is none: 100 neutral patches.

    python benches/court/neutral.py --base stock --results neutral.jsonl
    python benches/court/neutral.py --base stock --together --results together.jsonl    # all as one
    python benches/court/neutral.py --base stock --write /tmp/neutral                   # to look at them

The patches are drawn from the base's source by a fixed seed. Each is built and judged by itself; one whose
kernel is the same file as the base needs no run. Those of one scheduler's file are asked about under that
scheduler. Judges what the file of results lacks, prints a table for Markdown, and exits with 1 if more than
2 % are detected.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from judging import Judged, judge_all, only_scheduler, processor_minutes
from neutral_patches import Neutral, as_patch, neutral_patches

from blklab.guests.kernels.store import find
from blklab.guests.kernels.trees import find_tree

FEW = ("--disk", "hdd-7200", "--disk", "nvme-tlc", "--load", "mixed", "--load", "buffered")
"""Questions to one patch: direct I/O of several jobs, and the page cache with its merges and flushes, on a
disk that seeks and on one that does not. These are among the shortest, so that all patches take an hour."""
AT_MOST = 0.02


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--base", default="stock", help="a guest kernel without patches (blklab kernel build)"
    )
    parser.add_argument("--results", type=Path, metavar="FILE")
    parser.add_argument("--together", action="store_true", help="all as one patch, and all questions")
    parser.add_argument("--first", type=int, metavar="N", help="only the first N patches of each kind")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the patches, and judge none")
    arguments = parser.parse_args()
    record = find(arguments.base).record
    cached = find_tree(record.tree_id)
    if cached is None:
        sys.exit(f"the objects of {arguments.base} are gone: blklab kernel build")
    tree = cached.folder / "tree"
    patches = list(neutral_patches(tree, frozenset(cached.patched)))
    if arguments.first is not None:
        patches = _first(patches, arguments.first)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.write or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        made = [_together(patches, tree, folder)] if arguments.together else _each(patches, tree, folder)
        if arguments.write is not None:
            return 0
        if arguments.results is None:
            parser.error("--results or --write is needed")
        answers = judge_all(made, arguments.base, arguments.results)
    print("\n".join(_table(answers)))  # noqa: T201 - a program's output
    return int(sum(answer.detected for answer in answers) > AT_MOST * len(answers))


def _first(patches: Sequence[Neutral], count: int) -> list[Neutral]:
    """The first patches of each kind."""
    seen: Counter[str] = Counter()
    chosen = []
    for patch in patches:
        seen[_kind(patch.name)] += 1
        if seen[_kind(patch.name)] <= count:
            chosen.append(patch)
    return chosen


def _each(patches: Sequence[Neutral], tree: Path, folder: Path) -> list[tuple[str, Path, Sequence[str]]]:
    made: list[tuple[str, Path, Sequence[str]]] = []
    for patch in patches:
        file = folder / f"{patch.name}.patch"
        _write(file, patch.patch(_read(tree / patch.path)))
        scheduler = only_scheduler(file)
        made.append((patch.name, file, [*FEW, *(["--scheduler", scheduler] if scheduler else [])]))
    return made


def _together(patches: Sequence[Neutral], tree: Path, folder: Path) -> tuple[str, Path, Sequence[str]]:
    """All patches as one: each edit is made to what those before have left."""
    changed: dict[str, str] = {}
    for patch in patches:
        changed[patch.path] = patch.edit(changed.get(patch.path) or _read(tree / patch.path))
    file = folder / "together.patch"
    _write(file, "".join(as_patch(path, _read(tree / path), text) for path, text in sorted(changed.items())))
    return "together", file, []


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="surrogateescape")


def _kind(name: str) -> str:
    return name.split("-")[1] if name[:1].isdigit() else name


def _table(answers: Sequence[Judged]) -> list[str]:
    kinds = dict.fromkeys(_kind(answer.name) for answer in answers)
    lines = [
        "| Kind | Patches | The same file | The same to the bit | Same or undecided | Detected | Failed |"
    ]
    lines.append("|---|---|---|---|---|---|---|")
    for kind in kinds:
        of_kind = [answer for answer in answers if _kind(answer.name) == kind]
        failed = sum(answer.outcome == "failed" for answer in of_kind)
        same_file = sum(answer.same_bytes for answer in of_kind)
        same_bits = sum(answer.outcome == "identical" for answer in of_kind) - same_file
        detected = sum(answer.detected for answer in of_kind)
        rest = len(of_kind) - failed - same_file - same_bits - detected
        lines.append(
            f"| {kind} | {len(of_kind)} | {same_file} | {same_bits} | {rest} | {detected} | {failed} |"
        )
    detected = sum(answer.detected for answer in answers)
    return [*lines, "", f"{detected} of {len(answers)} detected", processor_minutes(answers)]


if __name__ == "__main__":
    sys.exit(main())
