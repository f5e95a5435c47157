"""Tuning: the space, the search, the reduction of candidates, the confirmation."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from blklab.backends.sim import SimSession
from blklab.errors import TunableError, UsageError
from blklab.labs.tuning.document import TuneDocument
from blklab.labs.tuning.finalists import finalists, simplified
from blklab.labs.tuning.importance import importances
from blklab.labs.tuning.model import model_for, opened
from blklab.labs.tuning.page import tune_html
from blklab.labs.tuning.space import Space, Work, chosen, search_space
from blklab.labs.tuning.text import headline, sentences
from blklab.labs.tuning.trials import ModelTrials, Trial, dimensions_of
from blklab.labs.tuning.tuning import Tuning, TuningRequest, prepare, tune
from blklab.records.store import Store
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.goals import parse_goal
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.workloads import Workload
from reader_beside_writer import reader_beside_writer
from tuning_runs import SilentObserver, searched, spec_of

JOBS = reader_beside_writer(runtime="1s", size="64m")
LONE_READER = "[reader]\nrw=randread\nbs=4k\ndirect=1\nsize=64m\ntime_based\nruntime=1s\n"
WORK = Work(
    buffered_reads=False,
    buffered_writes=False,
    large_requests=True,
    priorities=False,
    rotational=False,
    several_processors=True,
)


def _scores(trials: list[Trial], model: ModelTrials) -> list[tuple[str, float, bool]]:
    return [(one.choice.label, one.score(model.dimensions), one.pruned) for one in trials]


def _tuned(spec: ExperimentSpec, **options: object) -> Tuning:
    with Store.opened("sqlite://") as store:
        return tune(TuningRequest(spec, None, **options), store, SilentObserver())  # type: ignore[arg-type]


# ---- the space ------------------------------------------------------------------------------------


def test_the_default_stands_where_its_value_belongs() -> None:
    space = search_space({"mq-deadline": {"fifo_batch": "16"}}, WORK, vary=[], queue_depth=None)
    (setting,) = space.settings["mq-deadline"]
    assert setting.values == ("1", "2", "4", "8", None, "32", "64")
    assert setting.default == "16"


def test_a_default_between_the_values_is_one_more() -> None:
    space = search_space({"mq-deadline": {"fifo_batch": "20"}}, WORK, vary=[], queue_depth=None)
    (setting,) = space.settings["mq-deadline"]
    assert setting.values == ("1", "2", "4", "8", "16", None, "32", "64")


def test_without_a_scheduler_there_are_no_more_requests_than_tags() -> None:
    defaults = {"none": {"nr_requests": "32"}, "bfq": {"nr_requests": "64"}}
    space = search_space(defaults, WORK, vary=[], queue_depth=32)
    assert [one.values for one in space.settings["none"]] == [("8", "16", None)]
    assert "1024" in space.settings["bfq"][0].values


def test_a_load_without_the_page_cache_leaves_its_settings_alone() -> None:
    had = {"none": {"read_ahead_kb": "128", "wbt_lat_usec": "2000", "nomerges": "0"}}
    assert search_space(had, WORK, vary=[], queue_depth=None).names() == ["nomerges"]
    asked = search_space(had, WORK, vary=["read_ahead_kb"], queue_depth=None)
    assert asked.names() == ["read_ahead_kb"]


def test_a_setting_that_nobody_has_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="no setting 'fifo_bacth'") as error:
        search_space({"mq-deadline": {"fifo_batch": "16"}}, WORK, vary=["fifo_bacth"], queue_depth=None)
    assert "fifo_batch" in str(error.value.hint)


def test_every_candidate_is_counted_and_differs() -> None:
    had = {"mq-deadline": {"fifo_batch": "16", "writes_starved": "2"}, "none": {"nomerges": "0"}}
    space = search_space(had, WORK, vary=[], queue_depth=None)
    labels = [choice.label for choice in space.choices()]
    assert len(set(labels)) == len(labels) == space.size == 7 * 5 + 3


# ---- the search -----------------------------------------------------------------------------------


def test_the_same_trials_on_any_number_of_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepare(TuningRequest(spec_of(tmp_path, JOBS, schedulers=["mq-deadline", "none"]), None))
    found = []
    for processors in (1, 3):
        monkeypatch.setattr(os, "cpu_count", lambda processors=processors: processors)
        found.append(_scores(*searched(prepared, 24)))
    assert found[0] == found[1]
    assert len(found[0]) == 24


def test_a_small_space_is_searched_in_full_and_a_search_of_half_finds_its_best(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, JOBS, schedulers=["mq-deadline"])
    prepared = prepare(TuningRequest(spec, None, vary=("max_sectors_kb", "async_depth", "writes_starved")))
    size = prepared.space.size
    whole, model = searched(prepared, size)
    assert len({one.choice.label for one in whole}) == size
    best = max(one.score(model.dimensions) for one in whole)
    assert best > 0.1
    half, _ = searched(prepared, size // 2)
    kept = [one.score(model.dimensions) for one in half if not one.pruned]
    assert max(kept) > best - 0.02


def test_a_candidate_is_reduced_to_what_it_needs(tmp_path: Path) -> None:
    prepared = prepare(TuningRequest(spec_of(tmp_path, JOBS, schedulers=["mq-deadline"]), None))
    with opened(prepared.on_model) as session:
        model = ModelTrials(session, prepared.on_model, prepared.target.default)
        busy = {"max_sectors_kb": "64", "read_expire": "1000", "front_merges": "0", "nr_requests": "256"}
        (trial,) = model.begin([chosen("mq-deadline", {"async_depth": "16"} | busy)])
        for block in range(4):
            model.run_block([trial], block)
        reduced = simplified(trial, prepared.space, model, margin=0.02)
        assert reduced.choice.tunables.items() < trial.choice.tunables.items()
        assert reduced.score(model.dimensions) > trial.score(model.dimensions) - 0.02
        assert not {"read_expire", "front_merges"} & reduced.choice.tunables.keys()
        last = finalists([trial], prepared.space, model, prepared.target.default, margin=0.02)
        assert [one.choice for one in last] == [reduced.choice]


def test_what_the_model_refuses_is_told_and_left_out(tmp_path: Path) -> None:
    prepared = prepare(TuningRequest(spec_of(tmp_path, JOBS), None))
    with opened(prepared.on_model) as session:
        model = ModelTrials(session, prepared.on_model, prepared.target.default)
        refused, fine = model.begin([chosen("none", {"nr_requests": "100000000"}), chosen("none", {})])
        model.run_block([refused, fine], 0)
    assert refused.error is not None
    assert "nr_requests" in refused.error
    assert (refused.blocks, fine.blocks) == (0, 1)


def test_importance_goes_to_the_setting_that_matters(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, JOBS, schedulers=["mq-deadline"])
    prepared = prepare(TuningRequest(spec, None, vary=("async_depth", "prio_aging_expire", "front_merges")))
    trials, model = searched(prepared, prepared.space.size)
    found = importances(trials, prepared.space, model.dimensions)["mq-deadline"]
    assert max(found, key=lambda name: found[name]) == "async_depth"
    assert sum(found.values()) == pytest.approx(1)


def test_a_goal_makes_a_dimension_of_each_metric(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, JOBS).model_copy(update={"goal": parse_goal("iops=3,latency_p99=1")})
    assert [(one.name, one.weight) for one in dimensions_of(spec)] == [("iops", 0.75), ("latency_p99", 0.25)]


# ---- the confirmation -----------------------------------------------------------------------------


def test_a_gain_is_confirmed_under_other_seeds_with_an_interval(tmp_path: Path) -> None:
    found = _tuned(spec_of(tmp_path, JOBS, blocks=4), trials=40)
    assert found.recommendation is not None
    assert found.record is not None
    assert found.record.spec.seed != found.request.experiment.seed
    (gain,) = found.recommendation.gains
    assert gain.metric == "latency_p99"
    assert gain.outcome == "better"
    assert gain.ci_low is not None
    assert gain.ci_high is not None
    assert gain.ci_low < gain.ratio < gain.ci_high < 1
    document = TuneDocument.of(found)
    assert document.recommendation is not None
    assert document.recommendation.apply_command is None
    assert document.recommendation.choice in headline(document)
    page = tune_html(document)
    assert "What matters under" not in page or "tint" in page
    assert "http" not in page.replace("http-equiv", "")


def test_settings_without_effect_are_not_recommended(tmp_path: Path) -> None:
    found = _tuned(
        spec_of(tmp_path, LONE_READER, schedulers=["mq-deadline"]),
        trials=40,
        vary=("front_merges", "prio_aging_expire"),
    )
    assert found.finalists == []
    assert found.recommendation is None
    document = TuneDocument.of(found)
    assert "Nothing was confirmed" in headline(document)
    assert headline(document.model_copy(update={"default": "none"})).endswith("to beat `none`")
    confirmed, searched = sentences(document)
    # The model is the target here.
    assert confirmed.endswith("so there is nothing to confirm.")
    assert searched.endswith("the best there is as good as the default.")
    assert "0 refused" in tune_html(document)


def test_what_the_target_refuses_is_told_and_the_rest_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stands in for a kernel that rounds times to ticks, as hosts do and models do not."""
    check = SimSession.check

    def rounding(self: SimSession, choices: list[SchedulerChoice], workloads: list[Workload]) -> list[str]:
        if len(choices) > 1 and "max_sectors_kb" in choices[1].tunables:
            raise TunableError("asked for 128, the kernel kept 124")
        return check(self, choices, workloads)

    monkeypatch.setattr(SimSession, "check", rounding)
    found = _tuned(spec_of(tmp_path, JOBS, blocks=3, schedulers=["mq-deadline", "none"]), trials=40)
    errors = {one.choice.label: one.error for one in found.finalists}
    assert "asked for 128, the kernel kept 124" in errors.values()
    page = tune_html(TuneDocument.of(found))
    assert "the kernel kept 124" in page
    if None in errors.values():
        assert found.record is not None
        assert not any("max_sectors_kb" in one.tunables for one in found.record.spec.schedulers)


