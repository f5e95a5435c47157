"""A calibration as a file that can be sent in: the drive, what was measured, and what was fitted to it.

It names a model of drive, not a drive or a machine: neither serial numbers nor the names of hosts, disks and
directories.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError

import blklab
from blklab.errors import FormatError, ProfileError, reason_of
from blklab.labs.calibration.disk.document import DiskCalibration, mixed_errors_of
from blklab.labs.calibration.disk.ground import DiskFacts, DiskMeasurement
from blklab.labs.calibration.disk.profile_file import profile_text
from blklab.named_files import MOST_TEXT_BYTES, read_bytes
from blklab.spec.machines import THIS, shipped_machines
from blklab.spec.mistakes import first_mistake
from blklab.spec.profiles import load_profile

SCHEMA = "blklab.drive/1"
OWN_TABLE = "own"
"""A cost table in a file of the sender's."""
_REMOVED = "[removed]"
_LEAST_WORD = 3
"""Letters of a name that is looked for in texts: shorter ones are parts of words."""
_TOLERANCE = 1e-6

Way = Literal["block device", "directory", "loop device", "model"]
"""How the drive was reached. Of a model nobody need be told."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SentDrive(_Part):
    """A drive as the kernel describes it."""

    model: str
    firmware: str
    """Empty if the drive reports none."""
    capacity_bytes: int = Field(gt=0)
    rotational: bool
    """The drive's own claim."""
    hw_queues: int = Field(ge=1)
    queue_depth: int = Field(ge=1)
    max_sectors_kb: int = Field(ge=1)
    volatile_cache: bool
    """Whether the kernel sends flushes."""
    space_bytes: int = Field(gt=0)
    """The part that loads used."""


class Submission(_Part):
    """A file of `blklab calibrate disk TARGET --send-in FILE`."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    blklab_version: str
    way: Way
    drive: SentDrive
    calibration: DiskCalibration
    """As ``--json`` prints it, but that its target is the way and its disk has no name."""
    measurements: list[DiskMeasurement]
    """All runs, in the order in which they were made."""


def submission_of(
    calibration: DiskCalibration,
    facts: DiskFacts,
    measurements: Sequence[DiskMeasurement],
    *,
    way: Way,
    firmware: str,
    private: Sequence[str],
) -> Submission:
    """A calibration without what is nobody's business.

    Args:
        calibration: What was found.
        facts: Of the disk.
        measurements: What was measured.
        way: How the disk was reached.
        firmware: As the disk reports it; empty if it does not.
        private: Names that must not occur: the host, serial numbers.
    """

    def public(text: str) -> str:
        for name in private:
            if len(name) >= _LEAST_WORD:
                text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", _REMOVED, text, flags=re.IGNORECASE)
        return text

    named_tables = {THIS, *shipped_machines()}
    steps = {
        "target": way,
        "disk": "",
        "model": public(calibration.model),
        "measured_on": calibration.measured_on[:10],
        "kernel": public(calibration.kernel),
        "machine": calibration.machine if calibration.machine in named_tables else OWN_TABLE,
        "remarks": [public(remark) for remark in calibration.remarks],
    }
    return Submission(
        schema=SCHEMA,
        blklab_version=blklab.__version__,
        way=way,
        drive=SentDrive(
            model=public(facts.model),
            firmware=public(firmware),
            capacity_bytes=facts.capacity_bytes,
            rotational=facts.rotational,
            hw_queues=facts.queues.number,
            queue_depth=facts.queues.depth,
            max_sectors_kb=facts.queues.max_sectors_kb,
            volatile_cache=facts.queues.volatile_cache,
            space_bytes=facts.space_bytes,
        ),
        calibration=calibration.model_copy(update=steps),
        measurements=list(measurements),
    )


def submission_text(submission: Submission) -> str:
    """The file's content."""
    return submission.model_dump_json(by_alias=True, indent=1) + "\n"


def read_submission(path: Path) -> Submission:
    """A file that was sent in, checked: its fields, and whether they agree with each other.

    Raises:
        FormatError: if it cannot be read or is not one, or its parts contradict each other.
    """
    try:
        text = read_bytes(path, MOST_TEXT_BYTES)
        found = Submission.model_validate_json(text)
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {reason_of(error)}") from error
    except ValidationError as error:
        raise FormatError(
            f"{path}: {first_mistake(error)}", hint="calibrate disk TARGET --send-in writes such a file"
        ) from error
    if found.schema_ != SCHEMA:
        raise FormatError(
            f"{path}: schema is {found.schema_}, not {SCHEMA}", hint="use the blklab that wrote it"
        )
    _require_agreement(found, path)
    return found


def submitted_profile(submission: Submission, *, name: str) -> str:
    """The profile as a file's content."""
    return profile_text(submission.calibration, name=name)


def _require_agreement(found: Submission, path: Path) -> None:
    calibration = found.calibration

    def refuse(what: str) -> NoReturn:
        raise FormatError(f"{path}: {what}", hint="send the file as it was written")

    if found.way != "model" and not found.drive.model:
        refuse("drive.model is empty, so nobody knows which drive it is")
    if (calibration.target, calibration.disk) != (found.way, ""):
        refuse("calibration.target and calibration.disk name the sender's disk")
    counts = Counter(one.load for one in found.measurements)
    runs = [(load.load, load.runs) for load in calibration.loads]
    for name, number in [*runs, *((load.load, load.runs) for load in calibration.mixed_loads)]:
        if counts[name] < number:
            refuse(f"{name} has {counts[name]} measurements of {number}")
    for rated in calibration.loads:
        rates = [one.iops for one in found.measurements if one.load == rated.load]
        if not min(rates) * (1 - _TOLERANCE) <= rated.iops <= max(rates) * (1 + _TOLERANCE):
            refuse(f"the rate of {rated.load} is not that of its measurements")
    if calibration.mixed_errors != mixed_errors_of(calibration.mixed_loads):
        refuse("calibration.mixed_errors are not those of calibration.mixed_loads")
    for figure in [*calibration.figures, *calibration.derived]:
        if figure.low is not None and figure.high is not None and figure.low > figure.high:
            refuse(f"the interval of {figure.key} ends before it begins")
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "drive.toml"
        profile.write_text(submitted_profile(found, name="drive"), encoding="utf-8")
        try:
            load_profile(str(profile))
        except ProfileError as error:
            refuse(f"its figures are no profile: {str(error).removeprefix(f'{profile}: ')}")
