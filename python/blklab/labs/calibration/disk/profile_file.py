"""A calibrated profile as a file: a profile as any other, with a table ``calibration`` about its making."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from blklab.labs.calibration.disk.document import DiskCalibration, Figure
from blklab.quantities.formatting import count_of
from blklab.quantities.visible import visible

_DURATIONS = {
    *("latency", "command", "flush", "switch", "settle", "hit", "interface", "program", "erase", "suspend"),
}
"""Last words of the keys whose values are durations; there are others, such as seeks."""
_CELL_READS = {"read_low", "read_middle", "read_high"}
_US = 1_000


def profile_text(calibration: DiskCalibration, *, name: str) -> str:
    """The file's content.

    Args:
        calibration: What was found.
        name: The profile's.
    """
    typical, large = calibration.errors()
    tail, large_tail = calibration.tail_errors()
    day = calibration.measured_on[:10]
    loads = count_of(len(calibration.loads), "load")
    lines = [
        f"# Measured by blklab calibrate on {day}: {count_of(calibration.runs, 'run')} of",
        f"# {loads} on {visible(calibration.target)}, Linux {calibration.kernel}.",
        "# Errors on loads that were not fitted, median and 95th percentile:",
        f"# {_percent(typical)} and {_percent(large)} of rates,",
        f"# {_percent(tail)} and {_percent(large_tail)} of 99th percentiles of latency.",
        *(f"# {line}" for line in mixed_lines(calibration)),
        f"# Not covered: {calibration.not_covered}.",
        *(f"# Note: {remark}." for remark in calibration.all_remarks),
        f"name = {_quoted(name)}",
        f"kind = {_quoted(calibration.kind)}",
        f"summary = {_quoted(f'{calibration.model or calibration.disk}, calibrated {day}')}",
        "",
        "# Behind each figure: its 95 % interval, or how it was found.",
        *(_figure_line(figure) for figure in calibration.figures),
        "",
        "[calibration]",
        f"target = {_quoted(calibration.target)}",
        f"disk = {_quoted(calibration.disk)}",
        f"model = {_quoted(calibration.model)}",
        f"measured_on = {_quoted(calibration.measured_on)}",
        f"kernel = {_quoted(calibration.kernel)}",
        "# The profile holds with this cost table (--machine).",
        f"machine = {_quoted(calibration.machine)}",
        f"seed = {calibration.seed}",
        f"runs = {calibration.runs}",
        f"measured_s = {calibration.measured_s}",
        "# Errors are of logarithms: 0.05 is 5 %.",
        f"rate_error_median = {typical:.4f}",
        f"rate_error_95 = {large:.4f}",
        f"p99_error_median = {tail:.4f}",
        f"p99_error_95 = {large_tail:.4f}",
        f"model_error = {calibration.model_error:.4f}",
        f"drift = {_array([calibration.drift.change, calibration.drift.low, calibration.drift.high])}",
        f"nearest_shipped = {_quoted(calibration.nearest.profile)}",
        f"nearest_shipped_rate_error_median = {calibration.nearest.rate_error_median:.4f}",
        f"remarks = {_strings(calibration.remarks)}",
        *_steady_lines(calibration),
        f"not_covered = {_quoted(calibration.not_covered)}",
        "",
        "[calibration.intervals]",
        *(_interval_line(figure) for figure in calibration.figures if _has_interval(figure)),
        *_derived_lines(calibration),
    ]
    for load in calibration.loads:
        lines += [
            "",
            "[[calibration.loads]]",
            f"load = {_quoted(load.load)}",
            f"fitted = {str(load.fitted).lower()}",
            f"runs = {load.runs}",
            f"iops = {load.iops:.1f}",
            f"predicted_iops = {load.predicted_iops:.1f}",
            f"p99_us = {load.p99_us:.1f}",
            f"predicted_p99_us = {load.predicted_p99_us:.1f}",
        ]
    for mixed in calibration.mixed_loads:
        lines += [
            "",
            "[[calibration.mixed_loads]]",
            f"load = {_quoted(mixed.load)}",
            f"fitted = {str(mixed.fitted).lower()}",
            f"runs = {mixed.runs}",
            f"read_mean_us = {mixed.read_mean_us:.1f}",
            f"predicted_read_mean_us = {mixed.predicted_read_mean_us:.1f}",
            f"read_p99_us = {mixed.read_p99_us:.1f}",
            f"predicted_read_p99_us = {mixed.predicted_read_p99_us:.1f}",
            f"write_iops = {mixed.write_iops:.1f}",
            f"predicted_write_iops = {mixed.predicted_write_iops:.1f}",
        ]
    return "\n".join([*lines, ""])


def mixed_lines(calibration: DiskCalibration) -> list[str]:
    """The errors on reads beside writes in words; none if there were no such loads."""
    errors = calibration.mixed_errors
    if errors is None:
        return []
    parts = (
        ("mean latency of reads", errors.read_mean),
        ("its 99th percentile", errors.read_p99),
        ("rate of writes", errors.write_rate),
    )
    return [
        f"Errors on {errors.loads} loads of reads beside writes that were not fitted, median and largest:",
        *(f"  {_percent(typical)} and {_percent(largest)}, {name}" for name, (typical, largest) in parts),
    ]


def shown_value(figure: Figure, value: int | str) -> str:
    """A figure's value with its unit, as the profile's grammar has it."""
    if isinstance(value, str):
        return value
    if is_duration(figure.key) and value:
        return f"{value / _US:.4g}us" if value >= _US else f"{value}ns"
    return str(value)


def shown_interval(figure: Figure, shown: Callable[[Figure, int | str], str] = shown_value) -> str:
    """A figure's interval for people, its bounds as `shown` has them; how it was found if there is none."""
    low, high = figure.low, figure.high
    if low is None and high is None:
        return figure.how
    if high is None:
        return f"at least {shown(figure, low or 0)}"
    if not low:
        return f"at most {shown(figure, high)}"
    return f"{shown(figure, low)} to {shown(figure, high)}"


