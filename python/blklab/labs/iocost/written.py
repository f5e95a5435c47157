"""Parameters as text: lines for the kernel's files, and a file for udev's hardware database."""

from __future__ import annotations

import re
from collections.abc import Sequence

from blklab.errors import RequirementError
from blklab.labs.iocost.solutions import Parameters, Solution
from blklab.labs.iocost.sweep import model_words
from blklab.quantities.visible import visible

UNKNOWN_DEVICE = "MAJ:MIN"
_SPECIAL = re.compile(r"[*?\[\]\\#]|[^\x20-\x7e]")
"""Characters that mean something in a match, or begin a comment, or are not plain ASCII."""


def model_line(parameters: Parameters, device_number: str | None) -> str:
    """A line for ``io.cost.model``."""
    return f"{device_number or UNKNOWN_DEVICE} ctrl=user model=linear {model_words(parameters.model)}"


def qos_line(parameters: Parameters, device_number: str | None) -> str:
    """A line for ``io.cost.qos``, which also switches io.cost on."""
    return f"{device_number or UNKNOWN_DEVICE} enable=1 ctrl=user {precise_qos_words(parameters)}"


def precise_qos_words(parameters: Parameters) -> str:
    """Quality of service with percentages as the kernel prints them."""
    return (
        f"rpct={parameters.rpct:.2f} rlat={parameters.rlat} wpct={parameters.wpct:.2f} wlat={parameters.wlat}"
        f" min={parameters.min:.2f} max={parameters.max:.2f}"
    )


def hwdb_text(solutions: Sequence[Solution], *, models: Sequence[str], head: Sequence[str]) -> str:
    """A file for ``/etc/udev/hwdb.d``.

    systemd's 90-iocost.rules look up ``block::name:ID_MODEL:fwrev:ID_REVISION:`` and apply the solution that
    iocost.conf names, else the first one.

    Args:
        solutions: In order of preference.
        models: The drive's model, in the forms in which udev may have it.
        head: Lines of comments.

    Raises:
        RequirementError: if the drive has no model.
    """
    if not models:
        raise RequirementError(
            "the hardware database finds a drive by its model, and this one has none",
            hint="give the model as udev has it (udevadm info /dev/sda shows ID_MODEL): --drive MODEL",
        )
    lines = [f"# {visible(line)}".rstrip() for line in head]
    written = [
        (one.name, model_words(one.parameters.model), precise_qos_words(one.parameters)) for one in solutions
    ]
    return "\n".join([*lines, "", *hwdb_entry(models, written), ""])


def hwdb_entry(models: Sequence[str], solutions: Sequence[tuple[str, str, str]]) -> list[str]:
    """The lines of one drive in such a file.

    Args:
        models: The drive's model, in the forms in which udev may have it.
        solutions: Names, models and qualities of service, in order of preference.
    """
    lines = [f"block:*:name:{_SPECIAL.sub('?', model)}:fwrev:*:" for model in models]
    lines.append(f"  IOCOST_SOLUTIONS={' '.join(name for name, _, _ in solutions)}")
    for name, model, qos in solutions:
        key = name.upper().replace("-", "_")
        lines += [f"  IOCOST_MODEL_{key}={model}", f"  IOCOST_QOS_{key}={qos}"]
    return lines
