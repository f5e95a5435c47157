"""Tuning of loads in control groups: weights, limits and io.cost."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from blklab.backends.sim import SimSession
from blklab.errors import SpecError, TunableError, UnknownNameError, UsageError
from blklab.labs.tuning.document import TuneDocument
from blklab.labs.tuning.finalists import simplified
from blklab.labs.tuning.group_space import (
    VRATE_MAX,
    VRATE_MIN,
    CostFigures,
    GroupConditions,
    GroupLoad,
    GroupWork,
)
from blklab.labs.tuning.model import opened
from blklab.labs.tuning.setting import TriedSetting
from blklab.labs.tuning.space import Space, Work, search_space
from blklab.labs.tuning.trials import ModelTrials
from blklab.labs.tuning.tuning import Tuning, TuningRequest, prepare, tune
from blklab.records.store import Store
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.group_settings import COST_ENABLE
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.workloads import parse_workload
from tuning_runs import SilentObserver, searched, spec_of

SHARES = """; decide-by: share_deviation
[global]
rw=randread
bs=4k
direct=1
ioengine=libaio
iodepth=16
size=64m
time_based
runtime=1s
[gold]
cgroup=gold
[lead]
cgroup=lead
"""
"""Two groups that want the same; their shares are those that they were promised, or not."""
LATENCY = """; decide-by: latency_p99
; focus: reader
[global]
direct=1
time_based
runtime=1s
size=64m
[reader]
rw=randread
bs=4k
cgroup=front
[writer]
rw=write
bs=256k
ioengine=libaio
iodepth=16
cgroup=back
"""
"""A reader's latency beside a writer of another group."""
ALL = frozenset({"io.weight", "io.bfq.weight", "io.max", "io.cost.qos", "io.cost.model"})
COST = CostFigures(95, 1000, 3000, {"rbps": 500, "wbps": 400})
FRONT = GroupWork("front", reads=True, writes=False, measured=True, fixed_weight=False)
BACK = GroupWork("back", reads=False, writes=True, measured=False, fixed_weight=False)
PAIR = GroupLoad((FRONT, BACK), compete=True)
WORK = Work(
    buffered_reads=False,
    buffered_writes=False,
    large_requests=False,
    priorities=False,
    rotational=False,
    several_processors=False,
)


def _tuned(spec: ExperimentSpec, **options: object) -> Tuning:
    with Store.opened("sqlite://") as store:
        return tune(TuningRequest(spec, None, **options), store, SilentObserver())  # type: ignore[arg-type]


def _conditions(load: GroupLoad = PAIR, **values: object) -> GroupConditions:
    usual = {"attributes": ALL, "moved": {("back", "w"): 123_456_789.0}, "cost": COST}
    return GroupConditions(load, **(usual | values))  # type: ignore[arg-type]


def _names(conditions: GroupConditions, scheduler: str = "bfq", vary: tuple[str, ...] = ()) -> list[str]:
    return [one.name for one in conditions.settings(scheduler, vary)]


# ---- the space ------------------------------------------------------------------------------------


def test_the_groups_of_a_load_and_what_they_do() -> None:
    load = GroupLoad.of([parse_workload(LATENCY, name="w", source="w.fio")])
    assert load == PAIR
    alone = parse_workload(LATENCY.replace("cgroup=back\n", ""), name="w", source="w.fio")
    assert GroupLoad.of([alone]) == GroupLoad((FRONT,), compete=True, outside=True)
    plain = parse_workload("[a]\nsize=1m\n", name="w", source="w.fio")
    assert GroupLoad.of([plain]) == GroupLoad()


def test_a_load_without_groups_varies_none_of_it(tmp_path: Path) -> None:
    text = LATENCY.replace("cgroup=front\n", "").replace("cgroup=back\n", "")
    space = prepare(TuningRequest(spec_of(tmp_path, text), None)).space
    assert not [name for name in space.names() if "/" in name]


