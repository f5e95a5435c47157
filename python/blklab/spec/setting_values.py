r"""The grammar of values for the kernel's files: of tunables, attributes of the queue and control groups.

Kernels take numbers and words such as ``64``, ``-1``, ``max``, ``write back`` or ``rbps=1048576 wbps=max``. A
value also ends in udev rules and shell lines, some of which run as root at every boot, and it may come from a
store that others write to. So it has no quotes, no ``$``, ``;``, ``\`` or ``>``, and no line breaks, wherever
it comes from: command line, description, program or store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from blklab.errors import UsageError

VALUE_PATTERN = r"[A-Za-z0-9_.+\-]+"
"""Of one word, as a regular expression."""
_WORD = re.compile(VALUE_PATTERN)
_QUEUE_VALUE = re.compile(rf"{VALUE_PATTERN}(?: {VALUE_PATTERN})*")
_GROUP_WORD = r"[A-Za-z0-9_.+:=\-]+"
_GROUP_VALUE = re.compile(rf"{_GROUP_WORD}(?: +{_GROUP_WORD})*")
_LONGEST = 200
"""Letters: a line for the root group's io.cost.model has some 120."""
_HINT = "values are numbers and words of letters, digits, '_', '.', '+' and '-'"
_GROUP_HINT = "write it as the kernel's file shows it, such as 100 or rbps=1048576 wbps=max"


def check_values(settings: Mapping[str, str]) -> None:
    """Checks the values of a scheduler's choice: one word each.

    Raises:
        UsageError: for the first that no file of the kernel could hold.
    """
    for name, value in settings.items():
        _check(_WORD, name, value, _HINT)


def check_queue_values(settings: Mapping[str, str]) -> None:
    """Checks the values of attributes of the queue, some of which are two words (``write back``).

    Raises:
        UsageError: for the first that no file of the kernel could hold.
    """
    for name, value in settings.items():
        _check(_QUEUE_VALUE, name, value, _HINT)


def check_group_value(name: str, value: str) -> None:
    """Checks a line for a file of a control group: words and ``KEY=VALUE``, perhaps with a disk's number.

    Raises:
        UsageError: if no file of the kernel could hold it.
    """
    _check(_GROUP_VALUE, name, value, _GROUP_HINT)


def _check(grammar: re.Pattern[str], name: str, value: str, hint: str) -> None:
    if len(value) > _LONGEST or grammar.fullmatch(value) is None:
        shown = value if len(value) <= _LONGEST else value[:_LONGEST] + "…"
        raise UsageError(f"{name}: {shown!r} is no value that the kernel takes", hint=hint)