def test_schedulers_with_settings_of_their_own_are_refused(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, JOBS, schedulers=["bfq:slice_idle=0"])
    with pytest.raises(UsageError, match="takes names of schedulers"):
        prepare(TuningRequest(spec, None))


# ---- the model ------------------------------------------------------------------------------------


def test_the_model_is_the_newest_profile_of_the_target(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    spec = spec_of(tmp_path, JOBS, target=str(tmp_path / "data"))
    with pytest.raises(UsageError, match="no model of") as error:
        model_for(spec, None, tmp_path)
    assert "blklab calibrate" in str(error.value.hint)
    for name, day in (("old", "2026-01-01"), ("new", "2026-02-01")):
        (tmp_path / f"{name}.toml").write_text(
            f'name = "{name}"\nkind = "fixed"\nsummary = "s"\n[calibration]\n'
            f'target = "{spec.target}"\nmeasured_on = "{day}"\n'
        )
    assert model_for(spec, None, tmp_path) == "sim:new.toml"
    assert model_for(spec, "sim:nvme-tlc", tmp_path) == "sim:nvme-tlc"
    with pytest.raises(UsageError, match="not a simulated device"):
        model_for(spec, "uml:nvme-tlc", tmp_path)


def test_a_model_is_its_own_model(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, JOBS, target="uml:ssd-sata,queue_depth=8")
    assert model_for(spec, None, tmp_path) == "sim:ssd-sata,queue_depth=8"


def test_a_space_knows_its_names() -> None:
    assert Space({}).size == 0
    assert Space({}).names() == []