def test_one_of_two_groups_keeps_its_weight_and_the_measured_one_has_no_limit() -> None:
    assert _names(_conditions()) == [
        COST_ENABLE,
        "/io.cost.qos.rlat",
        "/io.cost.qos.wlat",
        VRATE_MIN,
        VRATE_MAX,
        "back/io.bfq.weight",
        "back/io.weight",
        "back/io.max.wbps",
    ]
    assert "back/io.bfq.weight" not in _names(_conditions(), "none")
    beside = GroupLoad((FRONT, BACK), compete=True, outside=True)
    weights = [name for name in _names(_conditions(beside), "bfq") if name.endswith("bfq.weight")]
    assert weights == ["front/io.bfq.weight", "back/io.bfq.weight"]


def test_a_weight_that_a_job_file_fixes_is_not_varied() -> None:
    fixed = GroupWork("front", reads=True, writes=False, measured=True, fixed_weight=True)
    names = _names(_conditions(GroupLoad((fixed, BACK), compete=True)))
    assert [name for name in names if "weight" in name] == ["back/io.bfq.weight", "back/io.weight"]
    both = GroupWork("back", reads=False, writes=True, measured=False, fixed_weight=True)
    assert not [
        name for name in _names(_conditions(GroupLoad((fixed, both), compete=True))) if "weight" in name
    ]


def test_groups_that_do_not_compete_have_no_shares() -> None:
    assert _names(_conditions(GroupLoad((FRONT,)), cost=None, moved={})) == []


def test_limits_are_round_parts_of_what_the_group_moves() -> None:
    (limit,) = _conditions(cost=None).settings("none", ("back/io.max.wbps",))
    assert limit.values == ("15000000", "31000000", "62000000", "93000000", None)
    assert limit.default == "max"


def test_latency_targets_are_multiples_of_the_disk_s_and_bring_their_percentile() -> None:
    rlat = next(one for one in _conditions().settings("none", ()) if one.name == "/io.cost.qos.rlat")
    assert rlat.values == (None, "500", "1000", "2000", "5000", "10000")
    assert rlat.brings == {"/io.cost.qos.rpct": "95"}
    assert rlat.needs == COST_ENABLE


def test_what_a_person_asks_for_comes_with_what_it_needs() -> None:
    conditions = _conditions()
    assert _names(conditions, vary=("io.weight",)) == [COST_ENABLE, "back/io.weight"]
    assert _names(conditions, vary=("front/io.weight",)) == []
    assert _names(conditions, vary=("io.max",)) == ["back/io.max.wbps"]
    both = _conditions(moved={("front", "r"): 1e6, ("back", "w"): 1e8})
    assert _names(both, vary=("io.max",)) == ["back/io.max.wbps"]
    assert _names(both, vary=("front/io.max.rbps",)) == ["front/io.max.rbps"]
    assert _names(conditions, vary=("/io.cost.qos.min",)) == [COST_ENABLE, VRATE_MIN]
    assert len(_names(conditions, vary=("io.cost.qos",))) == 5


def test_an_io_cost_that_is_on_already_needs_no_switch() -> None:
    given = {"/": {"io.cost.qos": "enable=1 rpct=90 rlat=700 min=60"}, "back": {"io.weight": "40"}}
    found = {one.name: one for one in _conditions(given=given).settings("none", ())}
    assert COST_ENABLE not in found
    assert found["/io.cost.qos.rlat"].brings == {}
    assert found["/io.cost.qos.rlat"].values == ("500", None, "1000", "2000", "5000", "10000")
    assert found[VRATE_MIN].values == ("10", "25", "50", None, "75", "100")
    assert (found["back/io.weight"].needs, found["back/io.weight"].default) == (None, "40")


