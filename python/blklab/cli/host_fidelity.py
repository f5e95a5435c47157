"""`blklab fidelity --host`: compare the simulator with this machine's own kernel."""

from __future__ import annotations

from rich.console import Console

from blklab.cli.progress import ProgressDisplay
from blklab.execution.calibration.host_fidelity import (
    MEDIAN_LIMIT,
    ORDER_LIMIT,
    PERCENTILE_95_LIMIT,
    HostFidelityDocument,
    host_fidelity,
)
from blklab.execution.calibration.loads import MATRIX, Load
from blklab.execution.calibration.measuring import memory_device
from blklab.execution.calibration.quantiles import median_and_95th
from blklab.spec.machines import load_machine


def loads_matching(patterns: tuple[str, ...]) -> list[Load]:
    """The loads whose name contains one of the patterns; all without any."""
    return [load for load in MATRIX if not patterns or any(pattern in load.name for pattern in patterns)]


def compare_with_host(
    loads: list[Load], machine: str, *, repetitions: int, seed: int, quiet: bool
) -> HostFidelityDocument:
    """Measures the loads on this machine and predicts them with a cost table."""
    table = load_machine(machine)
    with ProgressDisplay(quiet=quiet) as display:
        with memory_device(loads, seed=seed) as device:
            measurement = device.measure(repetitions, display.announce)
        display.announce("simulating the same loads")
        return host_fidelity(measurement, table)


def print_host_fidelity(document: HostFidelityDocument, console: Console) -> None:
    """Prints every ratio, then the errors and orders against their limits."""
    for cell in document.cells:
        console.print(
            f"{cell.load:16} {cell.scheduler:12} {cell.iops:9.0f} IOPS, ratio {cell.ratio:.2f} "
            f"± {1.96 * cell.ratio * cell.ratio_error:.2f}; predicted {cell.predicted_iops:9.0f}, "
            f"{cell.predicted_ratio:.2f}{', fitted' if cell.fitted else ''}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    for fitted, title in ((True, "fitted"), (False, "not fitted")):
        errors, orders = document.errors(fitted=fitted), document.orders(fitted=fitted)
        if not errors:
            continue
        typical, large = median_and_95th(errors)
        console.print(
            f"Loads {title}: ratios to none are off by {100 * typical:.1f} % in the median"
            f" (limit {100 * MEDIAN_LIMIT:g}), {100 * large:.1f} % at the 95th percentile"
            f" (limit {100 * PERCENTILE_95_LIMIT:g}); {sum(orders)} of {len(orders)} pairs that the host"
            f" decides are in the same order (limit {100 * ORDER_LIMIT:g} %).",
            markup=False,
            highlight=False,
        )
