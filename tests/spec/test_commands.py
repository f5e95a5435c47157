"""Commands as workloads: their descriptions, their options, and where they are refused."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from blklab.cli import run
from blklab.errors import BlklabError, ExitCode, SpecError, UsageError
from blklab.experiment.pipeline import planned_commands
from blklab.spec.commands import in_directory, name_of, required_test
from blklab.spec.experiment import Conditions, ExperimentSpec
from blklab.spec.permits import why_not_switched
from blklab.spec.request import SpecValues, build_specs, read_spec_file
from blklab.spec.workloads import load_workload, shipped_commands, workload_of_description
from plain_simulation import simulate


def spec_of(**given: Any) -> ExperimentSpec:
    (spec,) = build_specs(SpecValues(targets=["/srv"], **given))
    return spec


@pytest.mark.parametrize("name", shipped_commands())
def test_shipped_commands_say_what_they_need(name: str) -> None:
    workload = load_workload(name)
    assert workload.command is not None
    assert workload.purpose
    assert workload.command.requires
    assert workload.jobs == []
    assert workload.focus == ["command"]


def test_a_description_keeps_every_key() -> None:
    text = (
        "purpose = 'p'\ncommand = 'c'\nset_up = 's'\nrepeat_set_up = 'r'\ncold = true\nspace = '2m'\n"
        "time_limit = '3s'\ncontrol = true\ndecide_by = 'processor_time'\n[requires]\nmake = 'make'\n"
    )
    workload = workload_of_description(text, name="mine", source="mine.toml")
    command = workload.command
    assert command is not None
    assert (command.run, command.set_up, command.repeat_set_up, command.cold) == ("c", "s", "r", True)
    assert (command.space_bytes, command.time_limit_ns) == (2 << 20, 3_000_000_000)
    assert (workload.purpose, workload.control, workload.decide_by) == ("p", True, "processor_time")
    assert workload.text == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("purpose = 'no command'", "command"),
        ("command = ''", "command"),
        ("command = 'c'\ncolour = 'red'", "unknown key 'colour'"),
        ("command = 'c'\nspace = 512", "text with a unit"),
        ("command = 'c'\nspace = 'much'", "much"),
        ("command = 'c'\ncold = 'yes'", "cold"),
        ("command = ", "not valid TOML"),
    ],
)
def test_a_mistake_is_named_with_its_file(text: str, said: str) -> None:
    with pytest.raises(SpecError, match=said) as raised:
        workload_of_description(text, name="mine", source="mine.toml")
    assert raised.value.message.startswith("mine.toml: ")


def test_a_command_line_becomes_a_workload_with_its_options() -> None:
    spec = spec_of(commands=["make -j2"], cold=True, beside="many-readers", repeat_set_up="make clean",
                   space="2g", time_limit="5s")  # fmt: skip
    (workload,) = spec.workloads
    assert (workload.name, workload.decide_by) == ("make -j2", "wall_time")
    assert workload.beside is not None and workload.beside.name == "many-readers"
    command = workload.command
    assert command is not None and command.inline
    assert (command.cold, command.repeat_set_up) == (True, "make clean")
    assert (command.space_bytes, command.time_limit_ns) == (2 << 30, 5_000_000_000)


def test_options_reach_only_the_commands_that_they_are_for() -> None:
    spec = spec_of(
        workloads=["sqlite-commits", "many-readers"], commands=["true"], cold=True, set_up="prepare"
    )
    shipped, jobs, inline = spec.workloads
    assert shipped.command is not None and inline.command is not None
    assert jobs.command is None and jobs.beside is None
    assert (shipped.command.cold, inline.command.cold) == (True, True)
    assert "commits.py" in shipped.command.set_up
    assert inline.command.set_up == "prepare"
    assert [workload.name for workload in spec_of(commands=["true"]).workloads] == ["true"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cold": True}, "cold is for commands"),
        ({"beside": "many-readers"}, "beside is for commands"),
        ({"set_up": "s", "workloads": ["git-status"]}, "set_up belongs to a command"),
        ({"commands": ["true"], "beside": "git-status"}, "git-status is a command"),
        ({"commands": ["true", "true"]}, "listed twice"),
        ({"commands": [" "]}, "empty"),
        ({"commands": ["true"], "beside": "no-such-load"}, "no-such-load"),
    ],
)
def test_options_that_no_command_can_take_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BlklabError, match=said):
        spec_of(**given)


def test_a_recording_cannot_run_beside_a_command(tmp_path: Path) -> None:
    lines = ("1     0.000000000   100  Q   R 8000 + 8 [a]", "2     0.000100000   100  C   R 8000 + 8 [0]")
    (tmp_path / "recorded.txt").write_text("".join(f"  8,0    0        {line}\n" for line in lines))
    with pytest.raises(SpecError, match="is a recording, which ends by itself"):
        spec_of(commands=["true"], beside=f"trace:{tmp_path / 'recorded.txt'}")


def test_a_section_beside_a_command_has_another_name(tmp_path: Path) -> None:
    (tmp_path / "load.fio").write_text("[command]\nrw=read\nsize=1m\n")
    with pytest.raises(SpecError, match="cannot be called 'command'"):
        spec_of(commands=["true"], beside=str(tmp_path / "load.fio"))


def test_paths_in_a_description_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "load.fio").write_text("[reader]\nrw=read\nsize=1m\n")
    (tmp_path / "mine.toml").write_text("command = 'true'\n")
    (tmp_path / "experiment.toml").write_text(
        "target = '/srv'\nworkloads = ['mine.toml']\ncommand = 'false'\nbeside = 'load.fio'\n"
    )
    (spec,) = build_specs(read_spec_file(tmp_path / "experiment.toml"))
    assert [workload.name for workload in spec.workloads] == ["mine", "false"]
    assert all(workload.beside is not None for workload in spec.workloads)


def test_placeholders_are_quoted_and_variables_left_alone() -> None:
    assert in_directory("cd {dir} && echo ${dir} {dirs}", "/a b") == "cd '/a b' && echo ${dir} {dirs}"


def test_requirements_are_programs_or_shell_commands() -> None:
    assert required_test("make") == "command -v make"
    assert required_test("pkg-config --exists zlib") == "pkg-config --exists zlib"


def test_a_long_command_has_a_short_name() -> None:
    assert name_of("make \n -j2") == "make -j2"
    assert len(name_of("x" * 500)) == 40


# Where commands cannot run


def test_commands_have_runs_of_their_own() -> None:
    reason = why_not_switched(load_workload("git-status"), "host", Conditions())
    assert reason == "a command makes its own load, which starts anew each time"


def test_the_simulator_refuses_commands() -> None:
    (spec,) = build_specs(SpecValues(targets=["sim:ssd-sata"], commands=["make"]))
    with pytest.raises(UsageError, match="none of this machine's programs") as raised:
        planned_commands(spec, blocks=1)
    assert raised.value.hint


def test_simulations_from_python_refuse_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="git-status is a command"):
        simulate("ssd-sata", "git-status")
    assert run(shlex.split("explain sim:ssd-sata git-status")) == ExitCode.USAGE
    assert "is a command" in capsys.readouterr().err


def test_workloads_are_listed_with_their_steps(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert run(["workloads", "git-clone"]) == ExitCode.OK
    text = capsys.readouterr().out
    for part in ("rm -rf copy", "git clone -q", "cold: unmounted", "768 MiB", "mawk", "runs on hosts"):
        assert part in text
