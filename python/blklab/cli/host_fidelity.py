"""`blklab fidelity --host`: compare the simulator with this machine's own kernel."""

from __future__ import annotations

from blklab.labs.calibration.host_fidelity import (
    MEDIAN_LIMIT,
    ORDER_LIMIT,
    PERCENTILE_95_LIMIT,
    HostFidelityDocument,
    host_fidelity,
)
from blklab.labs.calibration.loads import ProcessorLoad
from blklab.labs.calibration.measuring import memory_device
from blklab.progress.experiment import ProgressDisplay
from blklab.report.terminal import Terminal
from blklab.spec.machines import load_machine


def compare_with_host(
    loads: list[ProcessorLoad], machine: str, *, repetitions: int, seed: int, quiet: bool
) -> HostFidelityDocument:
    """Measures the loads on this machine and predicts them with a cost table."""
    table = load_machine(machine)
    with ProgressDisplay(quiet=quiet) as display:
        with memory_device(loads, seed=seed) as device:
            measurement = device.measure(repetitions, display.announce)
        display.announce("simulating the same loads")
        return host_fidelity(measurement, table)


def print_host_fidelity(document: HostFidelityDocument, console: Terminal) -> None:
    """Prints every ratio, then the errors and orders of each block size against their limits."""
    for summary in document.summaries():
        title = f"{summary.block_kib} KiB, {'fitted' if summary.fitted else 'not fitted'}"
        console.print(f"Loads of {title}:")
        for cell in document.cells:
            if (cell.block_kib, cell.fitted) != (summary.block_kib, summary.fitted):
                continue
            console.print(
                f"  {cell.load:16} {cell.scheduler:12} {cell.iops:9.0f} IOPS, {cell.ratio:.2f} of none"
                f" [{cell.ratio_low:.2f}, {cell.ratio_high:.2f}];"
                f" predicted {cell.predicted_iops:9.0f}, {cell.predicted_ratio:.2f}",
                highlight=False,
                soft_wrap=True,
            )
        console.print(
            f"Ratios to none are off by {100 * summary.median_error:.1f} % in the median (limit "
            f"{100 * MEDIAN_LIMIT:g}), {100 * summary.percentile_95_error:.1f} % at the 95th percentile "
            f"(limit {100 * PERCENTILE_95_LIMIT:g}); {summary.pairs_in_order} of {summary.pairs} pairs that "
            f"this machine decides are in the same order (limit {100 * ORDER_LIMIT:g} %).",
            highlight=False,
        )
