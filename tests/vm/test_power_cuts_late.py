"""Power cuts in the second half of a comparison."""

from __future__ import annotations

import pytest

from vm.accelerator import Accelerator
from vm.commands import document
from vm.machine import Machine
from vm.power_cuts import (
    MOMENTS,
    Undisturbed,
    compare_undisturbed,
    cut_power_at,
    cut_power_under_load,
    runs_of,
    skip_unless_chosen,
)

pytestmark = pytest.mark.vm


@pytest.fixture(scope="module")
def undisturbed(machine: Machine) -> Undisturbed:
    return compare_undisturbed(machine)


@pytest.mark.parametrize("moment", range(MOMENTS // 2, MOMENTS))
def test_a_power_cut_leaves_nothing_behind(
    machine: Machine, accelerator: Accelerator, undisturbed: Undisturbed, moment: int
) -> None:
    skip_unless_chosen(moment, accelerator)
    cut_power_at(machine, moment, undisturbed)


def test_an_interrupted_run_is_continued(machine: Machine, undisturbed: Undisturbed) -> None:
    """The last of those whose power was cut, or another, if those had ended before."""
    if not any(run["state"] == "interrupted" for run in runs_of(machine)):
        cut_power_under_load(machine)
    cut = next(run for run in runs_of(machine) if run["state"] == "interrupted")
    result = document(machine, f"compare --resume {cut['run_id']}")
    assert result["state"] == "complete"
    assert not result["failed_runs"]
