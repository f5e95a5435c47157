"""Experimental designs: how samples come about, and so which intervals, tests and sample sizes are valid.

One file per design behind the protocol `Design`. To add one, add its file and its case in `design_of`.
"""

from __future__ import annotations

from blklab.analysis.designs.anytime import AnytimeDesign
from blklab.analysis.designs.fixed import FixedDesign
from blklab.analysis.designs.mixed import MixedDesign
from blklab.analysis.designs.population import PopulationDesign
from blklab.analysis.designs.protocol import Design
from blklab.analysis.designs.switchback import SwitchbackDesign
from blklab.spec.experiment import ExperimentSpec

__all__ = [
    "AnytimeDesign",
    "Design",
    "FixedDesign",
    "MixedDesign",
    "PopulationDesign",
    "SwitchbackDesign",
    "design_of",
]


def design_of(spec: ExperimentSpec) -> Design:
    """The design that an experiment's stopping rule calls for, and its slots.

    Questions about several workloads together (a goal's score) have the switchback's design only if all
    workloads that they rest on are switched.
    """
    kind = AnytimeDesign if spec.stops_when_settled else FixedDesign
    runs = kind(confidence=spec.confidence, margin=spec.margin)
    if not spec.switched:
        return runs
    switchback = SwitchbackDesign(confidence=spec.confidence, margin=spec.margin)
    names = [workload.name for workload in spec.workloads]
    judged = [workload.name for workload in spec.workloads if not workload.control] or names
    overall = switchback if all(name in spec.switched for name in judged) else runs
    return MixedDesign(
        by_workload={name: switchback if name in spec.switched else runs for name in names},
        overall=overall,
    )
