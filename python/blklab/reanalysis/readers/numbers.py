"""Numbers as printed under several locales."""

from __future__ import annotations

import math
import re
from typing import Literal

LARGEST, SMALLEST = 1e30, 1e-30
"""Beyond these a value is damage; squares and ratios of what lies between can be computed with."""

Decimal = Literal[".", ","]

_NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}", re.ASCII)
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:[., \u00a0\u202f']\d{3})+(?:[.,]\d+)?", re.ASCII)
_NOT_NUMBERS = frozenset({"nan", "-nan", "+nan", "inf", "-inf", "+inf", "infinity", "-infinity"})

NUMBER = r"[+-]?\d+(?:[.,]\d+)?"
"""For patterns of lines: a number with a point or a comma."""


class NumberError(ValueError):
    """The text is not a number that can be used; the message says why."""


def parse_number(text: str, decimal: Decimal | None = None, *, thousands_possible: bool = False) -> float:
    """Reads a finite number.

    Args:
        text: As printed.
        decimal: The sign between whole and fraction; where nothing is given, either is taken.
        thousands_possible: Whether ``1,234`` could mean one thousand and more; it is refused then unless
            `decimal` settles it. Programs that print plain numbers never group digits.

    Raises:
        NumberError: with the reason.
    """
    stripped = text.strip()
    if stripped.lower() in _NOT_NUMBERS:
        raise NumberError(f"{stripped!r} is not a finite number")
    if not _NUMBER.fullmatch(stripped):
        grouped = " (digits in groups are not read)" if _GROUPED.fullmatch(stripped) else ""
        raise NumberError(f"{shown(stripped)} is not a number{grouped}")
    if decimal is None:
        if thousands_possible and "," in stripped and _AMBIGUOUS.fullmatch(stripped):
            raise NumberError(f"{stripped!r} may be a fraction or thousands; --decimal settles it")
    elif (other := "," if decimal == "." else ".") in stripped:
        raise NumberError(f"{stripped!r} has {other!r} where the decimal sign is {decimal!r}")
    value = float(stripped.replace(",", "."))
    if not math.isfinite(value) or (value and not SMALLEST <= abs(value) <= LARGEST):
        raise NumberError(f"{shown(stripped)} is no value that anything measures")
    return value


def shown(text: str, width: int = 60) -> str:
    """A piece of a file in quotes, shortened."""
    return repr(text if len(text) <= width else text[: width - 1] + "…")


def agrees(value: float, expected: float, relative: float) -> bool:
    """Whether two values that say the same thing do, within a relative tolerance."""
    return abs(value - expected) <= relative * max(abs(value), abs(expected))
