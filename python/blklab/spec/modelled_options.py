"""Support for every option of a job file, on hosts and in models."""

from __future__ import annotations

import json
from functools import cache
from typing import Literal

from pydantic import BaseModel, ConfigDict

from blklab import _core
from blklab.spec.workloads import Workload

Ground = Literal["modelled", "neutral", "noted", "host_only"]

GROUNDS: dict[str, str] = {
    "modelled": "hosts and models",
    "neutral": "hosts; no influence on models",
    "noted": "hosts; models leave it out",
    "host_only": "hosts only",
}
"""The grounds on which an option is honoured, for people."""


class OptionUse(BaseModel):
    """One option of one section."""

    model_config = ConfigDict(frozen=True)

    job: str
    option: str
    value: str
    line: int
    ground: Ground
    meaning: str
    """How it is modelled, or why it is not, or where a path is mapped to."""


@cache
def _table() -> dict[str, dict[str, str]]:
    return {option["name"]: option for option in json.loads(_core.job_options())}


def option_uses(workload: Workload) -> list[OptionUse]:
    """All options of a workload, in the order of its sections and lines."""
    refused = {(note.option, note.line): note.message for note in workload.host_only}
    mapped = {note.option: note.message for note in workload.notes}
    uses = []
    for job in workload.jobs:
        for option, line in sorted(job.option_lines.items(), key=lambda entry: entry[1]):
            known = _table()[option]
            reason = refused.get((option, line))
            uses.append(
                OptionUse(
                    job=job.name,
                    option=option,
                    value=job.options[option],
                    line=line,
                    ground="host_only" if reason is not None else known["support"],
                    meaning=reason or mapped.get(option) or known["help"],
                )
            )
    return uses
