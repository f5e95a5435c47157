"""Published experiments: `published` analyses their printed values again, `replication` runs them again.

Each study that can be run again has a module or a folder here and a line in `_MODULES`. A study is pure:
`Study.experiments` lists the experiments and `Study.read` interprets their records. `replication` runs the
experiments and renders the findings.
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
"""Module of each study by the name of its folder in `studies/`."""


def replicable_study_names() -> list[str]:
    """The studies that can be run again, in alphabetical order."""
    return sorted(_MODULES)


def replicable_study(name: str) -> Study:
    """Returns the study with this folder name.

    Raises:
        UnknownNameError: if no study that can be run again has this name.
    """
    if name not in _MODULES:
        raise UnknownNameError(
            f"there is no study {name!r}", hint=f"there are {', '.join(replicable_study_names())}"
        )
    study = import_module(_MODULES[name]).STUDY
    if not isinstance(study, Study):
        raise TypeError(f"{_MODULES[name]}.STUDY is not a Study")
    return study
