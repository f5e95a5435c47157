"""Calibrations of modelled disks, as tests make them."""

from __future__ import annotations

from pathlib import Path

from blklab.labs.calibration.disk.calibrate import calibrated
from blklab.labs.calibration.disk.document import DiskCalibration
from blklab.labs.calibration.disk.ground import opened_ground
from blklab.labs.calibration.disk.loads import CalibrationLoad
from blklab.labs.calibration.disk.saved import SavedDesign, saved_measurements
from blklab.spec.machines import load_machine
from blklab.spec.targets import parse_target

MACHINE = load_machine("ordinary")


class SilentObserver:
    """Prints nothing, and checks the progress."""

    def announce(self, line: str) -> None: ...

    def measuring(self, load: CalibrationLoad, *, done: int, planned: int, left_ns: int) -> None:
        assert 0 <= done <= planned
        assert left_ns >= 0


def design_for(target: str, budget_ns: int = 1) -> SavedDesign:
    """The design of a calibration."""
    return SavedDesign(
        target=target,
        disk="disk",
        capacity_bytes=1,
        space_bytes=1,
        budget_ns=budget_ns,
        seed=1,
        machine="ordinary",
    )


def calibration_of(target: str, profile: Path, budget_ns: int) -> DiskCalibration:
    """Calibrates a model; its measurements are saved beside the profile."""
    with opened_ground(parse_target(target), seed=1, machine=MACHINE) as ground:
        saved = saved_measurements(profile, design_for(target, budget_ns), fresh=False)
        return calibrated(
            ground, saved, budget_ns=budget_ns, seed=1, machine=MACHINE, observer=SilentObserver()
        )
