"""Patches that change nothing that can be measured, drawn from a kernel's source by a seed.

Comments, other names, hints to the compiler, messages, and functions that nobody calls, in block/ and in
other parts of the kernel. They are drawn anew each time, and are the same for the same source and seed.
"""

from __future__ import annotations

import difflib
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

SEED = 22
BLOCK = ("block",)
ELSEWHERE = ("fs", "lib", "mm", "kernel", "drivers/md", "io_uring")
_INSTRUMENTED = ("kernel/time", "kernel/sched")
"""Left alone: blklab's instruments or the clock touch them."""
_STATIC = re.compile(r"^static (?:inline )?(?:struct )?[\w ]+[ *](\w+)\(", re.MULTILINE)
_MESSAGE = re.compile(r'^(\s*pr_(?:err|warn|info|notice)\(")(?=[A-Za-z])', re.MULTILINE)
_HINT = re.compile(r"\bif \((?:un)?likely\(", re.MULTILINE)
_STATEMENT = re.compile(r"^\t+\w[^\n\\/*]*;$", re.MULTILINE)
_END_OF_FUNCTION = re.compile(r"^}$", re.MULTILINE)

Edit = Callable[[str], str]


@dataclass(frozen=True)
class Neutral:
    """A neutral patch: a change to one file."""

    name: str
    path: str
    edit: Edit

    def patch(self, original: str) -> str:
        """As a patch in the usual form."""
        return as_patch(self.path, original, self.edit(original))


def as_patch(path: str, original: str, changed: str) -> str:
    """The difference between two states of a file."""
    lines = difflib.unified_diff(
        original.splitlines(keepends=True), changed.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    return "".join(lines)


def _at(
    pattern: re.Pattern[str], draw: random.Random, text: str, change: Callable[[str], str]
) -> Edit | None:
    """An edit of one match of a pattern; it finds its place again by the text, if other edits came before."""
    matches = list(pattern.finditer(text))
    if not matches:
        return None
    line = _line_of(text, draw.choice(matches).start())
    if text.count(f"\n{line}\n") != 1:
        return None
    return lambda now: now.replace(f"\n{line}\n", f"\n{change(line)}\n")


def _line_of(text: str, place: int) -> str:
    return text[text.rfind("\n", 0, place) + 1 : text.find("\n", place)]


def comment(draw: random.Random, text: str, number: int) -> Edit | None:
    """Lines of comment between two functions: the lines that follow get other numbers."""
    ends = len(_END_OF_FUNCTION.findall(text))
    if not ends:
        return None
    chosen = draw.randrange(ends)

    def edit(now: str) -> str:
        place = list(_END_OF_FUNCTION.finditer(now))[chosen].end()
        return f"{now[:place]}\n\n/*\n * Remark {number}: nothing is different here.\n */{now[place:]}"

    return edit


def remark(draw: random.Random, text: str, number: int) -> Edit | None:
    """A comment behind a statement: no line moves."""
    return _at(_STATEMENT, draw, text, lambda line: f"{line} /* remark {number} */")


def rename(draw: random.Random, text: str, number: int) -> Edit | None:
    """Another name for a function of one file."""
    names = [name for name in dict.fromkeys(_STATIC.findall(text)) if not _is_pasted(name, text)]
    if not names:
        return None
    name = draw.choice(names)
    return lambda now: re.sub(rf"\b{name}\b", f"{name}_{number}", now)


def _is_pasted(name: str, text: str) -> bool:
    """Whether a macro may put the name together from parts, so that it stands nowhere in full."""
    first, _, rest = name.partition("_")
    parts = (name.rpartition("_")[0], rest)
    return name.endswith(("_show", "_store")) or any(
        part and re.search(rf"[(,]\s*{part}\s*[,)]", text) for part in parts if part != first
    )


def hint(draw: random.Random, text: str, _: int) -> Edit | None:
    """A condition without its hint likely() or unlikely(): the compiler may order the code otherwise."""
    return _at(_HINT, draw, text, lambda line: _HINT.sub("if (!!(", line))


def message(draw: random.Random, text: str, number: int) -> Edit | None:
    """Another text of a message."""
    return _at(_MESSAGE, draw, text, lambda line: _MESSAGE.sub(rf"\1(message {number}) ", line))


def function(_draw: random.Random, _text: str, number: int) -> Edit | None:
    """A function that nobody calls, and that the compiler keeps."""
    body = (
        f"static int __maybe_unused __used neutral_{number}(int value)\n{{\n\treturn value + {number};\n}}\n"
    )
    return lambda now: f"{now}\n{body}"


KINDS: tuple[tuple[str, Callable[[random.Random, str, int], Edit | None], tuple[str, ...], int], ...] = (
    ("comment", comment, BLOCK, 20),
    ("remark", remark, BLOCK, 10),
    ("rename", rename, BLOCK, 20),
    ("hint", hint, BLOCK, 15),
    ("message", message, ELSEWHERE, 20),
    ("function", function, ELSEWHERE, 15),
)
"""Name, maker, folders and number."""


def neutral_patches(tree: Path, patched: frozenset[str]) -> Iterator[Neutral]:
    """The patches for a source that was built.

    Args:
        tree: The source with its objects: only files that were compiled are changed.
        patched: Files that are left alone, because they differ from the source.
    """
    draw = random.Random(SEED)  # noqa: S311 - not for secrets
    number = 0
    taken: set[tuple[str, str]] = set()
    for kind, make, folders, count in KINDS:
        files = [path for path in _compiled(tree, folders) if path not in patched]
        for _ in range(count):
            number += 1
            yield _one(draw, tree, files, kind, make, number, taken)


def _one(
    draw: random.Random,
    tree: Path,
    files: list[str],
    kind: str,
    make: Callable[[random.Random, str, int], Edit | None],
    number: int,
    taken: set[tuple[str, str]],
) -> Neutral:
    while True:
        path = draw.choice(files)
        text = (tree / path).read_text(encoding="utf-8", errors="surrogateescape")
        edit = make(draw, text, number)
        if edit is None or (changed := edit(text)) == text or (path, changed) in taken:
            continue
        taken.add((path, changed))
        return Neutral(f"{number:03}-{kind}-{Path(path).stem}", path, edit)


def _compiled(tree: Path, folders: tuple[str, ...]) -> list[str]:
    paths = [
        str(path.relative_to(tree))
        for folder in folders
        for path in sorted((tree / folder).rglob("*.c"))
        if path.with_suffix(".o").exists()
    ]
    return [path for path in paths if not path.startswith(_INSTRUMENTED)]
