"""Power cuts in the first half of a comparison."""

from __future__ import annotations

import pytest

from vm.accelerator import Accelerator
from vm.machine import Machine
from vm.power_cuts import MOMENTS, Undisturbed, compare_undisturbed, cut_power_at, skip_unless_chosen

pytestmark = pytest.mark.vm


@pytest.fixture(scope="module")
def undisturbed(machine: Machine) -> Undisturbed:
    return compare_undisturbed(machine)


@pytest.mark.parametrize("moment", range(MOMENTS // 2))
def test_a_power_cut_leaves_nothing_behind(
    machine: Machine, accelerator: Accelerator, undisturbed: Undisturbed, moment: int
) -> None:
    skip_unless_chosen(moment, accelerator)
    cut_power_at(machine, moment, undisturbed)
