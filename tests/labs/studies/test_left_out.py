"""A study says first what is missing, and is read without the experiments that need it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from blklab.errors import UnknownNameError
from blklab.experiment import prerequisites
from blklab.experiment.blocks import NullRunObserver
from blklab.guests.kernels.names import unknown_kernel
from blklab.labs.studies import replicable_study
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.run import StudyPlan, plan_study, run_plan
from blklab.records.store import Store

NAME = "hdparm-four-schedulers"


def _with_kernels(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    def find(name: str) -> None:
        if name not in names:
            raise unknown_kernel(name)

    monkeypatch.setattr(prerequisites, "_kernel_check", lambda name: partial(find, name))
    monkeypatch.setattr(prerequisites, "_GUESTS", ())


def _plan() -> StudyPlan:
    return plan_study(replicable_study(NAME), StudyOptions("uml", quick=True))


def test_experiments_with_a_missing_kernel_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_kernels(monkeypatch, "stock")
    plan = _plan()
    assert plan.experiments
    assert not [one for one in plan.experiments if one.dispensable]
    (reason,) = plan.left_out
    assert "there is no kernel kyber-busy-wait" in reason
    assert "`blklab kernel build kyber-busy-wait --patch kyber-busy-wait`" in reason
    assert "Left out: 2 experiments (kyber that waits" in reason


def test_nothing_is_left_out_where_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_kernels(monkeypatch, "stock", "kyber-busy-wait")
    assert _plan().left_out == []
    assert [one for one in _plan().experiments if one.dispensable]


def test_a_kernel_that_all_need_ends_the_study_before_its_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_kernels(monkeypatch, "kyber-busy-wait")
    with pytest.raises(UnknownNameError, match="there is no kernel stock"):
        _plan()


def test_the_rest_is_read_and_the_reason_is_a_remark(tmp_path: Path) -> None:
    """On the simulator, whose experiments have the same names, with those of the waiting kyber taken away."""
    options = StudyOptions(quick=True)
    whole = plan_study(replicable_study(NAME), options)
    kept = [one for one in whole.experiments if not one.name.startswith(("busy-wait-", "stock-"))]
    assert len(kept) < len(whole.experiments)
    plan = StudyPlan(whole.study, options, whole.folder, kept, ["there is no kernel kyber-busy-wait."])
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        finding = run_plan(plan, store, NullRunObserver())
    assert finding.result.remarks[0] == "there is no kernel kyber-busy-wait."
    assert finding.result.statements
    assert not [one for one in finding.result.statements if one.name == "patched-kyber-slower"]
    assert "busy-wait" not in [picture.name for picture in finding.result.pictures]
