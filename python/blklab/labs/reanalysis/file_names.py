"""Factors in the names of files: a study with one file for each cell says in their paths what each cell is.

A pattern names the parts of a path, as in ``rep_{run}/qd_{depth}_sche_{scheduler}.txt``. It is compared with
the end of a path. `proposed_pattern` finds one from the paths themselves.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import DesignError, UsageError
from blklab.labs.reanalysis.design import RUN
from blklab.labs.reanalysis.readers.protocol import Role

SCHEDULER = "scheduler"
MOST_FILES = 20_000
"""A folder with more files is not a study's results."""

_FIELD = re.compile(r"\{(?P<name>[^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_]\w*")
_SCHEDULERS = (
    "mq-deadline",
    "mq_deadline",
    "mqdeadline",
    "deadline",
    "bfq-mq",
    "bfq",
    "kyber",
    "none",
    "noop",
    "cfq",
    "anticipatory",
    "adios",
    "kpp",
)
_SCHEDULER = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_SCHEDULERS)})(?![A-Za-z0-9])", re.IGNORECASE)
_SCHEDULER_WORDS = frozenset({"sche", "sched", "scheduler", "ioscheduler", "iosched", "elevator", "elv"})
_RUN_WORDS = frozenset(
    {"rep", "reps", "repeat", "repetition", "run", "runs", "iter", "iteration", "trial", "try", "round"}
)
_NAMELESS = "part"
_WORD = re.compile(r"[A-Za-z]+|\d+(?:\.\d+)?[A-Za-z%]*|[^A-Za-z\d]+", re.ASCII)
_WORD_BEGINS = re.compile(r"[A-Za-z\d]", re.ASCII)


@dataclass(frozen=True)
class NamesPattern:
    """A pattern for the ends of paths."""

    text: str
    fields: tuple[str, ...]
    expression: re.Pattern[str]

    @classmethod
    def parse(cls, text: str) -> NamesPattern:
        """Reads a pattern.

        Raises:
            UsageError: if it names nothing, or a field's name is not a word.
        """
        fields: list[str] = []
        parts: list[str] = []
        last = 0
        for match in _FIELD.finditer(text):
            # Between two parts that touch, as in kyber1, letters end and a number begins.
            touches = bool(parts) and last == match.start()
            parts.append(_literal(text[last : match.start()]))
            last = match.end()
            ends = r"[^/\d]" if text.startswith("{", last) else ""
            begins = r"\d" if touches else ""
            name = match["name"].strip()
            if not name:
                parts.append("[^/]*?")
            elif not _NAME.fullmatch(name):
                raise UsageError(
                    f"--names {text!r}: {name!r} is no name of a factor", hint="letters, digits and _ only"
                )
            elif name in fields:
                parts.append(f"(?P={name})")
            else:
                fields.append(name)
                any_text = "[^/]*?" if begins or ends else "[^/]+?"
                parts.append(f"(?P<{name}>{begins}{any_text}{ends})")
        rest = text[last:]
        if not fields or any(brace in _FIELD.sub("", text) for brace in "{}"):
            raise UsageError(
                f"--names {text!r} names no part of a path",
                hint="put the parts that vary into braces: 'rep_{run}/qd_{depth}_sche_{scheduler}.txt'",
            )
        begin = "^" if text.startswith("/") else "(?:^|/)"
        return cls(text, tuple(fields), re.compile(f"{begin}{''.join(parts)}{_literal(rest)}$"))

    def factors(self, path: str) -> dict[str, str] | None:
        """The factors in a path; None if it does not fit."""
        match = self.expression.search(path.replace(os.sep, "/"))
        return None if match is None else dict(match.groupdict())

    def roles(self, factor: str | None) -> dict[str, Role]:
        """The roles of the fields.

        A scheduler is compared unless another factor is; a run is a repetition; the others are conditions.
        Without a scheduler, any field may be what was compared: the design follows from the values, or blklab
        asks.
        """
        compared = factor or (SCHEDULER if SCHEDULER in self.fields else None)
        other: Role = "condition" if compared else "level"
        roles = dict.fromkeys(self.fields, other)
        for name in (SCHEDULER, compared):
            if name in roles:
                roles[name] = "level"
        if RUN in roles and factor != RUN:
            roles[RUN] = "description"
        return roles


def _literal(text: str) -> str:
    """A literal part as an expression; an asterisk stands for any text within a folder."""
    return "[^/]*".join(map(re.escape, text.split("*")))


def files_below(paths: Sequence[str]) -> tuple[list[str], set[str]]:
    """The files that some paths name: those below a folder, in the order of their names, and the others.

    Returns:
        All files, and those among them that were found below a folder.

    Raises:
        UsageError: if a folder has no file, or far too many.
    """
    files: list[str] = []
    found: set[str] = set()
    for path in paths:
        if not Path(path).is_dir():
            files.append(path)
            continue
        below = []
        for folder, folders, names in os.walk(path):
            folders[:] = sorted((name for name in folders if not name.startswith(".")), key=_natural)
            shown = sorted((name for name in names if not name.startswith(".")), key=_natural)
            below += [str(path) for path in (Path(folder) / name for name in shown) if _may_be_read(path)]
            if len(below) > MOST_FILES:
                raise UsageError(
                    f"{path}: more than {MOST_FILES} files are below this folder",
                    hint="name a folder further down",
                )
        if not below:
            raise UsageError(f"{path}: no file is below this folder")
        files += below
        found.update(below)
    return files, found


