"""Families of gauges, and their text.

Gauges alone: the text is then valid OpenMetrics, and node_exporter's textfile collector, which knows neither
info metrics nor state sets, takes it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from blklab.report.documents.parts import MeanPart, RatioPart

PREFIX = "blklab_"


@dataclass(frozen=True)
class _Family:
    help_text: str
    unit: str
    label_names: tuple[str, ...]
    samples: list[tuple[tuple[str, ...], float]] = field(default_factory=list)
    """Labels' values, and the value."""


class Families:
    """Samples by family: the text format wants all samples of a family in one place."""

    def __init__(self) -> None:
        self._families: dict[str, _Family] = {}

    def add(self, name: str, value: float | None, help_text: str, *, unit: str = "", **labels: str) -> None:
        """Adds one sample; a value that does not exist (None) leaves none.

        Args:
            name: Name of the family without prefix and unit.
            value: In base units: seconds, bytes, ratios.
            help_text: Meaning of the family.
            unit: Base unit, which ends the family's name; empty for a count.
            labels: The same names for every sample of a family.
        """
        if value is None:
            return
        full_name = f"{PREFIX}{name}_{unit}" if unit else f"{PREFIX}{name}"
        family = self._families.setdefault(full_name, _Family(help_text, unit, tuple(labels)))
        family.samples.append((tuple(labels.values()), value))

    def add_states(
        self, name: str, label: str, states: Iterable[str], now: str, help_text: str, **labels: str
    ) -> None:
        """Adds a sample for each state that is possible: 1 for the present one, 0 for the others."""
        for state in states:
            self.add(name, float(state == now), help_text, **labels, **{label: state})

    def add_mean(
        self, name: str, part: MeanPart, meaning: str, *, unit: str, factor: float = 1.0, **labels: str
    ) -> None:
        """Adds a mean with the bounds of its interval, each as a family of its own."""
        for suffix, value, what in (
            ("", part.mean, f"{meaning}: geometric mean over the runs"),
            ("_ci_low", part.ci_low, f"{meaning}: lower bound of the mean's interval"),
            ("_ci_high", part.ci_high, f"{meaning}: upper bound of the mean's interval"),
        ):
            scaled = None if value is None else value * factor
            self.add(f"{name}{suffix}", scaled, what, unit=unit, **labels)

    def add_ratio(self, name: str, part: RatioPart, meaning: str, **labels: str) -> None:
        """Adds a ratio with the bounds of its interval."""
        for suffix, value, what in (
            ("", part.ratio, meaning),
            ("_ci_low", part.ci_low, f"{meaning}: lower bound of the interval"),
            ("_ci_high", part.ci_high, f"{meaning}: upper bound of the interval"),
        ):
            self.add(f"{name}{suffix}", value, what, unit="ratio", **labels)

    def text(self) -> str:
        """OpenMetrics 1.0 text (UTF-8), with its end mark."""
        # Imported here, as it takes a tenth of the time of all other imports of `blklab compare`.
        from prometheus_client.openmetrics.exposition import generate_latest  # noqa: PLC0415

        write: Callable[[_Collected], bytes] = generate_latest
        return write(_Collected(self._families)).decode("utf-8")


@dataclass(frozen=True)
class _Collected:
    """The families in the form of a registry of prometheus_client, as far as its writer asks for one."""

    families: Mapping[str, _Family]

    def collect(self) -> Iterable[object]:
        from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415

        for name, family in self.families.items():
            gauge = GaugeMetricFamily(name, family.help_text, labels=family.label_names, unit=family.unit)
            for labels, value in family.samples:
                gauge.add_metric(labels, value)
            yield gauge