def test_candidates_leave_out_what_does_nothing_and_are_counted_once() -> None:
    space = search_space({"none": {}}, WORK, vary=[], queue_depth=None, groups=_conditions())
    off = space.choice("none", {COST_ENABLE: None, VRATE_MIN: "50", "back/io.weight": "10"})
    assert off.label == "none"
    on = space.choice("none", {COST_ENABLE: "1", "/io.cost.qos.rlat": "500", "back/io.weight": "10"})
    assert on.tunables == {
        COST_ENABLE: "1",
        "/io.cost.model.rbps": "500",
        "/io.cost.model.wbps": "400",
        "/io.cost.qos.rlat": "500",
        "/io.cost.qos.rpct": "95",
        "back/io.weight": "10",
    }
    assert space.changed(on) == {COST_ENABLE: "1", "/io.cost.qos.rlat": "500", "back/io.weight": "10"}
    upside_down = space.choice("none", {COST_ENABLE: "1", VRATE_MIN: "75", VRATE_MAX: "50"})
    assert (upside_down.tunables[VRATE_MIN], upside_down.tunables[VRATE_MAX]) == ("50", "50")
    labels = [choice.label for choice in space.choices()]
    assert len(set(labels)) == len(labels) == space.size
    given = {"/": {"io.cost.qos": "enable=1"}}
    without_switch = search_space(
        {"none": {}}, WORK, vary=[], queue_depth=None, groups=_conditions(given=given)
    )
    assert len(list(without_switch.choices())) == without_switch.size


def test_a_space_without_groups_is_counted_as_before() -> None:
    settings = [TriedSetting("a", ("1", None), "2"), TriedSetting("b", (None, "3", "4"), "0")]
    assert Space({"none": settings}).size == 6


# ---- refusals -------------------------------------------------------------------------------------


def test_groups_that_the_load_lacks_cannot_be_varied(tmp_path: Path) -> None:
    text = LATENCY.replace("cgroup=front\n", "").replace("cgroup=back\n", "")
    with pytest.raises(UsageError, match="no job of the load is in a control group"):
        prepare(TuningRequest(spec_of(tmp_path, text), None, vary=("back/io.max.wbps",)))


def test_an_attribute_of_the_other_cgroup_version_is_refused_with_its_counterpart() -> None:
    version_1 = _conditions(attributes=frozenset({"blkio.bfq.weight", "blkio.throttle.read_bps_device"}))
    assert _names(version_1) == ["back/blkio.bfq.weight"]
    for name, hint in (("io.max", "blkio.throttle"), ("/io.cost.qos.min", "belongs to cgroup v2")):
        with pytest.raises(TunableError, match="under cgroup v1") as error:
            search_space({"bfq": {}}, WORK, vary=[name], queue_depth=None, groups=version_1)
        assert hint in str(error.value.hint)


def test_a_setting_that_this_load_cannot_feel_is_refused() -> None:
    with pytest.raises(UsageError, match=r"cannot feel front/io\.weight") as error:
        search_space({"none": {}}, WORK, vary=["front/io.weight"], queue_depth=None, groups=_conditions())
    assert "front and back" in str(error.value.hint)


def test_a_choice_for_a_group_that_nobody_joins_is_refused(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, LATENCY)
    with opened(spec) as session, pytest.raises(UnknownNameError, match="no job joins the control group 'x'"):
        session.check([parse_scheduler_choice("none:x/io.weight=50")], spec.workloads)


def test_a_choice_cannot_change_a_weight_of_the_job_file(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, LATENCY.replace("cgroup=back", "cgroup=back\ncgroup_weight=300"))
    with opened(spec) as session, pytest.raises(SpecError, match="fixes the weight") as error:
        session.check([parse_scheduler_choice("bfq:back/io.bfq.weight=50")], spec.workloads)
    assert "--cgroup back:io.weight=300" in str(error.value.hint)


def test_schedulers_with_group_settings_do_not_take_turns(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, LATENCY)
    with opened(spec) as session:
        session.check([parse_scheduler_choice("none")], spec.workloads)
        assert session.unswitchable(spec.workloads[0]) is None
        session.check([parse_scheduler_choice("none:back/io.max.wbps=1000000")], spec.workloads)
        assert "control groups change between runs only" in str(session.unswitchable(spec.workloads[0]))


