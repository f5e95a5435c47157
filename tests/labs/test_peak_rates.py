"""The atlas's profiles do what was measured of their drives: the six coefficients of io.cost's model."""

from __future__ import annotations

import pytest

from blklab.labs.iocost.peak_rates import factors, peak_rates
from blklab.spec.atlas import AtlasDrive, drives, file_stem
from blklab.spec.atlas.derivation import is_sata

CONTRADICTORY = {
    "MTFDHBA256TCK-1AS15ABYY": 1.1,
    "MTFDHBA512TCK": 1.1,
    "Samsung SSD 990 EVO 1TB": 1.7,
    "KINGSTON SA2000M8250G": 1.06,
}
"""Times by which drives are off that move more with 4 KiB than with large I/Os, as no linear model does."""


@pytest.mark.parametrize("drive", drives(), ids=lambda drive: file_stem(drive.model))
def test_a_drive_reaches_the_rates_that_were_measured(drive: AtlasDrive) -> None:
    rates = peak_rates(drive.model, queue_depth=32 if is_sata(drive.model) else 1023)
    found = factors(rates, drive.coefficients)
    most = CONTRADICTORY.get(drive.model, 1.03)
    assert all(1 / most < factor < most for factor in found.values()), found
    if drive.model in CONTRADICTORY:
        assert max(found.values()) > 1.03
