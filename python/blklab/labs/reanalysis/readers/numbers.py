"""Parses numbers as printed under several locales."""

from __future__ import annotations

import math
import re
from typing import Literal

LARGEST, SMALLEST = 1e30, 1e-30
"""Values beyond these are damage; squares and ratios of values between them do not overflow."""

Decimal = Literal[".", ","]

_NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}", re.ASCII)
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:[., \u00a0\u202f']\d{3})+(?:[.,]\d+)?", re.ASCII)
_NOT_NUMBERS = frozenset({"nan", "-nan", "+nan", "inf", "-inf", "+inf", "infinity", "-infinity"})

NUMBER = r"[+-]?\d+(?:[.,]\d+)?"
"""Pattern of a number with a decimal point or comma."""


class NumberError(ValueError):
    """The text is not a usable number; the message gives the reason."""


def parse_number(text: str, decimal: Decimal | None = None, *, thousands_possible: bool = False) -> float:
    """Reads a finite number.

    Args:
        text: The printed number.
        decimal: The decimal sign; None accepts both.
        thousands_possible: Whether ``1,234`` could mean 1234; such a number is refused unless `decimal`
            settles it. Programs that print plain numbers never group digits.

    Raises:
        NumberError: with the reason.
    """
    stripped = text.strip()
    if stripped.lower() in _NOT_NUMBERS:
        raise NumberError(f"{stripped!r} is not a finite number")
    if not _NUMBER.fullmatch(stripped):
        grouped = " (grouped digits are not supported)" if _GROUPED.fullmatch(stripped) else ""
        raise NumberError(f"{shown(stripped)} is not a number{grouped}")
    if decimal is None:
        if thousands_possible and "," in stripped and _AMBIGUOUS.fullmatch(stripped):
            raise NumberError(f"{stripped!r} may be a fraction or thousands; settle it with --decimal")
    elif (other := "," if decimal == "." else ".") in stripped:
        raise NumberError(f"{stripped!r} has {other!r} where the decimal sign is {decimal!r}")
    value = float(stripped.replace(",", "."))
    if not math.isfinite(value) or (value and not SMALLEST <= abs(value) <= LARGEST):
        raise NumberError(f"{shown(stripped)} is outside the range of measurements")
    return value


def shown(text: str, width: int = 60) -> str:
    """A text from a file in quotes, shortened."""
    return repr(text if len(text) <= width else text[: width - 1] + "…")


def agrees(value: float, expected: float, relative: float) -> bool:
    """Whether two values of the same quantity agree within a relative tolerance."""
    return abs(value - expected) <= relative * max(abs(value), abs(expected))
