"""Published experiments: `published` analyses their printed values again, `replication` runs them again.

Each study that can be run again has a module or a folder here and a line in `_MODULES`, or is another
package's (`blklab.registry`). A study is pure:
`Study.experiments` lists the experiments and `Study.read` interprets their records. `replication` runs the
experiments and renders the findings.
"""

from __future__ import annotations

from typing import Any

from blklab.errors import UnknownNameError
from blklab.labs.studies.published.study import add_study_folder
from blklab.labs.studies.replication.protocol import Study
from blklab.registry import Registry

_MODULES = {
    "hdparm-fifteen": "blklab.labs.studies.hdparm.fifteen",
    "hdparm-four-schedulers": "blklab.labs.studies.hdparm.four_schedulers",
    "ioband": "blklab.labs.studies.ioband",
    "ionice": "blklab.labs.studies.ionice",
    "iozone-raid10": "blklab.labs.studies.iozone_raid10",
}
"""Module of each study by the name of its folder in `studies/`."""


def _checked(name: str, study: Any) -> Study:
    if not isinstance(study, Study):
        raise TypeError(f"the study {name} is a {type(study).__name__}, not a Study")
    if study.name != name:
        raise TypeError(f"the study {name} calls itself {study.name!r}")
    if study.folder is not None:
        add_study_folder(name, study.folder)
    return study


STUDIES = Registry("blklab.studies", {name: f"{module}:STUDY" for name, module in _MODULES.items()}, _checked)


def replicable_study_names() -> list[str]:
    """The studies that can be run again, in alphabetical order."""
    return sorted(STUDIES)


def replicable_study(name: str) -> Study:
    """Returns the study with this folder name.

    Raises:
        UnknownNameError: if no study that can be run again has this name.
    """
    if name not in STUDIES:
        raise UnknownNameError(
            f"there is no study {name!r}", hint=f"there are {', '.join(replicable_study_names())}"
        )
    return STUDIES[name]
