#!/usr/bin/env python3
"""Measures which historic regressions `blklab kernel judge` finds: fixes in regressions.toml, each undone.

    python benches/court/regressions.py --base stock --results found.jsonl
    python benches/court/regressions.py --base stock --only plug-of-16 --results found.jsonl
    python benches/court/regressions.py --base stock --near --results found.jsonl    # fewer questions

Prints a table for Markdown, and exits with 1 if fewer than 80 % are detected. Judges what the file of results
lacks, so that it can be stopped and started again. Regressions for another release than the base's are left
out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from judging import Judged, judge_all, only_scheduler, processor_minutes

from blklab.guests.kernels.store import find

HERE = Path(__file__).parent
ENOUGH = 0.8


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--base", default="stock", help="a guest kernel without patches (blklab kernel build)"
    )
    parser.add_argument("--only", action="append", metavar="NAME", help="this regression; repeatable")
    parser.add_argument(
        "--near",
        action="store_true",
        help="ask only about the disk and with the loads that the list names for it",
    )
    parser.add_argument("--results", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    listed = tomllib.loads((HERE / "regressions.toml").read_text(encoding="utf-8"))["regression"]
    version = find(arguments.base).version
    entries = [
        entry
        for entry in listed
        if entry["base"] == version and (not arguments.only or entry["name"] in arguments.only)
    ]
    if not entries:
        sys.exit(f"no regression for {version} ({arguments.base}) is chosen")
    patches = [_patch(entry, near=arguments.near) for entry in entries]
    answers = judge_all(patches, arguments.base, arguments.results)
    lines = ["| Regression | Fix | Expected | Verdict | Answers | Seconds |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {answer.name} | {entry['fix']} | {entry['expected']} | {answer.outcome} | {_summary(answer)} "
        f"| {answer.seconds:.0f} |"
        for entry, answer in zip(entries, answers, strict=True)
    ]
    detected = sum(answer.detected for answer in answers)
    lines += ["", f"{detected} of {len(answers)} detected", processor_minutes(answers)]
    print("\n".join(lines))  # noqa: T201 - a program's output
    return int(detected < ENOUGH * len(answers))


def _patch(entry: dict[str, Any], *, near: bool) -> tuple[str, Path, list[str]]:
    """A name, its patch, and its scope.

    A patch to one scheduler's files is asked about under that scheduler: the other questions would be the
    same to the bit, and these do not count in the correction for many answers.
    """
    path = HERE / "reverted" / f"{entry['name']}.patch"
    scheduler = only_scheduler(path)
    scope = [] if scheduler is None else ["--scheduler", scheduler]
    if near:
        scope += ["--disk", entry["near"]["disk"]]
        scope += [word for load in entry["near"]["loads"] for word in ("--load", load)]
    return entry["name"], path, scope


def _summary(answer: Judged) -> str:
    if not answer.slower and not answer.faster:
        return f"{answer.identical} of {answer.questions} the same to the bit"
    worst = answer.slower[0] if answer.slower else answer.faster[0]
    return f"{len(answer.slower)} slower, {len(answer.faster)} faster; {worst}"


if __name__ == "__main__":
    sys.exit(main())
