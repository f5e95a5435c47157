"""io.cost's parameters of drives of the atlas, which somebody else measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blklab.errors import UsageError
from blklab.labs.iocost.drive import model_forms
from blklab.labs.iocost.sweep import model_words
from blklab.labs.iocost.written import UNKNOWN_DEVICE, hwdb_entry
from blklab.spec.atlas import AtlasDrive
from blklab.spec.atlas.solutions import QOS, DriveSolution


@dataclass(frozen=True)
class AtlasLines:
    """The lines of a solution for the kernel's two files."""

    solution: str
    model: str
    qos: str


def lines_of(drive: AtlasDrive, solution: str | None, device_number: str | None) -> AtlasLines:
    """The lines of a drive's solution.

    Args:
        drive: The drive.
        solution: A solution's name; None for the first that the drive has.
        device_number: Such as ``8:16``; None if unknown.

    Raises:
        UsageError: if the drive has no such solution.
    """
    known = {one.name: one for one in drive.solutions}
    name = next(iter(known)) if solution is None else solution
    if name not in known:
        raise UsageError(
            f"{drive.model} has no solution {name}",
            hint=f"it has {', '.join(known)}: nobody who measured it swept its vrates",
        )
    device = device_number or UNKNOWN_DEVICE
    one = known[name]
    return AtlasLines(
        name,
        f"{device} ctrl=user model=linear {_model(drive, one)}",
        f"{device} enable=1 ctrl=user {_qos(one)}",
    )


def hwdb_of(known: Sequence[AtlasDrive], names: Sequence[str]) -> str:
    """A file for udev's hardware database with an entry for each drive.

    Args:
        known: The drives.
        names: ID_MODEL of udev, for a single drive; empty for the drives' own names.
    """
    lines = [
        "# io.cost's parameters by drive, written by blklab iocost --from-atlas.",
        f"# Figures: {known[0].facts['source']}.",
        "# udev cuts no names, but the kernel cuts those of SATA drives: an entry may need yours (--drive).",
    ]
    for drive in known:
        results = "1 result" if drive.results == 1 else f"the medians of {drive.results} results"
        lines += ["", f"# {results}"]
        solutions = [(one.name, _model(drive, one), _qos(one)) for one in drive.solutions]
        lines += hwdb_entry(names or model_forms(drive.model), solutions)
    return "\n".join([*lines, ""])


def _model(drive: AtlasDrive, solution: DriveSolution) -> str:
    return model_words(solution.model(drive.coefficients))


def _qos(solution: DriveSolution) -> str:
    """Quality of service as the kernel prints it: latencies whole, the rest with two decimals."""
    words = ((name, solution.qos[name], 0 if name.endswith("lat") else 2) for name in QOS)
    return " ".join(f"{name}={value:.{digits}f}" for name, value, digits in words)
