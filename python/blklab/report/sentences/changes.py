"""Remarks on two compared experiments in sentences."""

from __future__ import annotations

from blklab.analysis.between_runs import ChangedWorkloads, ChangeRemark, OnlyInOne
from blklab.quantities.formatting import join_names


def change_remark_text(remark: ChangeRemark) -> str:
    """One remark, without a full stop."""
    if isinstance(remark, OnlyInOne):
        plural = "s" if len(remark.names) > 1 else ""
        return f"only the {remark.which} has the {remark.kind}{plural} {join_names(remark.names)}"
    if isinstance(remark, ChangedWorkloads):
        return f"{join_names(remark.names)} differ in their text, and are not compared"
    return (
        f"the control {remark.workload} changed as well, although neither disk nor scheduler has an "
        "influence on it: something else differs between the two times"
    )
