r"""Text from elsewhere, made fit to show: what steers a terminal becomes a visible escape such as ``\x1b``.

Names of tasks, control groups, disks, files and stored runs are other people's. On a terminal their control
characters would set titles, move the cursor or forge lines, and bidirectional overrides would reorder what is
read.
"""

from __future__ import annotations

import re

_STEERING = (
    "\x7f-\x9f"  # DEL, and the C1 controls, which some terminals take for ESC sequences
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # Unicode's bidirectional formatting characters
    "\u2028\u2029"  # line and paragraph separator
    "\ud800-\udfff"  # lone surrogates: bytes that are not UTF-8, as Python reads them in names
)
_IN_A_LINE = re.compile(f"[\x00-\x1f{_STEERING}]")
_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_STEERING}]")
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str) -> str:
    r"""The text in one line, its control characters, line breaks and tabs as Python writes them."""
    return _IN_A_LINE.sub(_escape, text)


def visible_lines(text: str) -> str:
    """The same for a text of several lines: line feeds and tabs stay."""
    return _IN_LINES.sub(_escape, text)


def visible_document(text: str) -> str:
    r"""A document, escaped as in JSON (``\u001b``), which means the same then; line feeds and tabs stay."""
    return _IN_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def writable(text: str) -> str:
    r"""The text with lone surrogates, which UTF-8 cannot write, escaped as JSON does it (``\udcff``)."""
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(found: re.Match[str]) -> str:
    letter = found[0]
    code = ord(letter)
    if letter in _SHORT:
        return _SHORT[letter]
    if 0xDC80 <= code <= 0xDCFF:  # PEP 383: the byte itself
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
