"""A name stands for one class of the package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import blklab

PACKAGE = Path(blklab.__file__).parent


def _repeated(sources: dict[str, str]) -> dict[str, list[str]]:
    """Names that modules give to public classes more than once, with those modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, text in sources.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module)
    return {name: modules for name, modules in found.items() if len(modules) > 1}


def test_no_two_classes_have_the_same_name() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    assert _repeated({str(file.relative_to(PACKAGE)): file.read_text("utf-8") for file in files}) == {}


def test_a_second_class_of_the_same_name_is_found() -> None:
    sources = {
        "one.py": "class Sweep: ...",
        "two.py": "class Sweep(int): ...\nclass _Own: ...",
        "three.py": "class _Own: ...",
    }
    assert _repeated(sources) == {"Sweep": ["one.py", "two.py"]}
