"""Solutions of the atlas's drives: parameters of io.cost for one purpose each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SOLUTIONS = ("isolation", "isolated-bandwidth", "bandwidth", "naive")
"""In the order of ``IOCOST_SOLUTIONS``, as resctl-bench has it."""
COEFFICIENTS = ("rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops")
QOS = ("rpct", "rlat", "wpct", "wlat", "min", "max")


@dataclass(frozen=True)
class DriveSolution:
    """Parameters for one purpose."""

    name: str
    scale: float
    """Its coefficients over those measured."""
    qos: Mapping[str, float]
    """Percentiles, latencies in microseconds, vrates in percent."""

    @classmethod
    def from_table(cls, name: str, table: Mapping[str, Any]) -> DriveSolution:
        """A solution as a profile has it."""
        return cls(name, float(table["scale"]), {key: float(table[key]) for key in QOS})

    def model(self, coefficients: Mapping[str, int]) -> dict[str, int]:
        """The coefficients that go with it."""
        return {name: max(1, round(coefficients[name] * self.scale)) for name in COEFFICIENTS}
