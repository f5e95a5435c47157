"""Parsing of results in XML, element by element; damage becomes a problem of the reading."""

from __future__ import annotations

from abc import ABC, abstractmethod
from xml.parsers import expat

from blklab.labs.reanalysis.readers.protocol import Reading, Source


class ElementHandler(ABC):
    """Receives the elements of a file, with their place and their text."""

    def __init__(self, parser: expat.XMLParserType, source: Source, reading: Reading) -> None:
        """Has seen nothing yet.

        Args:
            parser: Tells the line.
            source: The file.
            reading: Gets the values.
        """
        self.parser = parser
        self.source = source
        self.reading = reading
        self.path: list[str] = []
        """The elements that have begun and not ended, the outermost first."""
        self._text: list[str] = []

    def start(self, name: str, _: dict[str, str]) -> None:
        """An element begins."""
        self.path.append(name)
        self._text = []
        self.began(name)

    def data(self, text: str) -> None:
        """Text within an element."""
        self._text.append(text)

    def end(self, name: str) -> None:
        """An element ends."""
        self.path.pop()
        text, self._text = "".join(self._text).strip(), []
        self.ended(name, text)

    @abstractmethod
    def began(self, name: str) -> None:
        """An element has begun; it is the last of the path."""

    @abstractmethod
    def ended(self, name: str, text: str) -> None:
        """An element has ended; it is no longer in the path."""


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
        parser: A new one, the handler's.
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
