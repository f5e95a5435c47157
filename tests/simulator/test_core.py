"""The border to the compiled module: its stub, its errors, and that nothing crosses it as a panic."""

from __future__ import annotations

import ast
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blklab
from blklab import _core
from blklab.spec.profiles import load_profile, shipped_profiles
from blklab.spec.workloads import load_workload, shipped_workloads

STUB = Path(blklab.__file__).with_name("_core.pyi")


def test_the_stub_names_what_the_module_has() -> None:
    body = ast.parse(STUB.read_text()).body
    described = {node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    described |= {
        node.target.id
        for node in body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    assert described == {name for name in dir(_core) if not name.startswith("_")}


def _request(**changes: Any) -> str:
    request: dict[str, Any] = {
        "device": {"profile": None, "source": "fixed", "kind": "fixed", "parameters": {"latency": "100us"}},
        "scheduler": "none",
        "tunables": {},
        "queue": {},
        "jobs": {"text": "[r]\nrw=randread\nbs=4k\ndirect=1\nnumber_ios=100\n", "source": "r.fio"},
        "runtime_ns": None,
        "seed": 1,
        "limits": {"events": None, "simulated_ns": None},
    }
    return json.dumps(request | changes)


def test_errors_carry_where_and_what() -> None:
    with pytest.raises(_core.JobFileError) as job_error:
        _core.parse_jobs("[r]\nrw=read\n\nbs=soon\n", "mine.fio")
    assert (job_error.value.source, job_error.value.line) == ("mine.fio", 4)
    with pytest.raises(_core.ProfileError) as profile_error:
        _core.check_device('name = "x"\nsummary = "x"\nkind = "fixed"\nlatency = "-1us"\n', "x.toml")
    assert profile_error.value.field == "latency"
    with pytest.raises(_core.SimulationError) as tunable_error:
        _core.simulate(_request(scheduler="deadline", tunables={"fifo_batch": "many"}))
    assert tunable_error.value.field == "fifo_batch"


def test_limits_stop_a_simulation_with_a_typed_error() -> None:
    with pytest.raises(_core.SimulationError) as caught:
        _core.simulate(_request(limits={"events": 50, "simulated_ns": None}))
    assert caught.value.kind == "limit"
    with pytest.raises(_core.SimulationError) as caught:
        _core.simulate(_request(limits={"events": None, "simulated_ns": 1_000_000}))
    assert caught.value.kind == "limit"


def test_checking_says_the_same_as_simulating() -> None:
    checked, simulated = json.loads(_core.check_request(_request())), json.loads(_core.simulate(_request()))
    assert checked["queue"] == simulated["queue"]
    assert checked["device"]["capacity_bytes"] == simulated["device"]["capacity_bytes"]
    for broken in (
        {"scheduler": "cfk"},
        {"queue": {"nr_requests": "0"}},
        {"jobs": {"text": "", "source": "x"}},
    ):
        with pytest.raises((_core.SimulationError, _core.JobFileError)) as by_check:
            _core.check_request(_request(**broken))
        with pytest.raises(type(by_check.value), match=r".") as by_run:
            _core.simulate(_request(**broken))
        assert str(by_check.value) == str(by_run.value)


@pytest.mark.parametrize("name", shipped_profiles())
def test_every_profile_is_listed_described_and_checked(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.summary


@pytest.mark.parametrize("name", shipped_workloads())
def test_every_workload_says_what_it_is_for(name: str) -> None:
    workload = load_workload(name)
    assert workload.purpose.endswith((".", "?"))
    assert not workload.warnings


@settings(max_examples=300)
@given(st.text(max_size=200))
def test_no_text_panics_the_parser(text: str) -> None:
    with contextlib.suppress(_core.JobFileError):
        _core.parse_jobs(text, "x.fio")


@settings(max_examples=300)
@given(st.text(max_size=200))
def test_no_text_panics_the_profile_loader(text: str) -> None:
    with contextlib.suppress(_core.ProfileError):
        _core.check_device(text, "x.toml")


@given(st.text(max_size=100))
def test_no_request_panics_the_simulator(text: str) -> None:
    with pytest.raises(_core.SimulationError) as caught:
        _core.simulate(text)
    assert caught.value.kind != "internal"


def test_control_groups_reach_the_simulator() -> None:
    jobs = {
        "text": "[r]\nrw=randread\nbs=4k\ndirect=1\nruntime=2\ntime_based\ncgroup=batch\n",
        "source": "r.fio",
    }
    answer = json.loads(_core.simulate(_request(jobs=jobs, cgroups={"batch": {"io.max": "riops=100"}})))
    assert 195 <= answer["jobs"][0]["directions"][0]["ios"] <= 215
    with pytest.raises(_core.SimulationError) as caught:
        _core.check_request(_request(cgroups={"batch": {"io.weigth": "100"}}))
    assert (caught.value.kind, caught.value.field) == ("unknown_tunable", "io.weigth")
    assert "did you mean io.weight" in caught.value.message
