#!/usr/bin/env python3
"""Prints the size and the shape of the Python package: lines, rooms, arrows between them, names, flags.

An arrow is a pair of rooms one of which imports the other; upward arrows are those against the layers of the
import contract. Imports for type checking alone do not count.

    scripts/measure-house.py [CHECKOUT]
"""

from __future__ import annotations

import ast
import itertools
import re
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10: pip carries a copy of tomli
    from pip._vendor import tomli as tomllib  # type: ignore[no-redef]

HOUSES = ("blklab", "blklab.linux", "blklab.backends", "blklab.analysis", "blklab.report")
_LOAD = re.compile(r"isinstance\([\w.]*(?:work)?load\b|(?:command|replay|hdparm|tool)\b is (?:not )?None")


def main(checkout: Path) -> None:
    """Prints one line for each figure."""
    sources = dict(_sources(checkout / "python"))
    imports = {name: set(_imports(ast.parse(text), sources)) - {name} for name, text in sources.items()}
    contract = tomllib.loads((checkout / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    sys.stdout.write(
        f"lines of Python in the wheel: {sum(len(text.splitlines()) for text in sources.values()):,}\n"
    )
    for house in HOUSES:
        arrows = {
            (one, other)
            for name, found in imports.items()
            for imported in found
            if (one := _room(name, house)) and (other := _room(imported, house)) and one != other
        }
        rooms = set(itertools.chain.from_iterable(arrows))
        mutual = sum((other, one) in arrows for one, other in arrows) // 2
        upward = _upward(arrows, house, contract)
        sys.stdout.write(
            f"{house}: {len(rooms)} rooms, {len(arrows)} arrows, {mutual} mutual pairs, {upward} upward\n"
        )
    names = Counter(
        node.name
        for text in sources.values()
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    sys.stdout.write(f"class names that exist twice: {sum(count > 1 for count in names.values())}\n")
    asked = sum(len(_LOAD.findall(text)) for name, text in sources.items() if name.endswith("_session"))
    sys.stdout.write(f"questions which load a session has: {asked}\n")
    flags = {
        flag
        for name, text in sources.items()
        if name.startswith(("blklab.cli", "blklab.spec"))
        for flag in re.findall(r'"(--[a-z][a-z-]+)(?:/--[a-z-]+)?"', text)
    }
    sys.stdout.write(f"long flags: {len(flags)}\n")


def _sources(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("blklab/**/*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path.read_text("utf-8")


def _imports(tree: ast.AST, known: dict[str, str]) -> Iterator[str]:
    if isinstance(tree, ast.If) and ast.unparse(tree.test).endswith("TYPE_CHECKING"):
        return
    if isinstance(tree, ast.ImportFrom) and tree.module and tree.module.startswith("blklab"):
        for alias in tree.names:
            full = f"{tree.module}.{alias.name}"
            yield full if full in known else tree.module
    for child in ast.iter_child_nodes(tree):
        yield from _imports(child, known)


def _room(name: str, house: str) -> str | None:
    return name.removeprefix(f"{house}.").split(".")[0] if name.startswith(f"{house}.") else None


def _upward(arrows: set[tuple[str, str]], house: str, contracts: list[dict[str, object]]) -> int | str:
    for contract in contracts:
        if contract["type"] == "layers" and contract.get("containers") == [house]:
            floors: dict[str, int] = defaultdict(lambda: -1)
            for floor, line in enumerate(contract["layers"]):  # type: ignore[arg-type, var-annotated]
                floors |= dict.fromkeys(re.split(r"\s*[|:]\s*", line), floor)
            return sum(floors[one] > floors[other] for one, other in arrows)
    return "no contract:"


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader such as `head` may leave early
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1])
