"""Machines: cost tables from files, and what is wrong with broken ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blklab import _core
from blklab.errors import ProfileError, UnknownNameError
from blklab.spec.machines import (
    ZERO_CPU_TIME,
    Machine,
    StepCosts,
    calibrated_machine,
    load_machine,
    shipped_machines,
)
from plain_simulation import simulate

TABLE = (
    'name = "mine"\ncpus = 3\nslice_ns = 1000\n[steps]\nsubmit_ns = 700\n[schedulers.bfq]\ninsert_ns = 900\n'
)
READER = "[reader]\nrw=randread\ndirect=1\nsize=64m\nnumber_ios=2000\n"


def test_reads_are_plugged_where_the_table_says_so() -> None:
    table = Machine(name="mine", cpus=1, steps=StepCosts(submit_ns=700, wake_ns=3000, context_switch_ns=3000))
    by_worker = simulate("fixed", READER, scheduler="mq-deadline", costs=table)
    by_task = simulate(
        "fixed", READER, scheduler="mq-deadline", costs=table.model_copy(update={"plug_reads": True})
    )
    assert sum(by_task.engine["processors"]["busy_ns"]) < 0.8 * sum(by_worker.engine["processors"]["busy_ns"])


@pytest.mark.parametrize(("kernel", "always"), [("6.1", False), ("6.12", True), ("7.3", False)])
def test_linux_6_12_plugs_reads_whatever_the_table_says(kernel: str, always: bool) -> None:
    ordinary = load_machine("ordinary").on_one_processor()
    tables = [ordinary.model_copy(update={"plug_reads": plugged}) for plugged in (False, True)]
    by_worker, by_task = (
        simulate(f"nvme-tlc,kernel={kernel}", READER, scheduler="mq-deadline", costs=table)
        for table in tables
    )
    assert (by_task.jobs == by_worker.jobs) == always


@pytest.mark.parametrize("name", sorted(shipped_machines().keys() - {ZERO_CPU_TIME}))
def test_shipped_tables_are_taken_by_the_simulator(name: str) -> None:
    machine = load_machine(name)
    assert machine.source == name
    assert machine.summary
    result = simulate("fixed", READER, scheduler="bfq", costs=machine)
    busy_ns = result.engine["processors"]["busy_ns"]
    assert len(busy_ns) == machine.cpus
    assert 0 < result.engine["processors"]["scheduler_ns"] < sum(busy_ns)
    (job,) = result.jobs
    assert job.cpu_user_ns
    assert job.cpu_system_ns
    assert job.cpu_user_ns + job.cpu_system_ns < sum(busy_ns)


@pytest.mark.parametrize("machine", [ZERO_CPU_TIME, load_machine(ZERO_CPU_TIME)])
def test_computing_may_take_no_time(machine: Machine | str) -> None:
    result = simulate("fixed", READER, scheduler="bfq", costs=machine)
    assert "processors" not in result.engine
    assert result.jobs[0].cpu_user_ns is None


def test_every_scheduler_has_costs_in_every_table_that_costs() -> None:
    costly = [entry["name"] for entry in json.loads(_core.schedulers()) if entry["name"] != "none"]
    for name, machine in shipped_machines().items():
        assert machine.is_free == (name == ZERO_CPU_TIME)
        assert machine.is_free or sorted(machine.schedulers) == sorted(costly)


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TABLE)
    machine = load_machine(str(path))
    assert (machine.name, machine.cpus, machine.slice_ns) == ("mine", 3, 1000)
    assert (machine.steps.submit_ns, machine.schedulers["bfq"].insert_ns) == (700, 900)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cpus = 3", "name"),
        (TABLE.replace("cpus = 3", "cpus = 0"), "cpus"),
        (TABLE.replace("submit_ns", "submit_us"), "steps.submit_us"),
        (TABLE.replace("700", "0.7"), "steps.submit_ns"),
        (TABLE.replace("700", "-1"), "steps.submit_ns"),
        (TABLE.replace("900", "2_000_000_000"), "schedulers.bfq.insert_ns"),
        (TABLE + "locked_percent = 101", "schedulers.bfq.locked_percent"),
        ("name = [", "not TOML"),
    ],
)
def test_broken_tables_name_the_field(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ProfileError) as error:
        load_machine(str(path))
    assert str(path) in error.value.message
    assert said in error.value.message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="cannot be read"):
        load_machine(str(tmp_path / "none.toml"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ProfileError, match="not UTF-8"):
        load_machine(str(tmp_path / "bytes.toml"))


def test_unknown_names_come_with_a_hint() -> None:
    with pytest.raises(UnknownNameError) as error:
        load_machine("ordinry")
    assert "ordinary" in str(error.value.hint)


def test_this_machine_must_be_measured_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(UnknownNameError) as error:
        load_machine("this")
    assert "blklab calibrate processor" in str(error.value.hint)
    calibrated_machine().parent.mkdir(parents=True)
    calibrated_machine().write_text(TABLE)
    assert load_machine("this").cpus == 3
