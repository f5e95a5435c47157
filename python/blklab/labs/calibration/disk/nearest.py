"""The shipped profile that comes nearest, for comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from blklab.backends.modelled_device import device_facts
from blklab.labs.calibration.disk.document import Nearest
from blklab.labs.calibration.disk.hdd.figures import KIND
from blklab.labs.calibration.disk.loads import CalibrationLoad
from blklab.labs.calibration.disk.model import Model
from blklab.simulator.request import model_target
from blklab.spec.profiles import shipped_profiles

_SEED = 61
_MOST_US, _MOST_QUICK_US = 1_000_000, 50_000
"""Time that is simulated of a disk with an arm, and of others, which do far more I/Os in it."""


def nearest_profile(
    rates: Sequence[float],
    runtimes_us: Sequence[int],
    tests: Callable[[int], Sequence[CalibrationLoad]],
    model: Model,
    *,
    most_quick_us: int = _MOST_QUICK_US,
) -> Nearest:
    """The shipped profile with the smallest median error.

    Args:
        rates: I/Os a second of the loads to test with, as measured.
        runtimes_us: How long they ran.
        tests: These loads on a space of so many bytes; profiles may be smaller than the disk.
        model: Simulates them.
        most_quick_us: Time that is simulated at most of a disk without an arm.
    """
    candidates = []
    for name, profile in shipped_profiles().items():
        target = model_target(name)
        space = int(device_facts(target, profile)["device"]["capacity_bytes"])
        most_us = _MOST_US if profile.kind == KIND else most_quick_us
        loads = tests(min(space, model.space_bytes))
        one = replace(model, space_bytes=space, runtimes_us=dict(model.runtimes_us), _known={})
        for load, runtime_us in zip(loads, runtimes_us, strict=True):
            one.runtimes_us[load.name] = min(runtime_us, most_us)
        found = one.measured(name, loads, [_SEED])
        errors = [abs(math.log(runs[0].iops / rate)) for runs, rate in zip(found, rates, strict=True)]
        candidates.append(Nearest(profile=name, rate_error_median=median(errors)))
    return min(candidates, key=lambda one: one.rate_error_median)
