"""Parsing of results in XML, element by element; damage becomes a problem of the reading."""

from __future__ import annotations

from typing import Protocol
from xml.parsers import expat

from blklab.labs.reanalysis.readers.protocol import Reading, Source


class ElementHandler(Protocol):
    """Receives the elements of a file."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""

    def end(self, name: str) -> None:
        """An element ends."""

    def data(self, text: str) -> None:
        """Text within an element."""


class _DoctypeError(Exception):
    pass


def _refuse_doctype(*_: object) -> None:
    # It could define entities that grow without bound.
    raise _DoctypeError


def parse_elements(
    parser: expat.XMLParserType, handler: ElementHandler, source: Source, reading: Reading, writer: str
) -> None:
    """Hands the elements of a file to a handler, up to the first damage.

    Args:
        parser: A new one, which the handler may ask for the line.
        handler: Receives the elements.
        source: The file.
        reading: Gets the damage as a problem.
        writer: The program that writes such files, for messages.
    """
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.CharacterDataHandler = handler.data
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.buffer_text = True
    try:
        parser.Parse(source.text.encode("utf-8", "replace"), True)  # noqa: FBT003 - expat's own flag
    except expat.ExpatError as error:
        reading.problem(
            source.at(error.lineno), f"the XML ends or breaks here ({expat.ErrorString(error.code)})"
        )
    except _DoctypeError:
        reading.problem(
            source.at(parser.CurrentLineNumber), f"the file declares a document type; {writer} writes none"
        )
