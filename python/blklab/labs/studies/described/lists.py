"""Parts of ``study.toml`` that repeat: once for each item of a list.

::

    [lists]
    size = ["128", "1280"]
    machine = [{ name = "first", device = "nvme-tlc" }, { name = "second", device = "ssd-sata" }]

    [[experiments]]
    each = ["machine", "size"]
    name = "{machine.name}, {size} KiB"
    device = "{machine.device}"
    queue = { max_sectors_kb = "{size}" }

A part with ``parts`` stands for them in turn, each with the other keys of the group. A text that is only
``{name}`` becomes the item as it is: its key is left out for an item without it, and a list within a list is
joined to it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

EACH, PARTS, LISTS = "each", "parts", "lists"
MOST_PARTS = 5_000
"""Most parts that a description may make."""

LONGEST_TEXT = 10_000
"""Most characters of a text with an item in it."""

_WORD = re.compile(r"\{(\w+)(?:\.(\w+))?\}")

Items = Mapping[str, Any]
"""The item of each list, by the list's name."""


def written_out(content: Mapping[str, Any]) -> dict[str, Any]:
    """A description with every part that its lists make.

    Raises:
        ValueError: if a list, or a part that refers to one, has a mistake.
    """
    return _Writer(content.get(LISTS, {})).whole(content)


class _Left:
    """In place of a value that an item does not have."""


class _Writer:
    def __init__(self, lists: Any) -> None:
        if not isinstance(lists, dict) or not all(isinstance(one, list) and one for one in lists.values()):
            raise ValueError("lists: each must be a list with at least one item")
        self._lists = lists
        self._made = 0

    def whole(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """The content with its lists as they are."""
        rest = {key: value for key, value in content.items() if key != LISTS}
        return {**({LISTS: self._lists} if self._lists else {}), **self._table(rest, {})}

    def _value(self, value: Any, items: Items) -> Any:
        if isinstance(value, str):
            return self._text(value, items)
        if isinstance(value, list):
            return [part for one in value for part in self._repeated(one, items)]
        return self._table(value, items) if isinstance(value, dict) else value

    def _repeated(self, value: Any, items: Items) -> Iterator[Any]:
        if not isinstance(value, dict) or not (EACH in value or PARTS in value):
            found = self._value(value, items)
            if isinstance(value, str) and isinstance(found, list):
                yield from found
            elif found is not _Left:
                yield found
            return
        parts = value.get(PARTS, [{}])
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            raise ValueError(f"{PARTS}: must be an array of tables")
        common = {key: one for key, one in value.items() if key not in (EACH, PARTS)}
        for more in self._combinations(value, items):
            for part in parts:
                yield from self._repeated({**common, **part}, more)

    def _table(self, table: Mapping[str, Any], items: Items) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in table.items():
            if isinstance(value, dict) and isinstance(value.get(EACH), list):
                content = {name: one for name, one in value.items() if name != EACH}
                for more in self._combinations(value, items):
                    self._enter(made, self._text(key, more), self._table(content, more))
            else:
                found = self._value(value, items)
                if found is not _Left:
                    self._enter(made, self._text(key, items), found)
        return made

    @staticmethod
    def _enter(made: dict[str, Any], key: Any, part: Any) -> None:
        name = str(key)
        if name in made and made[name] != part:
            raise ValueError(f"two parts are called {name!r}")
        made[name] = part

    def _combinations(self, part: Mapping[str, Any], items: Items) -> Iterator[Items]:
        names = part.get(EACH, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"{EACH}: must be a list of names of lists")
        for name in names:
            if name not in self._lists:
                known = ", ".join(self._lists) or "none"
                raise ValueError(f"{EACH}: there is no list {name!r}; there are: {known}")
        for combination in itertools.product(*(self._lists[name] for name in names)):
            self._made += 1
            if self._made > MOST_PARTS:
                raise ValueError(f"{EACH}: makes more than {MOST_PARTS:,} parts")
            yield {**items, **dict(zip(names, combination, strict=True))}

    def _text(self, text: str, items: Items) -> Any:
        whole = _WORD.fullmatch(text)
        if whole is not None and whole[1] in items:
            return self._item(whole, items)
        filled = _WORD.sub(lambda match: self._inside(match, items), text)
        if len(filled) > max(len(text), LONGEST_TEXT):
            raise ValueError(f"{text[:40]!r}: an item makes it longer than {LONGEST_TEXT:,} characters")
        return filled

    def _inside(self, match: re.Match[str], items: Items) -> str:
        if match[1] not in items:
            if match[1] in self._lists:
                raise ValueError(f"{match[0]}: needs {EACH} with {match[1]!r}")
            return match[0]
        found = self._item(match, items)
        if found is _Left or isinstance(found, dict | list):
            raise ValueError(f"{match[0]}: is no text in every item of lists.{match[1]}")
        return str(found)

    def _item(self, match: re.Match[str], items: Items) -> Any:
        item, key = items[match[1]], match[2]
        if key is None:
            return item
        known = {name for one in self._lists[match[1]] if isinstance(one, dict) for name in one}
        if key not in known:
            raise ValueError(f"{match[0]}: no item of lists.{match[1]} has {key!r}")
        return item.get(key, _Left) if isinstance(item, dict) else _Left
