#!/usr/bin/env python3
"""Checks that a tag may be released: `check-release.py vVERSION [--notes]`.

The workspace, the citation and a heading of the changelog must name the same version. `--notes` prints the
changelog's part on it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(arguments: list[str]) -> int:
    """Prints what is wrong, or the notes; gives the exit code."""
    tag, *flags = arguments
    version = tag.removeprefix("v")
    notes = notes_of(version, (ROOT / "CHANGELOG.md").read_text("utf-8"))
    named = {
        "Cargo.toml": _first(r'^version = "([^"]+)"', ROOT / "Cargo.toml"),
        "CITATION.cff": _first(r"^version: (\S+)", ROOT / "CITATION.cff"),
    }
    wrong = [f"{file}: names {found}, not {version}" for file, found in named.items() if found != version]
    if notes is None:
        wrong.append(f"CHANGELOG.md: has no heading '## {version}'")
    if wrong:
        sys.stderr.write("\n".join(wrong) + "\n")
        return 1
    if "--notes" in flags:
        sys.stdout.write(f"{notes}\n")
    return 0


def notes_of(version: str, changelog: str) -> str | None:
    """The text under a version's heading, which a date may follow; None if there is no such heading."""
    heading = re.search(rf"^## {re.escape(version)}(?: .*)?$", changelog, re.MULTILINE)
    if heading is None:
        return None
    rest = changelog[heading.end() :]
    following = re.search(r"^## ", rest, re.MULTILINE)
    return (rest[: following.start()] if following else rest).strip()


def _first(pattern: str, path: Path) -> str | None:
    found = re.search(pattern, path.read_text("utf-8"), re.MULTILINE)
    return found.group(1) if found else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
