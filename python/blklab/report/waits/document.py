"""The JSON document that `blklab where --json` prints; the other forms are made from it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from blklab.recordings.waits import Waits
from blklab.report.documents.parts import Part
from blklab.report.waits.priorities import priority_findings
from blklab.report.waits.weights import PriorityFinding

WHERE_SCHEMA: Literal["blklab.where/1"] = "blklab.where/1"


class WhereDocument(Part):
    """`blklab.where/1`."""

    schema_: Literal["blklab.where/1"] = Field(default=WHERE_SCHEMA, alias="schema")
    file: str
    waits: Waits
    priorities: list[PriorityFinding]
    """Why priorities and weights had an effect or none."""


def where_document(file: str, waits: Waits) -> WhereDocument:
    """Makes the document of a recording."""
    return WhereDocument(file=file, waits=waits, priorities=priority_findings(waits))
