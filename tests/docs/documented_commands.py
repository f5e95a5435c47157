"""The commands of the pages and of the program's own help, taken out of their text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from test_links import ROOT

from blklab.cli.reference.tree import all_commands

PROGRAM = "blklab"
_FENCE = re.compile(r"^( *)```(\w*)")
_SHELL = {"", "sh", "bash", "console"}
_BEGINS = re.compile(r"^(?:\$ |> )?(?=(?:sudo |[A-Z_]+=\S+ |git bisect run |podman run )|blklab )")
ANSWERS = "questions-people-ask.md"
_IN_A_CELL = re.compile(r"`((?:sudo )?blklab [^`]+)`")
_BREAKS = {"|", "||", "&&", ";", "&", ">", "2>", ">>", "<", "do", "done"}


@dataclass(frozen=True)
class DocumentedCommand:
    """One call of the program."""

    place: str
    """The page and line, or the command whose help has it."""
    words: tuple[str, ...]
    """Behind the program's name."""
    as_root: bool = False

    @property
    def text(self) -> str:
        """As a person would type it."""
        return shlex.join((PROGRAM, *self.words))

    @property
    def page(self) -> str:
        """The place without the line."""
        return self.place.partition(":")[0]


@cache
def documented_commands() -> tuple[DocumentedCommand, ...]:
    """All of them: of the README, of the pages under docs/, and of each command's examples."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return (*(one for page in pages for one in commands_of_page(page)), *_examples())


def commands_of_page(page: Path) -> Iterator[DocumentedCommand]:
    """The commands in the shell blocks of a page, and in the tables of the one that answers questions."""
    name = str(page.relative_to(ROOT))
    text = page.read_text("utf-8")
    for number, line in _shell_lines(text):
        yield from commands_of_line(line, f"{name}:{number}")
    if page.name == ANSWERS:
        for number, line in enumerate(text.splitlines(), 1):
            for command in _IN_A_CELL.findall(line) if line.startswith("|") else ():
                yield from commands_of_line(command, f"{name}:{number}")


def commands_of_line(line: str, place: str) -> Iterator[DocumentedCommand]:
    """The calls in one line of a shell."""
    words = _split(line)
    for index, word in enumerate(words):
        # An image of a container may have the program's name.
        if word != PROGRAM or words[index - 1 : index] in (["--tag"], ["FROM"]):
            continue
        rest = words[index + 1 :]
        end = next((place for place, one in enumerate(rest) if one in _BREAKS), len(rest))
        yield DocumentedCommand(place, tuple(rest[:end]), "sudo" in words[:index])


def _examples() -> Iterator[DocumentedCommand]:
    for node in all_commands():
        for example in getattr(node.command, "examples", ()):
            line = re.sub(r'^eval "\$\((.*)\)"$', r"\1", example.command)
            yield from commands_of_line(line, f"{node.usage} --help")


def _split(line: str) -> list[str]:
    """Words and operators; a comment is left out."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words = []
    for word in lexer:
        if word.startswith("#"):
            break
        words.append(word)
    return words


def _shell_lines(text: str) -> Iterator[tuple[int, str]]:
    """Command lines of shell blocks with their numbers; continued lines are one."""
    fence: str | None = None
    begun: tuple[int, str] | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if found := _FENCE.match(line):
            fence = found[2] if fence is None else None
            begun = None
            continue
        is_shell = fence in _SHELL if fence is not None else line.startswith("    ")
        stripped = line.strip()
        if begun is not None:
            begun = (begun[0], begun[1] + " " + stripped.removesuffix("\\").strip())
        elif is_shell and _BEGINS.match(stripped):
            begun = (number, stripped.removesuffix("\\").strip())
        if begun is not None and not stripped.endswith("\\"):
            yield begun
            begun = None
