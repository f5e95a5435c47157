"""Holds prose to a few rules of style, in pages, docstrings and Rust's doc comments.

Spelling is `typos`' work (`make lint`). A rule here has caught a real sentence that was hard to read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import pytest
from test_links import ROOT, tracked_files

Kind = Literal["page", "module", "python", "rust"]
"""A module is the first docstring or doc comment of a file, in either language."""


@dataclass(frozen=True)
class Rule:
    """A pattern that prose must not match, and what to write."""

    name: str
    pattern: re.Pattern[str]
    instead: str
    kinds: tuple[Kind, ...] = ("page", "module", "python", "rust")


RULES = (
    Rule(
        "riddle of a module",
        re.compile(r"\A(?:What|Who|Whoever|Whose|Whether|How|Where)\b(?![^.]*\?)"),
        "name the thing, or begin with a verb",
        ("module",),
    ),
    Rule(
        "riddle of a class, function or field",
        re.compile(r"\A(?:What|Who|Whoever|Whose)\b(?![^.]*\?)"),
        "name the thing, or begin with a verb",
        ("python", "rust"),
    ),
    Rule(
        "riddle in a page",
        re.compile(r"(?:\A|(?<=[.:;] ))(?:What|Who|Whoever|Whether) (?![^.]*\?)[^.]{25,}\.", re.MULTILINE),
        "name the thing, or begin with a verb",
        ("page",),
    ),
    Rule("whoever", re.compile(r"\bwhoever\b", re.IGNORECASE), "name the scheduler, job or user"),
    Rule(
        "nothing for None",
        re.compile(r"(?:;|, or|[Rr]eturns) nothing\b(?! (?:else|but|more))"),
        "None, if the value is None",
        ("module", "python"),
    ),
    Rule("points of percent", re.compile(r"\bpoints of percent\b"), "percentage points"),
    Rule(
        "translated idiom",
        re.compile(
            r"\b(?:hangs? on|stands? in|goes on|going on with|comes to (?!an? end|mind|life)|is told|"
            r"are told|by turns|is had|to be had|comes? about (?:in|by))\b"
        ),
        "depends on, is in, continues, amounts to, says, alternating",
    ),
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_prose(rule: Rule) -> None:
    listed = "\n".join(violations(rule))
    assert not listed, f"write {rule.instead}:\n{listed}"


def violations(rule: Rule) -> list[str]:
    """Places that break a rule."""
    return [
        f"{path.relative_to(ROOT)}:{line}: {rule.name}: {match.group(0)[:70]}"
        for path, kind, line, text in prose()
        if kind in rule.kinds
        for match in rule.pattern.finditer(text)
    ]


@cache
def prose() -> tuple[tuple[Path, Kind, int, str], ...]:
    """Paragraphs and docstrings of the project, each on one line: file, kind, line, text."""
    return tuple(_prose())


def _prose() -> Iterator[tuple[Path, Kind, int, str]]:
    for path in tracked_files():
        if path == Path(__file__) or "tests/readers/files" in path.as_posix():
            continue
        if path.suffix == ".md":
            yield from ((path, "page", line, text) for line, text in _paragraphs(path.read_text("utf-8")))
        elif path.suffix == ".py":
            for line, text in _docstrings(path.read_text("utf-8")):
                yield path, "module" if line == 1 else "python", line, text
        elif path.suffix == ".rs":
            for line, text in _doc_comments(path.read_text("utf-8")):
                yield path, "module" if line == 1 else "rust", line, text


def _paragraphs(page: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, list items and table cells, code apart."""
    without_code = re.sub(
        r"^```.*?^```", lambda code: "\n" * code.group(0).count("\n"), page, flags=re.S | re.M
    )
    for block in re.finditer(r"(?:^(?!\s*$).*\n?)+", without_code, re.MULTILINE):
        first = without_code.count("\n", 0, block.start()) + 1
        for item in re.split(r"\n(?=\s*(?:[*-]|\d+\.) |\|)", block.group(0)):
            for cell in item.split(" | ") if item.startswith("|") else [item]:
                yield first, " ".join(cell.strip("|*-# \n").split())


def _docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Docstrings of modules, classes and functions, and strings that follow a field."""
    for node in ast.walk(ast.parse(source)):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                text = child.value.value
                if isinstance(text, str):
                    yield child.lineno, " ".join(text.split())


def _doc_comments(source: str) -> Iterator[tuple[int, str]]:
    for block in re.finditer(r"(?:^ *//[/!](?: .*)?\n)+", source, re.MULTILINE):
        lines = (line.strip()[3:].strip() for line in block.group(0).splitlines())
        yield source.count("\n", 0, block.start()) + 1, " ".join(lines)
