"""Published experiments, run again: one file a study. A new one is a file beside this one and its line below.

A study is pure. `experiments` says what to run, `read` says what came of it; carrying the experiments out is
the business of `blklab.studies.replication`, drawing and writing that of `blklab.studies.replication.report`.
"""

from __future__ import annotations

from importlib import import_module

from blklab.errors import UnknownNameError
from blklab.studies.replication.protocol import Study

_MODULES = {
    "hdparm-fifteen": "blklab.studies.hdparm.fifteen",
    "hdparm-four-schedulers": "blklab.studies.hdparm.four_schedulers",
    "ioband": "blklab.studies.ioband",
    "ionice": "blklab.studies.ionice",
    "iozone-raid10": "blklab.studies.iozone_raid10",
}
"""By the name of the study's folder."""


def study_names() -> list[str]:
    """The studies that can be run again, in alphabetical order."""
    return sorted(_MODULES)


def study_named(name: str) -> Study:
    """A study by the name of its folder.

    Raises:
        UnknownNameError: if there is none.
    """
    if name not in _MODULES:
        raise UnknownNameError(f"there is no study {name!r}", hint=f"there are {', '.join(study_names())}")
    study = import_module(_MODULES[name]).STUDY
    if not isinstance(study, Study):
        raise TypeError(f"{_MODULES[name]}.STUDY is no study")
    return study