# ---- searches whose truth is known ----------------------------------------------------------------


def test_weights_for_a_promised_ratio_are_found(tmp_path: Path) -> None:
    """Five to one is promised, and bfq's weights decide; of all weights, 20 against 100 keeps it."""
    spec = spec_of(
        tmp_path, SHARES, schedulers=["bfq"], cgroups={"gold": {"io.weight": "500"}}, target="sim:hdd-7200"
    )
    prepared = prepare(TuningRequest(spec, None, vary=("io.bfq.weight", "low_latency", "slice_idle")))
    assert prepared.space.names() == ["slice_idle", "low_latency", "lead/io.bfq.weight"]
    whole, model = searched(prepared, prepared.space.size)
    best = max(whole, key=lambda one: one.score(model.dimensions))
    assert best.choice.tunables["lead/io.bfq.weight"] == "20"
    assert best.score(model.dimensions) > math.log(1.5)
    part, _ = searched(prepared, prepared.space.size // 3)
    assert len(part) == prepared.space.size // 3
    found = max((one for one in part if not one.pruned), key=lambda one: one.score(model.dimensions))
    assert found.choice.tunables["lead/io.bfq.weight"] == "20"
    assert found.score(model.dimensions) > best.score(model.dimensions) - 0.02


def test_a_limit_or_io_cost_for_a_latency_is_found_and_confirmed(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, LATENCY, schedulers=["none"], blocks=4)
    asked = ("io.max", "/io.cost.qos.max")
    prepared = prepare(TuningRequest(spec, None, vary=asked))
    whole, model = searched(prepared, prepared.space.size)
    best = max(one.score(model.dimensions) for one in whole)
    found = _tuned(spec, vary=asked, trials=prepared.space.size // 2)
    assert len(found.trials) == prepared.space.size // 2
    tried = max(one.score(model.dimensions) for one in found.trials if not one.pruned)
    assert tried > best - 0.1
    assert found.recommendation is not None
    assert found.recommendation.choice.of_groups
    document = TuneDocument.of(found)
    assert document.recommendation is not None
    again = parse_scheduler_choice(document.recommendation.choice)
    assert again.tunables == found.recommendation.choice.tunables
    assert found.record is not None
    assert again.label in [one.label for one in found.record.spec.schedulers]


def test_the_same_search_twice(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, LATENCY, schedulers=["none", "bfq"])
    found = []
    for _ in range(2):
        made, model = searched(prepare(TuningRequest(spec, None)), 24)
        found.append([(one.choice.label, one.score(model.dimensions)) for one in made])
    assert found[0] == found[1]
    assert any("/io.cost.qos" in label for label, _ in found[0])


def test_io_cost_is_reduced_as_a_whole(tmp_path: Path) -> None:
    """Coefficients come and go with the switch, and what needs it goes with it."""
    prepared = prepare(TuningRequest(spec_of(tmp_path, LATENCY, schedulers=["none"]), None))
    with opened(prepared.on_model) as session:
        assert isinstance(session, SimSession)
        model = ModelTrials(session, prepared.on_model, prepared.target.default)
        limit = next(one for one in prepared.space.settings["none"] if one.name == "back/io.max.wbps")
        values = {COST_ENABLE: "1", VRATE_MAX: "150", "back/io.weight": "200", limit.name: limit.values[0]}
        (trial,) = model.begin([prepared.space.choice("none", values)])
        assert "/io.cost.model.rbps" in trial.choice.tunables
        for block in range(4):
            model.run_block([trial], block)
        reduced = simplified(trial, prepared.space, model, margin=0.02)
        assert not [name for name in reduced.choice.tunables if name.startswith("/io.cost.model")] or (
            COST_ENABLE in reduced.choice.tunables
        )
        assert reduced.choice.tunables.keys() < trial.choice.tunables.keys()
