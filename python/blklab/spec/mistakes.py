"""Mistakes that pydantic found, in blklab's words: the place, the rule and the value."""

from __future__ import annotations

import math
from typing import Any

from pydantic import ValidationError

_BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_LONGEST_VALUE = 60
"""Letters of a value that a message repeats."""


def first_mistake(error: ValidationError) -> str:
    """The first mistake: ``margin: must be less than 1, not 5``.

    A rule over several fields names none of them, and an unknown key is named instead.
    """
    mistake = error.errors()[0]
    place = ".".join(str(part) for part in mistake["loc"])
    if mistake["type"] == "extra_forbidden":
        return f"unknown key {place!r}"
    text = _rule(mistake)
    return f"{place}: {text}" if place else text


def _rule(mistake: Any) -> str:
    kind, context, value = mistake["type"], mistake.get("ctx", {}), mistake.get("input")
    if isinstance(value, float) and not math.isfinite(value):
        return f"must be a number, not {value}"
    if kind == "value_error":
        return str(context.get("error", mistake["msg"]))
    if kind == "missing":
        return "is missing"
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"must be {words} {context[key]}{_instead(mistake)}"
    said = str(mistake["msg"])
    rule = said.removeprefix("Input should be ")
    if rule == said:
        return said[:1].lower() + said[1:]
    return f"must be {rule}{_instead(mistake)}"


def _instead(mistake: Any) -> str:
    value = mistake.get("input")
    if not isinstance(value, str | int | float | bool):
        return ""
    shown = repr(value)
    return f", not {shown}" if len(shown) <= _LONGEST_VALUE else ""
