"""Remarks on an experiment, of two kinds: those that can make its answer wrong, and notes."""

from __future__ import annotations

from collections.abc import Iterable

_MARK = "note: "
"""Before a note among stored remarks."""


class Note(str):
    """A remark on a property of the experiment, such as its virtual time, that makes no answer wrong."""

    __slots__ = ()


def as_notes(texts: Iterable[str]) -> list[str]:
    """The same texts as notes."""
    return [Note(text) for text in texts]


def stored(remarks: Iterable[str]) -> list[str]:
    """Remarks of both kinds as they are stored."""
    return [f"{_MARK}{remark}" if isinstance(remark, Note) else remark for remark in remarks]


def split(remarks: Iterable[str]) -> tuple[list[str], list[str]]:
    """Stored remarks as warnings and notes."""
    every = list(remarks)
    notes = [remark.removeprefix(_MARK) for remark in every if remark.startswith(_MARK)]
    return [remark for remark in every if not remark.startswith(_MARK)], notes
