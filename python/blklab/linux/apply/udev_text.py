r"""Texts for udev's rules, each kind quoted for its place (udev(7)), so that no value leaves it.

In a string, ``\"`` is a quote, and in what a rule assigns or runs ``$`` and ``%`` begin substitutions unless
doubled. A backslash before the closing quote cannot be written. blklab's own grammars
(`blklab.spec.setting_values`) let none of these through; what is quoted here holds even so.
"""

from __future__ import annotations

import re
import shlex

from blklab.errors import UsageError
from blklab.quantities.visible import visible

_PATTERN_CHARACTERS = re.compile(r'[*?\[\]|\\"]|[^\x20-\x7e]')
_NO_PATTERN_CHARACTERS = re.compile(r'[|\\"]|[^\x20-\x7e]')
_IMPOSSIBLE = re.compile(r"[\\]|[^\x20-\x7e]")
DEVICE_NUMBER = "%M:%m"
"""udev's own words for major and minor number."""


def literal_pattern(text: str) -> str:
    """The text as a pattern that matches it; characters that are special there become ``?``."""
    return _PATTERN_CHARACTERS.sub("?", text)


def shell_pattern(text: str) -> str:
    """A shell's pattern as udev's; what would end the string or begin an alternative becomes ``?``."""
    return _NO_PATTERN_CHARACTERS.sub("?", text)


def assigned(text: str) -> str:
    """A value that a rule assigns, as a string in quotes.

    Raises:
        UsageError: if no string of udev can hold it.
    """
    return f'"{_escaped(text)}"'


def run_for_device(words: str, path: str) -> str:
    """``RUN+="…"`` that writes a line to a file: the device's number, then the words.

    Raises:
        UsageError: if a word would not reach the file as it is.
    """
    # udev splits the command itself and has no escape within its single quotes.
    for word in [*words.split(), path]:
        if shlex.quote(word) != word:
            raise UsageError(f"{word!r} cannot be written by a udev rule")
    return f"RUN+=\"/bin/sh -c 'echo {DEVICE_NUMBER} {_escaped(words)} > {_escaped(path)}'\""


def comment(text: str) -> str:
    """A line of a rule's or a profile's comments, with its line feed."""
    line = visible(" ".join(text.split()))
    # A backslash at the end would make the next line a part of this one.
    return f"# {line}{' .' if line.endswith(chr(92)) else ''}\n"


def _escaped(text: str) -> str:
    if _IMPOSSIBLE.search(text) is not None:
        raise UsageError(f"{text!r} cannot stand in a udev rule")
    return text.replace('"', r"\"").replace("$", "$$").replace("%", "%%")
