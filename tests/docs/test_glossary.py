"""One thing has one name: pages, docstrings, messages and identifiers avoid the glossary's synonyms."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

from test_links import ROOT, tracked_files

GLOSSARY = ROOT / "docs/explanation/glossary.md"
MOST_ENTRIES = 30
PACKAGE = ROOT / "python/blklab"
_OTHER_SENSE = {
    "benchmark-runs": "docs/appendix/published-results.md",  # a folder of somebody else
    "tolerance": "python",  # of numerical methods, which is their own term
    "crossover": "docs/explanation/switchback.md",  # names the design in the literature
}
"""Synonyms that are right in another sense there."""
TWICE = 21
"""Class names that exist more than once, and their number only falls."""


def entries() -> dict[str, list[str]]:
    """The glossary: synonyms by word."""
    rows = re.findall(r"^\| \*\*(.+?)\*\* \| .+ \| (.*) ?\|$", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    return {word: [one.strip() for one in synonyms.split(",") if one.strip()] for word, synonyms in rows}


def test_the_glossary_is_short_and_says_each_thing_once() -> None:
    words = entries()
    assert 20 <= len(words) <= MOST_ENTRIES
    synonyms = [one for listed in words.values() for one in listed]
    assert len(set(synonyms)) == len(synonyms)
    assert not words.keys() & set(synonyms)


def test_nobody_uses_a_synonym() -> None:
    synonyms = [one for listed in entries().values() for one in listed]
    words = "|".join(re.escape(one).replace(r"\ ", r"[ _-]").replace(r"\-", r"[ _-]") for one in synonyms)
    pattern = re.compile(rf"(?<![a-z])(?:{words})s?(?![a-z])", re.IGNORECASE)
    found = []
    for path in tracked_files():
        place = path.relative_to(ROOT).as_posix()
        if path == GLOSSARY or not ((place.startswith("docs/") and path.suffix == ".md") or _is_ours(path)):
            continue
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            found += [
                f"{place}:{number}: {match.group(0)}"
                for match in pattern.finditer(line)
                if not place.startswith(_OTHER_SENSE.get(match.group(0).lower(), "nowhere"))
            ]
    assert not found, "the glossary has another word:\n" + "\n".join(found)


def _is_ours(path: Path) -> bool:
    return path.suffix == ".py" and path.is_relative_to(PACKAGE)


def test_class_names_do_not_multiply() -> None:
    defined = Counter(
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    twice = sorted(name for name, number in defined.items() if number > 1)
    assert len(twice) <= TWICE, f"these names exist more than once: {', '.join(twice)}"
