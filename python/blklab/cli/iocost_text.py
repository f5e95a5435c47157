"""io.cost's parameters as text for people, and the head of a file for udev."""

from __future__ import annotations

from rich.table import Table

from blklab.cli.tables import plain_table
from blklab.labs.iocost.document import IoCostDocument, Sweep
from blklab.labs.iocost.estimates import Estimate
from blklab.labs.iocost.measuring import IocostPlan
from blklab.labs.iocost.solutions import HEADROOM, Expected
from blklab.labs.iocost.vrate_range import Vrate
from blklab.quantities.formatting import TIMES, Scale, count_of, scale_for
from blklab.quantities.sample_units import rough_duration
from blklab.report.terminal import Terminal

_EVERY = 10
"""Percent between the vrates that are printed; the document has them all."""


def plan_text(plan: IocostPlan) -> str:
    """The size, and the time as far as it is known beforehand."""
    runs = plan.loads * plan.rounds
    size = f"{count_of(plan.loads, 'load')} {TIMES} {count_of(plan.rounds, 'round')}, {count_of(runs, 'run')}"
    if plan.least_ns is None:
        return f"{size} on a model, in virtual time"
    return (
        f"{size}: {rough_duration(plan.least_ns)} of load, and the time that the disk takes to finish"
        " its writes (Ctrl-C ends it and keeps nothing)"
    )


def print_iocost(found: IoCostDocument, console: Terminal, hwdb_file: str | None) -> None:
    """Prints the figures, the sweep, the solutions, and the lines of the chosen one."""
    console.print(f"io.cost of {found.disk}: {_extent(found)}", soft_wrap=True)
    console.print()
    console.print(_figures(found))
    if found.sweep is not None:
        console.print()
        _print_sweep(found.sweep, console)
    console.print()
    console.print(_solutions(found))
    lines = [
        "",
        f"The lines of {found.chosen} (nothing was set; pasted as root they last until the next boot):",
        f"echo '{found.model_line}' > /sys/fs/cgroup/io.cost.model",
        f"echo '{found.qos_line}' > /sys/fs/cgroup/io.cost.qos",
        *([] if hwdb_file is None else [f"hwdb: {hwdb_file}"]),
    ]
    # Lines of a shell are not wrapped, so that they can be copied.
    console.print(*lines, sep="\n", soft_wrap=True)
    for remark in found.remarks:
        console.prose(f"Note: {remark}.")


def hwdb_head(found: IoCostDocument) -> list[str]:
    """Comments for the head of a file for udev: the origin of the figures, and their intervals."""
    figures = [*found.coefficients, *found.latencies]
    head = [
        f"Measured by blklab iocost on {found.measured_on[:10]}, Linux {found.kernel}:",
        f"{found.target}, {_extent(found)}.",
        "95 % intervals, of the disk as measured:",
        *(f"  {one.name} {one.whole} [{round(one.low)}, {round(one.high)}]" for one in figures),
    ]
    if found.sweep is not None and found.sweep.range is not None:
        vrates = found.sweep.range
        head += [
            f"vrates of a sweep of {found.sweep.profile}, in percent of the model as measured:",
            f"  knee {_vrate(vrates.knee)}, saturation {_vrate(vrates.saturation)}",
        ]
    return [
        *head,
        *(f"Note: {remark}." for remark in found.remarks),
        "systemd applies naive unless iocost.conf names another (TargetSolution=).",
    ]


def _extent(found: IoCostDocument) -> str:
    return f"{found.rounds} rounds of loads of {found.runtime_s:g} s, seed {found.seed}"


def _figures(found: IoCostDocument) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_column("95 % interval")
    table.add_column("load", overflow="fold")
    for one in found.coefficients:
        table.add_row(one.name, str(one.whole), _interval(one), one.load)
    for one in found.latencies:
        meaning = f"{one.load}, {HEADROOM:g} {TIMES} p{found.percentile}"
        table.add_row(one.name, f"{one.whole} µs", _interval(one), meaning)
    return table


def _interval(one: Estimate) -> str:
    return f"{round(one.low)} to {round(one.high)}"


def _print_sweep(sweep: Sweep, console: Terminal) -> None:
    rates = _rates(sweep)
    table = plain_table((), ("vrate", *_expected_headings(rates)))
    for one in sweep.vrates:
        if one.vrate % _EVERY == 0:
            table.add_row(f"{one.vrate} %", *_expected(one.expected, rates))
    table.add_row("no io.cost", *_expected(sweep.without, rates))
    reads, writes = sweep.asked_reads_per_second, sweep.asked_writes_per_second
    console.print(
        f"A group that asks for {reads} reads and {writes} writes a second, beside a heavy one, on"
        f" {sweep.profile}:"
    )
    console.print(table)
    if sweep.range is not None:
        console.print(
            f"knee (most bandwidth per latency): {_vrate(sweep.range.knee)} %;"
            f" saturation: {_vrate(sweep.range.saturation)} %",
            soft_wrap=True,
        )


def _solutions(found: IoCostDocument) -> Table:
    rates = None if found.sweep is None else _rates(found.sweep)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("solution", no_wrap=True)
    for heading in ("vrate", *([] if rates is None else _expected_headings(rates))):
        table.add_column(heading, justify="right")
    for one in found.solutions:
        vrates = [one.vrate_min] if one.vrate_min == one.vrate_max else [one.vrate_min, one.vrate_max]
        cells = [] if one.expected is None or rates is None else _expected(one.expected, rates)
        table.add_row(one.name, f"{' to '.join(map(str, vrates))} %", *cells)
    return table


def _rates(sweep: Sweep) -> Scale:
    return scale_for("B/s", [one.expected.bytes_per_second for one in sweep.vrates])


def _expected_headings(rates: Scale) -> list[str]:
    return [f"{rates.unit} of both", "p99 of its reads", "share of asked"]


def _expected(expected: Expected, rates: Scale) -> list[str]:
    p99 = "none" if expected.p99_us is None else f"{expected.p99_us / 1000:.3g} ms"
    return [f"{rates.shown(expected.bytes_per_second):.4g}", p99, f"{100 * min(1, expected.isolation):.0f} %"]


def _vrate(vrate: Vrate) -> str:
    return f"{vrate.value} [{vrate.low}, {vrate.high}]"
