"""Published experiments: `published` analyses their printed values again, `replication` runs them again.

A study that can be run again is described by ``study.toml`` in its folder (`described`), has a module here
and a line in `_MODULES`, or is another package's (`blklab.registry`). A study is pure: `Study.experiments`
lists the experiments and `Study.read` interprets their records. `replication` runs the experiments and
renders the findings.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blklab.errors import SpecError, UnknownNameError, did_you_mean
from blklab.named_files import is_folder
from blklab.registry import Registry
from blklab.shipped import shipped_folder

if TYPE_CHECKING:
    from blklab.labs.studies.replication.protocol import Study

DESCRIPTION_FILE = "study.toml"
_FOLDER_NAME = re.compile(r"\w[\w.-]{0,59}")

_MODULES = {
    "ioband": "blklab.labs.studies.ioband",
    "ionice": "blklab.labs.studies.ionice",
    "iozone-raid10": "blklab.labs.studies.iozone_raid10",
}
"""Module of each study that is not only data, by the name of its folder in `studies/`."""


def _own_studies() -> dict[str, str | Callable[[], Study]]:
    described = sorted(path.parent.name for path in shipped_folder("studies").glob(f"*/{DESCRIPTION_FILE}"))
    return {
        **{name: partial(_described, name) for name in described},
        **{name: f"{module}:STUDY" for name, module in _MODULES.items()},
    }


def _described(name: str, folder: Path | None = None) -> Study:
    from blklab.labs.studies.described import described_study  # noqa: PLC0415 - a Tab need not wait for it

    return described_study(name, folder)


def _checked(name: str, study: Any) -> Study:
    from blklab.labs.studies.replication.protocol import Study  # noqa: PLC0415 - likewise

    if not isinstance(study, Study):
        raise TypeError(f"the study {name} is a {type(study).__name__}, not a Study")
    if study.name != name:
        raise TypeError(f"the study {name} calls itself {study.name!r}")
    return study


STUDIES = Registry("blklab.studies", _own_studies(), _checked)


def replicable_study_names() -> list[str]:
    """The studies that can be run again, in alphabetical order."""
    return sorted(STUDIES)


def replicable_study(name: str) -> Study:
    """Returns the study with this name, or the one that a folder describes.

    Args:
        name: A name, or a path with a slash or of a folder with ``study.toml``.

    Raises:
        UnknownNameError: if no study that can be run again has this name.
        SpecError: if the folder's files have a mistake.
    """
    if name in STUDIES:
        return STUDIES[name]
    folder = Path(name)
    if "/" in name or is_folder(folder):
        return study_in(folder)
    names = replicable_study_names()
    hint = did_you_mean(name, names) or f"there are {', '.join(names)}"
    raise UnknownNameError(f"there is no study {name!r}", hint=f"{hint}; a folder's name ends in a slash")


def study_in(folder: Path) -> Study:
    """The study that a folder describes, under the folder's name.

    Raises:
        UnknownNameError: if there is no such folder.
        SpecError: if its files have a mistake.
    """
    if not is_folder(folder):
        raise UnknownNameError(
            f"{folder}: there is no such folder", hint="`blklab study list` lists the studies that ship"
        )
    name = folder.resolve().name
    if _FOLDER_NAME.fullmatch(name) is None:
        raise SpecError(
            f"{folder}: {name!r} cannot be the name of a study",
            hint="the folder's name has up to 60 letters, digits, '-', '_' and '.'",
        )
    return _described(name, folder)
