"""The measurements of an unfinished calibration: one line each, on the disk before the next one begins."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from blklab.errors import FormatError, SpaceError, UsageError, reason_of
from blklab.labs.calibration.disk.ground import DiskMeasurement
from blklab.linux.processes.signals import shielded
from blklab.named_files import MOST_RESULT_BYTES, appended, read_bytes, written_whole

_SUFFIX = ".measurements"


class SavedDesign(BaseModel):
    """Everything on which the choice of loads depends."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = 1
    target: str
    disk: str
    capacity_bytes: int
    space_bytes: int
    budget_ns: int
    seed: int
    machine: str
    until_steady: bool = False


class SavedMeasurements:
    """The file beside the profile that an interrupted calibration leaves."""

    def __init__(self, path: Path, design: SavedDesign, measurements: list[DiskMeasurement]) -> None:
        self._path = path
        self._design = design
        self.measurements = measurements

    @property
    def is_new(self) -> bool:
        """Whether there was no measurement to go on from."""
        return not self.measurements

    def add(self, measurement: DiskMeasurement) -> None:
        """Keeps a measurement.

        Raises:
            SpaceError: if it cannot be written.
        """
        lines = [] if self._path.exists() else [self._design.model_dump_json()]
        lines.append(measurement.model_dump_json())
        # A signal in between would leave one more in the file than is told.
        with shielded():
            try:
                with appended(self._path) as file:
                    file.write("".join(f"{line}\n" for line in lines).encode())
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise SpaceError(f"{self._path}: cannot be written: {reason_of(error)}") from error
            self.measurements.append(measurement)

    def remove(self) -> None:
        """Removes the file: the calibration is complete."""
        self._path.unlink(missing_ok=True)


def measurements_path(profile: Path) -> Path:
    """The file of a profile's measurements while these are incomplete."""
    return profile.with_name(profile.name + _SUFFIX)


def saved_measurements(profile: Path, design: SavedDesign, *, fresh: bool) -> SavedMeasurements:
    """Goes on from what was measured, or begins.

    Args:
        profile: The profile to be written.
        design: Of this calibration.
        fresh: Drop what was measured.

    Raises:
        UsageError: if it was measured on another disk or in another way.
        FormatError: if the file is damaged.
    """
    path = measurements_path(profile)
    if fresh:
        path.unlink(missing_ok=True)
    if not path.exists():
        return SavedMeasurements(path, design, [])
    try:
        # A kill may cut the last line short; nothing follows it.
        lines = read_bytes(path, MOST_RESULT_BYTES).split(b"\n")[:-1]
        found = [DiskMeasurement.model_validate_json(line) for line in lines[1:]]
        before = SavedDesign.model_validate_json(lines[0]) if lines else None
    except (OSError, ValidationError) as error:
        raise FormatError(f"{path}: is damaged", hint="--fresh measures anew") from error
    if before is not None and before != design:
        named = [name for name, value in before if value != getattr(design, name)]
        raise UsageError(
            f"{path} was measured with another {', '.join(named)}",
            hint="repeat the command as it was, or measure anew with --fresh",
        )
    try:
        with written_whole(path) as file:
            file.writelines(line + b"\n" for line in lines)
    except OSError as error:
        raise SpaceError(f"{path}: cannot be written: {reason_of(error)}") from error
    return SavedMeasurements(path, design, found)
