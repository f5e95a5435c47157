"""Nothing prints around the filter of `blklab.report.terminal`, and options with fractions have one type."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "blklab"

_MAY_WRITE = {
    "cli/output.py": "standard output of documents, filtered there",
    "cli/__init__.py": "flushes standard output",
    "cli/top_screen.py": "flushes standard output",
    "linux/journal/journal.py": "an error at exit, filtered there",
    "linux/machine/kernel_mistakes.py": "a mistake, told before the next step hangs; filtered there",
    "linux/load/command_supervisor.py": "a program of its own, whose output blklab reads",
}
"""Files that name ``sys.stdout`` or ``sys.stderr``, and why."""
_MAY_MAKE_TEXT = {"report/terminal.py", "report/text/printer.py"}
"""Files that make rich's `Text`, of text that they have filtered."""


_PRINTS = ("print", "pprint", "pprint.pprint", "click.echo", "click.secho", "console.out", "console.log")
_CONSOLES = ("Console", "rich.print", "rich.console.Console")
_TEXTS = ("Text", "Text.assemble", "Text.from_markup", "Text.from_ansi")
_STREAMS = ("sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__")
_FRACTIONS = ("click.FloatRange", "FloatRange", "click.FLOAT")


def _forbidden(place: str) -> tuple[str, ...]:
    """Names that a file may not use."""
    return (
        *_PRINTS,
        *(() if place == "report/terminal.py" else _CONSOLES),
        *(() if place in _MAY_MAKE_TEXT else _TEXTS),
        *(() if place in _MAY_WRITE else _STREAMS),
        *(() if place == "cli/numbers.py" else _FRACTIONS),
    )


def _bypasses(place: str, source: str) -> list[str]:
    """The names of one file through which unfiltered text, or nan, could pass."""
    nodes = list(ast.walk(ast.parse(source)))
    used = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
    used += [ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)]
    found = [name for name in used if name in _forbidden(place)]
    if "TextColumn" in used and "markup=False" not in source:
        found.append("TextColumn")
    return found


def test_all_output_goes_through_the_filter() -> None:
    found = {
        place: bypasses
        for path in sorted(PACKAGE.rglob("*.py"))
        if (bypasses := _bypasses(place := str(path.relative_to(PACKAGE)), path.read_text("utf-8")))
    }
    assert found == {}


def test_a_way_around_is_found() -> None:
    for source in (
        "print(name)",
        "click.echo(name)",
        "sys.stdout.write(name)",
        "Console().print(name)",
        "Text(name)",
        "click.option('--x', type=click.FloatRange(0, 1))",
        "TextColumn('{task.description}')",
    ):
        assert _bypasses("cli/newcomer.py", source), source
