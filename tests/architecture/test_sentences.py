"""The analysis finds facts, and `blklab.report.sentences` puts them into words."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

from blklab.analysis.doubts import Doubt
from blklab.analysis.overall import Basis
from blklab.report.sentences.answer import basis_text
from blklab.report.sentences.doubts import doubt_text

ANALYSIS = Path(__file__).resolve().parents[2] / "python" / "blklab" / "analysis"
MOST_WORDS = 3
"""A longer text is a clause. Names of metrics and symptoms are shorter."""


def _documentation(tree: ast.AST) -> set[int]:
    """Docstrings of modules, classes, functions and attributes."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def _descriptions(tree: ast.AST) -> set[int]:
    """The descriptions that metrics carry, so that reports need not know them."""
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    named = [(ast.unparse(target), node.value) for node in assigned for target in node.targets]
    named += [(node.arg or "", node.value) for node in ast.walk(tree) if isinstance(node, ast.keyword)]
    return {id(part) for name, node in named if name.lower() == "description" for part in ast.walk(node)}


def _errors(tree: ast.AST) -> set[int]:
    """The messages of exceptions."""
    raised = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    return {id(part) for node in raised for part in ast.walk(node)}


def _clauses(source: str) -> list[str]:
    """The texts of several words that a module puts together."""
    tree = ast.parse(source)
    passed_over = _documentation(tree) | _descriptions(tree) | _errors(tree)
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in joined for part in node.values}
    texts = {
        id(node): "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in node.values)
        for node in joined
    }
    texts |= {
        id(node): node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts
    }
    return [text for key, text in texts.items() if key not in passed_over and len(text.split()) > MOST_WORDS]


def test_the_analysis_writes_no_sentence() -> None:
    found = {
        str(path.relative_to(ANALYSIS)): clauses
        for path in sorted(ANALYSIS.rglob("*.py"))
        if (clauses := _clauses(path.read_text("utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("source", "clauses"),
    [
        ('warning = f"{name} is best of all"', ["0 is best of all"]),
        ('def found():\n    "Says that all is well."\n    return "all is well here"', ["all is well here"]),
        ('raise ValueError(f"{name} is no known metric")', []),
        ('Metric(description="time that a read took")', []),
        ('kind = "reads of others"', []),
    ],
)
def test_sentences_are_told_from_documentation_and_names(source: str, clauses: list[str]) -> None:
    assert _clauses(source) == clauses


def test_every_doubt_and_every_basis_of_an_answer_has_a_sentence() -> None:
    assert set(get_args(Doubt)) <= set(doubt_text.registry)
    assert set(get_args(Basis)) <= set(basis_text.registry)
