"""Experimental designs: how samples come about, and so which intervals, tests and sample sizes are valid.

One file per design behind the protocol `Design`. To add one, add its file and its case in `design_of`.
"""

from __future__ import annotations

from blklab.analysis.designs.anytime import AnytimeDesign
from blklab.analysis.designs.fixed import FixedDesign
from blklab.analysis.designs.protocol import Design
from blklab.spec.experiment import ExperimentSpec

__all__ = ["AnytimeDesign", "Design", "FixedDesign", "design_of"]


def design_of(spec: ExperimentSpec) -> Design:
    """The design that an experiment's stopping rule calls for."""
    kind = AnytimeDesign if spec.stops_when_settled else FixedDesign
    return kind(confidence=spec.confidence, margin=spec.margin)
