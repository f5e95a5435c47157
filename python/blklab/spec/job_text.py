"""Job files as they stand on disk: included files, variables of the environment, and fio's keywords.

The text that comes out holds all of it, so that a stored run repeats without the files, the environment and
the machine that it was read on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from blklab.errors import JobFileError

KEYWORDS = ("$pagesize", "$mb_memory", "$ncpus")
"""fio's words for facts of the machine."""
_INCLUDE = re.compile(r"include\s+(\S.*)")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_ARITHMETIC = re.compile(r"[\w.+\-*/%^() ]*[+\-*/%^][\w.+\-*/%^() ]*")
_MOST_DEPTH = 16
"""Files that include each other; more are a circle."""
_MOST_BYTES = 16 << 20


@dataclass
class JobText:
    """The text of a job file with all that it refers to, and the place that each of its lines came from."""

    lines: list[str] = field(default_factory=list)
    origins: list[tuple[str, int]] = field(default_factory=list)
    notes: list[tuple[int, str, str]] = field(default_factory=list)
    """Number of the line, option and remark."""

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "".join(f"{line}\n" for line in self.lines)

    def origin(self, line: int | None) -> tuple[str, int] | None:
        """File and line that a line of the text came from."""
        return self.origins[line - 1] if line is not None and 0 < line <= len(self.origins) else None


def needs_expansion(text: str, *, environment: bool) -> bool:
    """Whether a job file refers to anything beyond itself."""
    return (
        re.search(r"(?m)^\s*include\s", text) is not None
        or any(keyword in text for keyword in KEYWORDS)
        or (environment and "${" in text)
    )


def expand(text: str, path: Path, source: str, environment: Mapping[str, str] | None) -> JobText:
    """Reads in what a job file refers to.

    Args:
        text: The file.
        path: Its path, beside which fio looks for included files that are not in the current folder.
        source: Its name in messages.
        environment: Values of variables; None leaves them as they are.

    Raises:
        JobFileError: for a file that cannot be included, or a variable without a value.
    """
    expanded = JobText()
    _add(expanded, text, path, source, environment, depth=0)
    return expanded


def _add(
    to: JobText, text: str, path: Path, source: str, environment: Mapping[str, str] | None, depth: int
) -> None:
    for line, content in enumerate(text.splitlines(), start=1):
        stripped = re.split(r"[;#]", content, maxsplit=1)[0].strip()
        if depth and stripped.startswith("["):
            raise JobFileError("an included file has options only, and no sections", source=source, line=line)
        include = _INCLUDE.fullmatch(stripped)
        if include is not None:
            _add_file(to, include[1], path, (source, line), environment, depth)
            continue
        whole = _with_values(to, content, stripped, (source, line), environment) if stripped else content
        to.lines.append(whole)
        to.origins.append((source, line))


def _add_file(
    to: JobText,
    name: str,
    path: Path,
    place: tuple[str, int],
    environment: Mapping[str, str] | None,
    depth: int,
) -> None:
    source, line = place
    if depth == _MOST_DEPTH:
        raise JobFileError(f"{name} is included in a circle", source=source, line=line)
    try:
        found = Path(name) if Path(name).exists() else path.parent / name
        text = found.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise JobFileError(
            f"{name} cannot be included: {reason}",
            source=source,
            line=line,
            hint=f"fio looks for it in the current folder and in {path.parent}",
        ) from error
    if sum(map(len, to.lines)) + len(text) > _MOST_BYTES:
        raise JobFileError("the included files are too large", source=source, line=line)
    _add(to, text, found, str(found), environment, depth + 1)


def _with_values(
    to: JobText,
    content: str,
    stripped: str,
    place: tuple[str, int],
    environment: Mapping[str, str] | None,
) -> str:
    """A line with its variables and keywords replaced."""
    source, line = place

    def value_of(match: re.Match[str]) -> str:
        value = None if environment is None else environment.get(match[1])
        if value is None:
            raise JobFileError(
                f"the environment has no variable {match[1]}",
                source=source,
                line=line,
                hint=f"set it, such as {match[1]}=value blklab …",
            )
        return value

    replaced = stripped if environment is None else _VARIABLE.sub(value_of, stripped)
    option, separator, value = replaced.partition("=")
    if separator and any(keyword in value for keyword in KEYWORDS):
        for keyword in KEYWORDS:
            if keyword in value:
                value = value.replace(keyword, str(_fact(keyword)))
        value = value.strip()
        if _ARITHMETIC.fullmatch(value):
            value = f"({value})"
        to.notes.append((len(to.lines) + 1, option.strip(), f"on this machine {stripped} is {value}"))
        replaced = f"{option}={value}"
    return content if replaced == stripped else replaced


def _fact(keyword: str) -> int:
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    return {
        "$pagesize": page_bytes,
        "$mb_memory": os.sysconf("SC_PHYS_PAGES") * page_bytes >> 20,
        "$ncpus": os.sysconf("SC_NPROCESSORS_CONF"),
    }[keyword]
