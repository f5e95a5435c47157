"""The table of loads, designs and backends: what it permits can be planned, and all else is refused by it."""

from __future__ import annotations

import json
from itertools import product

import jsonschema
import pytest

from blklab.cli import run
from blklab.cli.reference.schemas import DOCUMENTS, schema_of
from blklab.errors import BlklabError, ExitCode
from blklab.experiment.pipeline import planned_commands
from blklab.spec.changes import parse_changes
from blklab.spec.experiment import Conditions, ExperimentSpec
from blklab.spec.guest import GuestOptions
from blklab.spec.loads import Load, TurnDesign
from blklab.spec.permits import COLUMNS, RULES, column_of, require_runs, rule_for, why_not_switched
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.workloads import Workload, parse_workload, workload_of_command

JOB = "[job]\nrw=randread\nbs=4k\nsize=64m\ndirect=1\ntime_based=1\nruntime=1s\n"
CHANGES = parse_changes(["100ms nr_requests=32"])
CELLS = [
    pytest.param(load, design, column, id=f"{load.label}, {design.value}, {column}")
    for load, design, column in product(Load, TurnDesign, COLUMNS)
]


def workload_of(load: Load) -> Workload:
    if load is Load.COMMAND:
        return workload_of_command("ls")
    head = "; tool: hdparm -t\n" if load is Load.HDPARM else ""
    workload = parse_workload(head + JOB, name="job", source="job.fio")
    if load is not Load.REPLAY:
        return workload
    return workload.model_copy(update={"jobs": [workload.jobs[0].model_copy(update={"replayed_ios": 5})]})


def conditions_of(column: str, design: TurnDesign) -> Conditions:
    return Conditions(
        changes=CHANGES if design is TurnDesign.CHANGES else (),
        guest=GuestOptions(generator="fio" if "fio" in column else "blkguest"),
    )


@pytest.mark.parametrize(("load", "design", "column"), CELLS)
def test_a_cell_is_refused_with_its_rule_and_not_otherwise(
    load: Load, design: TurnDesign, column: str
) -> None:
    workload = workload_of(load)
    assert workload.load is load
    backend = column.split(maxsplit=1)[0]
    conditions = conditions_of(column, design)
    assert column_of(backend, conditions) == column
    rule = rule_for(load, column, design)
    reason = None
    try:
        require_runs(backend, conditions, [workload], "the target")
        if design is TurnDesign.SWITCHBACK:
            reason = why_not_switched(workload, backend, conditions)
    except BlklabError as error:
        reason = error.message
    if rule is None:
        assert reason is None
    else:
        assert rule.error(workload, target="the target").message == reason
        assert "{" not in str(reason)


@pytest.mark.parametrize("design", TurnDesign, ids=lambda design: design.value)
@pytest.mark.parametrize("load", Load, ids=lambda load: load.label)
def test_experiments_on_the_simulator_follow_the_table(load: Load, design: TurnDesign) -> None:
    spec = ExperimentSpec(
        target="sim:ssd-sata",
        schedulers=[parse_scheduler_choice("none"), parse_scheduler_choice("kyber")],
        workloads=[workload_of(load)],
        design="switchback" if design is TurnDesign.SWITCHBACK else "runs",
        budget_blocks=9,
        changes=conditions_of("sim", design).changes,
    )
    if rule_for(load, "sim") or (design is TurnDesign.CHANGES and rule_for(load, "sim", design)):
        with pytest.raises(BlklabError):
            planned_commands(spec, blocks=1)
        return
    ((title, _), *others) = planned_commands(spec, blocks=1)[1]
    taken = "take turns" in title
    assert taken == (design is TurnDesign.SWITCHBACK and rule_for(load, "sim", design) is None)
    assert len(others) == (0 if taken else 1)


def test_every_rule_is_the_reason_for_some_cell() -> None:
    used = {
        id(rule_for(load, column, design, beside=beside))
        for load, design, column in product(Load, TurnDesign, COLUMNS)
        for beside in {rule.beside for rule in RULES}
    }
    assert [rule.reason for rule in RULES if id(rule) not in used] == []


def test_a_backend_of_another_package_has_the_rules_that_hold_everywhere() -> None:
    assert rule_for(Load.COMMAND, "nbd") is None
    assert rule_for(Load.COMMAND, "nbd", TurnDesign.SWITCHBACK) is not None


def test_doctor_prints_the_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert run(["doctor", "--matrix"]) == ExitCode.OK
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["fio", "jobs", "runs", "yes", "yes", "yes", "yes"] in lines
    assert sum("no" in line for line in lines) >= 8
    assert run(["doctor", "--matrix", "--json", "-"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, schema_of(*DOCUMENTS["doctor-matrix-1.json"]))
    assert document["schema"] == "blklab.doctor-matrix/1"
    refused = [one for one in document["combinations"] if not one["possible"]]
    assert len(document["combinations"]) == len(CELLS)
    assert all(one["reason"] for one in refused)
    assert {(one["load"], one["backend"]) for one in refused if one["design"] == "runs"} == {
        ("command", "sim"),
        ("command", "uml with fio"),
        ("replay", "uml with fio"),
    }
