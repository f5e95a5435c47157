"""The modules that must pass the gate: those that experiments on disks of this machine would load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from blklab.backends import backend_for
from blklab.labs.gate import SEEDS
from blklab.labs.gate.gate import GateObserver, pass_gate
from blklab.modules.gate_results import GateResult
from blklab.modules.loading import find_arms
from blklab.modules.store import BuiltModule
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.schedulers import COPY

OpenDisplay = Callable[[], AbstractContextManager[GateObserver]]
"""Begins to show the progress of one gate."""


def gate_module(module: BuiltModule, display: OpenDisplay, *, seeds: int = SEEDS) -> GateResult | None:
    """Puts a module through the gate, with its progress; None for an unchanged copy.

    Raises:
        BlklabError: as for `pass_gate`.
    """
    if module.record.changes is None:
        return None
    with display() as observer:
        return pass_gate(module, observer, seeds=seeds)


def gate_arms(specs: Sequence[ExperimentSpec], display: OpenDisplay) -> None:
    """Puts the modules of experiments through the gate.

    Raises:
        BlklabError: if one does not pass, or no guest of it can be built.
    """
    for spec in specs:
        if not backend_for(spec.parsed_target).MODULES:
            continue
        named = [one for one in spec.schedulers if one.kernel is not None and one.kernel != COPY]
        for module in find_arms(named).modules:
            gate_module(module, display)
