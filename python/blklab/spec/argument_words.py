"""Flags of the command line in the words of a function of Python.

Messages and hints are written for the command line, where most people read them. A function that finds such a
mistake says ``kernels`` for ``--kernel`` and ``guest={'memory': '1g'}`` for ``--memory 1g``.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from blklab.spec.options import Option

_RENAMED = {
    "machine": "costs",
    "processors": "costs",
    "cost_table": "costs",
    "device": "target",
    "targets": "target",
    "jobs": "workload",
    "change": "changes",
    "kernel": "kernels",
    "sweep": "sweeps",
    "cgroup": "cgroups",
    "command": "commands",
    "guest_file": "guest_files",
}
"""Words of older versions and of the command line, where the function has another."""
_SHELL_COMMAND = re.compile(r"(`[^`]*`)")
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*)(?:[ =]('[^']*'|[\w.-]*\w))?")
_PLACEHOLDER = re.compile(r"[A-Z_]+$")
_GUEST = "guest"
_REQUEST_TABLE = re.compile(r"^machine(?=: )")
"""The simulator's request has the argument `parameters` in its table ``machine``."""


def in_arguments(text: str, known: Collection[str]) -> str:
    """The text with arguments in place of flags; commands in backticks stay as they are.

    Args:
        text: A message or a hint.
        known: Arguments of the function.
    """
    parts = _SHELL_COMMAND.split(text)
    parts[::2] = [_FLAG.sub(lambda found: _argument(found, known), part) for part in parts[::2]]
    return "".join(parts)


def in_request_arguments(text: str) -> str:
    """A message of the simulator about its request, with the argument in place of the request's table."""
    return _REQUEST_TABLE.sub("parameters", text)


def _argument(found: re.Match[str], known: Collection[str]) -> str:
    flag, after = found[1], found[2]
    option = _option_of(flag)
    is_value = after is not None and _is_value(after, option)
    rest = "" if is_value or after is None else f" {after}"
    name = _argument_for(flag.replace("-", "_"), known)
    value = None
    if is_value and after is not None:
        value = after if after.startswith("'") or _PLACEHOLDER.match(after) else repr(after)
    if name is not None:
        if value is None and option is not None and option.type is bool:
            value = "True"
        return f"{name}{'' if value is None else f'={value}'}{rest}"
    if option is not None and option.table == _GUEST and _GUEST in known:
        return f"{_GUEST}={{{option.name!r}: {value or '…'}}}{rest}"
    return found[0]


def _argument_for(word: str, known: Collection[str]) -> str | None:
    """The argument that a word stands for: of an older version, of the command line, or without its plural.

    Args:
        word: Letters and underscores.
        known: Arguments of the function.
    """
    renamed = _RENAMED.get(word, "")
    candidates = (word, renamed, f"{renamed}s", f"{word}s", word.removesuffix("s"))
    return next((one for one in candidates if one in known), None)


def _option_of(flag: str) -> Option | None:
    from blklab.spec.experiment import OPTIONS  # noqa: PLC0415 - needed after a mistake only

    return next((option for option in OPTIONS if option.flag == f"--{flag}"), None)


def _is_value(word: str, option: Option | None) -> bool:
    """Whether a word after a flag is its value, and not the next word of the sentence."""
    if word.startswith("'") or _PLACEHOLDER.match(word) or re.search(r"[\d-]", word):
        return True
    return option is not None and word in option.choices
