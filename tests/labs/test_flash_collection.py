"""Spare space of flash drives, which random overwriting shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from blklab.labs.calibration.disk.flash.collection import SPARE, Collection, collected
from blklab.labs.calibration.disk.flash.figures import FlashLayout, kib_ns_of, with_facts
from blklab.labs.calibration.disk.flash.fit import FlashFit
from blklab.labs.calibration.disk.flash.loads import LoadNumber, filling
from blklab.labs.calibration.disk.flash.search import observed
from blklab.labs.calibration.disk.flash.spare import (
    OVERWRITE_RATE,
    USABLE_SPARE,
    steady_overwrite_rate,
    usable_spare_permille,
)
from blklab.labs.calibration.disk.ground import SessionGround, opened_ground
from blklab.labs.calibration.disk.model import Model
from blklab.labs.calibration.disk.runs import Runs
from blklab.labs.calibration.disk.saved import SavedMeasurements
from blklab.spec.targets import parse_target
from disk_calibrations import MACHINE, SilentObserver, design_for

KIB, MIB = 1 << 10, 1 << 20
UNIT, DIES = 16 * KIB, 4
CAPACITY = 512 * MIB
SPARE_PERMILLE = 120
TRUTH = {
    "dies": DIES,
    "planes": 1,
    "page": UNIT,
    "channels": 2,
    "program": 1_200_000,
    "buffer": 4 * MIB,
    "link_write_rate": 500_000_000,
    "command": 2000,
    "interface": 10_000,
}
SMALL_BLOCKS = {
    "capacity": CAPACITY,
    "erase_block": 16 * UNIT,
    "erase": 60_000,
    "spare_permille": SPARE_PERMILLE,
}
MINUTES_NS = 600_000_000_000
_FILLS_US = (200_000, 1_000_000)


def device(**others: int) -> str:
    """A flash drive of these figures."""
    return "flash," + ",".join(f"{key}={value}" for key, value in {**TRUTH, **others}.items())


class Drive:
    """A drive of which all is known but spare space and erasure."""

    def __init__(self, ground: SessionGround, folder: Path, budget_ns: int) -> None:
        saved = SavedMeasurements(folder / "saved", design_for(ground.target.target), [])
        self.ground = ground
        self.runs = Runs(ground, saved, planned=100, budget_ns=budget_ns, observer=SilentObserver())
        self.model = Model(ground.facts.space_bytes, MACHINE)
        self.known = replace(
            with_facts(ground.facts),
            dies=DIES,
            unit_bytes=UNIT,
            channels=2,
            program=float(TRUTH["program"]),
            buffer_bytes=float(TRUTH["buffer"]),
            link_write=kib_ns_of(TRUTH["link_write_rate"]),
            command=float(TRUTH["command"]),
            interface=float(TRUTH["interface"]),
        )

    def collected(self, *, slows_down: bool = True) -> Collection:
        """Overwrites it. Two loads were measured before."""
        layout = FlashLayout(("program",))
        vector = layout.vector(self.known)
        fit = FlashFit(self.known, layout, vector, 0 * vector, {}, model_error=0.0, residuals={})
        found = []
        for runtime_us in _FILLS_US:
            row = LoadNumber(filling(16, 16, runtime_us, self.ground.facts.space_bytes), "iops", runtime_us)
            found.append(observed(row, [self.runs.one(row.load, runtime_us)]))
        return collected(self.runs, fit, found, self.model, slows_down=slows_down)


@contextmanager
def opened(device: str, folder: Path, budget_ns: int = MINUTES_NS) -> Iterator[Drive]:
    """A drive to overwrite."""
    with opened_ground(parse_target(f"sim:{device}"), seed=1, machine=MACHINE) as ground:
        yield Drive(ground, folder, budget_ns)


@pytest.mark.parametrize("pages", [16, 48])
def test_random_overwriting_shows_spare_space_and_the_rate_that_it_leaves(pages: int, tmp_path: Path) -> None:
    truth = SMALL_BLOCKS | {"erase_block": pages * UNIT, "erase": pages * 10_000}
    with opened(device(**truth), tmp_path) as drive:
        found = drive.collected()
    true_rate = steady_overwrite_rate(TRUTH | truth, MACHINE)
    assert found.seen
    assert (found.figures[0].key, found.figures[0].value) == (SPARE, found.drive.spare_permille)
    figures = {figure.key: figure for figure in found.derived}
    true_spare = usable_spare_permille(TRUTH | truth)
    for key, true in ((USABLE_SPARE, true_spare), (OVERWRITE_RATE, true_rate)):
        figure = figures[key]
        assert figure.low is not None
        assert figure.high is not None
        assert figure.low <= round(true) <= figure.high, key
        assert figure.high - figure.low < 0.25 * true, key
    # A pass in order shows the part that erasure has in the time of a block.
    erased, programmed = truth["erase"], pages * TRUTH["program"]
    fitted = found.drive.erase_of_block * found.drive.erase
    assert fitted / (found.drive.pages_of_block * found.drive.program) == pytest.approx(
        erased / programmed, rel=0.15
    )
    # Collection programs at least as much as the host writes.
    assert true_rate < 0.5 * 1e9 * DIES * UNIT / TRUTH["program"]


def test_a_drive_with_spare_space_enough_shows_no_collection(tmp_path: Path) -> None:
    with opened(device(**SMALL_BLOCKS | {"spare_permille": 2000}), tmp_path) as drive:
        found = drive.collected()
        assert found.drive == drive.known
    assert not found.rows
    assert not found.derived
    assert "no collection within" in found.figures[0].how


def test_a_large_drive_is_not_worn_for_it(tmp_path: Path) -> None:
    with opened(device(capacity=1 << 40), tmp_path) as drive:
        found = drive.collected()
        assert len(drive.runs.made) == len(_FILLS_US)
    assert "not looked for: it would take" in found.figures[0].how


def test_a_budget_without_time_left_is_kept(tmp_path: Path) -> None:
    with opened(device(**SMALL_BLOCKS), tmp_path, budget_ns=1) as drive:
        drive.collected()
        assert len(drive.runs.made) == len(_FILLS_US)


def test_a_small_part_of_a_drive_is_not_overwritten(tmp_path: Path) -> None:
    with opened(device(**SMALL_BLOCKS), tmp_path) as drive:
        drive.ground.facts = replace(drive.ground.facts, space_bytes=CAPACITY // 8)
        found = drive.collected()
        assert len(drive.runs.made) == len(_FILLS_US)
    assert "a small part of the drive" in found.figures[0].how


def test_nothing_is_known_of_slow_cells_before_writes_slow_down(tmp_path: Path) -> None:
    with opened(device(**SMALL_BLOCKS), tmp_path) as drive:
        found = drive.collected(slows_down=False)
    assert "never slowed down" in found.figures[0].how


def test_a_disk_that_has_not_rested_is_put_in_order_before_each_length(tmp_path: Path) -> None:
    with opened(device(**SMALL_BLOCKS | {"spare_permille": 2000}), tmp_path) as drive:
        drive.ground.facts = replace(drive.ground.facts, rested=False)
        drive.runs.rested = drive.runs.one  # type: ignore[method-assign]
        drive.collected()
        made = [one.load.split("-")[0] for one in drive.runs.made[len(_FILLS_US) :]]
    assert made == ["fill", *3 * ["fill", "overwrite"]]