def _may_be_read(path: Path) -> bool:
    """Whether it is a file, or a link to nowhere, which a message names; a pipe would be waited for."""
    return path.is_file() or not path.exists()


def _natural(name: str) -> list[tuple[float, str]]:
    """Sorts qd_2 before qd_16."""
    parts = re.split(r"(\d{1,15})", name)
    return [(float(part), "") if part.isdecimal() else (-1.0, part) for part in parts]


def factors_of_paths(
    pattern: NamesPattern, paths: Iterable[str], optional: set[str]
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """The factors of each path, and the optional paths that do not fit.

    Raises:
        DesignError: if a path that is not optional does not fit, or none does.
    """
    factors: dict[str, dict[str, str]] = {}
    unfit = []
    for path in paths:
        found = pattern.factors(path)
        if found is not None:
            factors[path] = found
        elif path in optional:
            unfit.append(path)
        else:
            raise DesignError(
                f"{path} does not fit --names {pattern.text!r}",
                hint="the pattern is compared with the end of each path; * stands for any text",
            )
    if not factors:
        raise DesignError(
            f"no path fits --names {pattern.text!r}, such as {unfit[0] if unfit else 'none'}",
            hint="the pattern is compared with the end of each path; * stands for any text",
        )
    return factors, unfit


def proposed_pattern(paths: Sequence[str]) -> NamesPattern | None:
    """A pattern that tells paths of one form apart: of the form that most of them have.

    None if fewer than two have it, or their names differ in words that separate others.
    """
    forms: dict[tuple[str, ...], list[list[str]]] = {}
    for path in _without_common_folders(paths):
        tokens = _tokens(path)
        form = tuple("" if _WORD_BEGINS.match(token) else token for token in tokens)
        forms.setdefault(form, []).append(tokens)
    rows = max(forms.values(), key=len, default=[])
    columns = list(zip(*rows, strict=True))
    names: Counter[str] = Counter()
    text = ""
    for index, column in enumerate(columns):
        if len(set(column)) == 1:
            text += column[0]
            continue
        name = _field_name(columns, index)
        names[name] += 1
        text += "{" + (name if names[name] == 1 else f"{name}{names[name]}") + "}"
    literal = "".join(column[0] for column in columns)
    if not names or any(sign in literal for sign in "{}*"):
        return None
    return NamesPattern.parse(text)


def _without_common_folders(paths: Sequence[str]) -> list[str]:
    split = [path.replace(os.sep, "/").split("/") for path in paths]
    common = 0
    while all(len(parts) > common + 1 for parts in split) and len({parts[common] for parts in split}) == 1:
        common += 1
    return ["/".join(parts[common:]) for parts in split]


def _tokens(path: str) -> list[str]:
    """Words, numbers with their units, and what separates them; a scheduler is one word."""
    tokens: list[str] = []
    last = 0
    for match in _SCHEDULER.finditer(path):
        tokens += _WORD.findall(path[last : match.start()])
        tokens.append(match[0])
        last = match.end()
    return tokens + _WORD.findall(path[last:])


def _field_name(columns: Sequence[Sequence[str]], index: int) -> str:
    word = _word_before(columns, index)
    values = set(columns[index])
    if word in _SCHEDULER_WORDS or all(_SCHEDULER.fullmatch(value) for value in values):
        return SCHEDULER
    if word in _RUN_WORDS and all(value.isdigit() for value in values):
        return RUN
    if not word and index and _counts_runs_of_schedulers(columns[index - 1], values):
        return RUN
    return word or _NAMELESS


def _counts_runs_of_schedulers(before: Sequence[str], values: set[str]) -> bool:
    """Whether numbers from 0 or 1 stand right behind the names of schedulers (`kyber1`, `kyber2`)."""
    if not all(_SCHEDULER.fullmatch(value) for value in before) or not all(map(str.isdecimal, values)):
        return False
    numbers = sorted(map(int, values))
    return numbers[0] <= 1 and numbers == list(range(numbers[0], numbers[0] + len(values)))


def is_nameless(field: str) -> bool:
    """Whether a proposed pattern found no word that names this field."""
    return field.startswith(_NAMELESS)


def _word_before(columns: Sequence[Sequence[str]], index: int) -> str:
    """The constant word that stands before a place, within its folder or file."""
    for column in reversed(columns[:index]):
        if len(set(column)) > 1 or "/" in column[0]:
            return ""
        if column[0].isalpha():
            return column[0].lower()
        if column[0][0].isdigit():
            return ""
    return ""
