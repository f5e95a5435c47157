"""The gate before the host on the command line: its flag, its progress, and the arms that must pass it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from blklab.backends import backend_for
from blklab.cli.build_progress import BuildDisplay
from blklab.labs.gate.gate import SEEDS, pass_gate
from blklab.modules.gate_results import GateResult
from blklab.modules.loading import find_arms
from blklab.modules.store import BuiltModule
from blklab.quantities.units import format_duration
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.schedulers import COPY

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def no_gate_option(function: Decorated) -> Decorated:
    """Adds ``--no-gate``."""
    return click.option(
        "--no-gate",
        is_flag=True,
        help="Take a patched scheduler as it is, without loads and torture in a guest first: a mistake of it "
        "is then one of the running kernel.",
    )(function)


class GateDisplay(BuildDisplay):
    """Shows the progress of a gate."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._begun_ns = time.monotonic_ns()

    def announce(self, line: str) -> None:
        """Shows a stage that begins."""
        self._begun_ns = time.monotonic_ns()
        super().announce(line)

    def asked(self, question: str, done: int, expected: int) -> None:
        """Shows a question that was asked."""
        self._count(question, f"{done}/{expected} loads", done, expected)

    def ended(self, scheduler: str, seed: int, done: int, total: int, mistakes: int) -> None:
        """Shows a seed whose run has ended."""
        found = f", {mistakes} with a mistake" if mistakes else ""
        self._count(f"{scheduler}, seed {seed}", f"{done}/{total} seeds{found}", done, total)

    def _count(self, what: str, counted: str, done: int, expected: int) -> None:
        remaining_ns = (time.monotonic_ns() - self._begun_ns) * (expected - done) // max(done, 1)
        state = f"{counted}, {format_duration(remaining_ns)} left"
        self.show(what, state)
        self.move(done, expected)
        self.log_now_and_then(f"{what}: {state}")


def gate_module(module: BuiltModule, *, quiet: bool, seeds: int = SEEDS) -> GateResult | None:
    """Puts a module through the gate, with its progress; None for an unchanged copy.

    Raises:
        BlklabError: as for `blklab.labs.gate.gate.pass_gate`.
    """
    if module.record.changes is None:
        return None
    with GateDisplay(quiet=quiet) as display:
        return pass_gate(module, display, seeds=seeds)


def gate_arms(specs: Sequence[ExperimentSpec], *, quiet: bool) -> None:
    """Puts the modules through the gate that experiments on disks of this machine would load.

    Raises:
        BlklabError: if one does not pass, or no guest of it can be built.
    """
    for spec in specs:
        if not backend_for(spec.parsed_target).MODULES:
            continue
        named = [one for one in spec.schedulers if one.kernel is not None and one.kernel != COPY]
        for module in find_arms(named).modules:
            gate_module(module, quiet=quiet)
