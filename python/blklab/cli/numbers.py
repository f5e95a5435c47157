"""Numbers on the command line: the one type of options that take a fraction."""

from __future__ import annotations

import math
from typing import Any

import click

from blklab.errors import UsageError
from blklab.quantities.units import parse_fraction


class RealRange(click.FloatRange):
    """A real number within bounds. ``nan`` and ``inf`` are no numbers: nan passes every bound of click."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, also in percent: ``5%`` is 0.05; any other text is a usage error."""
        if isinstance(value, str) and value.strip().endswith("%"):
            value = self._from_percent(value, param, ctx)
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number

    def _from_percent(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return float(value.strip().removesuffix("%")) / 100
        except ValueError:
            self.fail(f"{value} is not a number.", param, ctx)


class FractionRange(RealRange):
    """A fraction within bounds, as a number or in percent; 5 where 5% is meant is refused with that hint."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The fraction.

        Raises:
            UsageError: if it is none; it names the flag.
        """
        try:
            fraction = parse_fraction(value)
        except UsageError as error:
            flag = f"{param.opts[0]}: " if param is not None and param.opts else ""
            raise UsageError(f"{flag}{error.message}", hint=error.hint) from error
        return super().convert(fraction, param, ctx)
