"""Remarks on a class of drives in sentences: what was left out, and what differed."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.drives import LeftOut, LeftOutReason
from blklab.analysis.fleet import Condition, FewDrives, FleetRemark, MixedConditions
from blklab.analysis.fleet_goal import WorkloadLeftOut
from blklab.quantities.formatting import count_of, join_names

_REASONS: dict[LeftOutReason, str] = {
    "several drives": "tested several drives together",
    "running": "still running",
    "repeated": "repeated later on the same drive",
    "other text": "another workload under the same name",
    "models": "on models, which `--models` judges alone",
}
_CONDITIONS: dict[Condition, str] = {
    "kernels": "kernels",
    "runtimes": "lengths of run",
    "queue attributes": "queue attributes",
    "control groups": "control groups",
}


def fleet_remark_text(remark: FleetRemark) -> str:
    """One remark, without a full stop."""
    if isinstance(remark, LeftOut):
        left_out = count_of(len(remark.runs), "experiment")
        return f"{left_out} left out ({_REASONS[remark.reason]}): {join_names(_first(remark.runs))}"
    if isinstance(remark, FewDrives):
        if remark.counts:
            return f"{remark.scheduler} was tested on {remark.drives} of {remark.of} drives"
        return f"{remark.scheduler} left out: tested on {count_of(remark.drives, 'drive')} only"
    if isinstance(remark, MixedConditions):
        differing = join_names([f"{count} {_CONDITIONS[kind]}" for kind, count in remark.kinds.items()])
        return f"the drives were tested with {differing}: the spread includes that"
    if isinstance(remark, WorkloadLeftOut):
        drives = count_of(remark.drives, "drive")
        return f"{remark.workload} does not count for the goal: {drives} with figures for it"
    return (
        f"{count_of(len(remark.drives), 'drive')} left out for the goal, not tested under all of"
        f" {join_names(remark.workloads)}: {join_names(remark.drives[:5])}"
        + (" …" if len(remark.drives) > 5 else "")
    )


def _first(runs: Sequence[str]) -> list[str]:
    """A few of many."""
    return [*runs[:4], f"{len(runs) - 4} more"] if len(runs) > 5 else list(runs)