def is_duration(key: str) -> bool:
    """Whether the value of a key is a time."""
    if key.startswith("seek_"):
        return key != "seek_far_from"
    return key == "starvation_limit" or key in _CELL_READS or key.rsplit("_", maxsplit=1)[-1] in _DURATIONS


def _steady_lines(calibration: DiskCalibration) -> list[str]:
    """The rounds of conditioning, if there were any."""
    steady = calibration.steady
    if steady is None:
        return []
    return [
        f"steady = {str(steady.reached).lower()}",
        f"steady_rounds_iops = [{', '.join(f'{iops:.1f}' for iops in steady.iops)}]",
    ]


def _derived_lines(calibration: DiskCalibration) -> list[str]:
    """A table of what follows from the figures; none if there is nothing."""
    if not calibration.derived:
        return []
    return [
        "",
        "[calibration.derived]",
        "# What follows from the figures: value, lower and upper bound, in ns, bytes/s, thousandths.",
        *(f"{figure.key} = [{figure.value}, {figure.low}, {figure.high}]" for figure in calibration.derived),
    ]


def _figure_line(figure: Figure) -> str:
    value = figure.value
    if isinstance(value, str):
        written = _quoted(value)
    elif is_duration(figure.key) and value:
        written = f'"{value}ns"'
    else:
        written = str(value)
    return f"{figure.key} = {written}  # {shown_interval(figure)}"


def _has_interval(figure: Figure) -> bool:
    return figure.low is not None or figure.high is not None


def _interval_line(figure: Figure) -> str:
    """An open end is written as -1: TOML has no null."""
    bounds = [-1 if bound is None else bound for bound in (figure.low, figure.high)]
    return f"{figure.key} = [{bounds[0]}, {bounds[1]}]"


def _percent(error: float) -> str:
    return f"{100 * error:.1f} %"


def _array(values: Iterable[float]) -> str:
    return f"[{', '.join(f'{value:.4f}' for value in values)}]"


def _strings(values: Iterable[str]) -> str:
    return f"[{', '.join(_quoted(value) for value in values)}]"


def _quoted(text: str) -> str:
    """A basic string of TOML; JSON's escapes are among TOML's."""
    return json.dumps(text)
