"""Each option of an experiment is declared once; all that uses options follows from the declaration."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from blklab.cli import compare, run
from blklab.cli.reference import experiments
from blklab.cli.reference.completion import completion_of
from blklab.cli.reference.manual import manual_pages
from blklab.errors import ExitCode, SpecError
from blklab.quantities.units import exact_duration
from blklab.report.summary.reproduce import repeat_command
from blklab.spec.experiment import OPTIONS, ExperimentSpec, option_named
from blklab.spec.goals import parse_goal
from blklab.spec.machines import shipped_machines
from blklab.spec.options import Option, Use
from blklab.spec.request import SpecValues, build_specs, read_spec_file

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "experiments.md"
WORD = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
VALUE = st.from_regex(r"[A-Za-z0-9_.+-]{1,12}", fullmatch=True)
SETTINGS = st.dictionaries(WORD, VALUE, min_size=1, max_size=2)

WRITTEN: dict[str, st.SearchStrategy[Any]] = {
    "targets": st.lists(
        st.sampled_from(["sim:hdd-7200", "uml:nvme-tlc,depth=4", "loop:1g", ".", "--odd dir's"]),
        min_size=1,
        max_size=1,
    ),
    "commands": st.lists(
        st.sampled_from(["make -j2", "true", "sh -c 'echo \"$HOME\" | wc -c'"]), min_size=1, unique=True
    ),
    "cold": st.booleans(),
    "beside": st.sampled_from(["many-readers", "mixed-70-30"]),
    "set_up": st.just("tar xf 'my tree.tar'"),
    "repeat_set_up": st.just("make clean"),
    "space": st.sampled_from(["64m", "2g"]),
    "time_limit": st.integers(1, 10**15).map(exact_duration),
    "guest_file": st.just(["/usr/lib/python3.*", "/opt/my data"]),
    "workloads": st.lists(st.sampled_from(["mixed-70-30", "cached-read"]), min_size=1, unique=True),
    "schedulers": st.lists(
        st.sampled_from(["none", "calm=bfq:slice_idle=0:low_latency=0", "kyber@patched"]),
        min_size=1,
        unique=True,
    ),
    "sweeps": st.just(["bfq:slice_idle=0,2", "kyber:read_lat_nsec=1,2"]),
    "kernels": st.lists(WORD, min_size=1, max_size=3, unique=True),
    "blocks": st.integers(1, 100_000),
    "budget": st.one_of(
        st.integers(1, 10**15).map(exact_duration), st.integers(1, 100_000).map("{}blocks".format)
    ),
    "design": st.sampled_from(["auto", "runs"]),
    "good_enough": st.floats(0, 1, exclude_min=True, exclude_max=True),
    "order": st.sampled_from(option_named("order").choices),
    "seed": st.integers(0, (1 << 53) - 1),
    "runtime": st.integers(1, 10**15).map(exact_duration),
    "queue": SETTINGS,
    "cgroups": st.dictionaries(st.sampled_from(["/", "batch"]), SETTINGS, min_size=1),
    "change": st.lists(
        st.sampled_from(
            [
                "10s reader: ionice=rt/4",
                "2s batch: io.weight=50",
                "3s nr_requests=32",
                "3s scheduler=bfq:slice_idle=0",
            ]
        ),
        min_size=1,
        unique=True,
    ),
    "precondition": st.booleans(),
    "allow_writes": st.booleans(),
    "machine": st.sampled_from(list(shipped_machines())),
    "arrangement": st.sampled_from(option_named("arrangement").choices),
    "guest.generator": st.sampled_from(option_named("guest.generator").choices),
    "guest.time": st.sampled_from(option_named("guest.time").choices),
    "guest.filesystem": st.sampled_from(option_named("guest.filesystem").choices),
    "guest.clocks": st.sampled_from(option_named("guest.clocks").choices),
    "guest.memory": st.integers(64, 64 << 10).map("{}m".format),
    "confidence": st.floats(0.5, 1, exclude_min=True, exclude_max=True),
    "margin": st.floats(0, 1, exclude_max=True),
    "goal": st.sampled_from(["latency", "iops=0.6,latency_p99=0.4"]).map(parse_goal),
}
"""Values as a person writes them, by the option's key."""

EACH = pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)


def test_a_new_option_is_tried_here() -> None:
    assert WRITTEN.keys() == {option.key for option in OPTIONS}


def _command(name: str) -> click.Command:
    command: click.Command = import_module(f"blklab.cli.{name}").command
    return command


@EACH
def test_the_commands_that_take_it_have_its_flag_and_no_other(option: Option) -> None:
    for name in ("compare", "run", "report", "explain"):
        spellings = [set(one.opts) for one in _command(name).params if isinstance(one, click.Option)]
        if option.positional:
            assert any(one.name == option.name for one in _command(name).params) == (name in option.commands)
        else:
            found = any(option.flag in one for one in spellings)
            assert found == (name in option.commands)


@EACH
def test_documents_and_scripts_know_it(option: Option) -> None:
    page = (PAGE.with_name("guests.md") if option.table == "guest" else PAGE).read_text(encoding="utf-8")
    assert option.help in page.replace("\\|", "|")
    manual = manual_pages()["blklab-compare.1"].replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
    assert f"\n{option.singular or option.key}" in manual
    if option.positional:
        return
    assert f"{option.flag} " in manual or f"{option.flag}\n" in manual
    offered = completion_of("bash").get_completions(["compare"], option.flag)
    assert option.flag in {item.value for item in offered}


@pytest.mark.parametrize("page", [PAGE, PAGE.with_name("guests.md")], ids=lambda page: page.stem)
def test_the_tables_in_the_docs_are_current(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert experiments.filled(page) == text, (
        f"refresh with `python -m blklab.cli.reference.experiments {page}`"
    )
    assert text.count("<!-- table:") == 1 + (page == PAGE)


def test_the_file_says_which_commands_take_an_option() -> None:
    file = PAGE.parent / "tables" / experiments.COMMANDS_FILE
    assert file.read_text(encoding="utf-8") == experiments.commands_file(), "refresh with `make golden`"


def test_the_table_links_to_pages_wherever_they_lie(tmp_path: Path) -> None:
    (tmp_path / "docs" / "why").mkdir(parents=True)
    (tmp_path / "docs" / "why" / "precondition-flash.md").write_text("")
    page = tmp_path / "docs" / "what" / "experiments.md"
    page.parent.mkdir()
    page.write_text("<!-- table: options -->\n<!-- end -->\n")
    assert "(../why/precondition-flash.md)" in experiments.filled(page)
    assert "(#targets)" in experiments.filled(page)


@st.composite
def requests(draw: Callable[[st.SearchStrategy[Any]], Any]) -> dict[str, Any]:
    """Values of options that can be combined, by key."""
    keys = draw(st.sets(st.sampled_from(sorted(WRITTEN)))) | {"targets"}
    if "blocks" in keys:
        keys.discard("budget")
    if "blocks" not in keys:
        keys.discard("order")
    if keys & {"cold", "beside", "set_up", "repeat_set_up", "space", "time_limit", "guest_file"}:
        keys.add("commands")
    return {key: draw(WRITTEN[key]) for key in sorted(keys)}


def _spec_of(request: dict[str, Any]) -> ExperimentSpec:
    values: dict[str, Any] = {}
    for key, written in request.items():
        table, _, name = key.rpartition(".")
        (values.setdefault(table, {}) if table else values)[name] = written
    (spec,) = build_specs(SpecValues(**values))
    return spec


class _StopError(SpecError):
    """Raised at the point where the command would start to run."""


def _understood(command: str) -> ExperimentSpec:
    """The values that the real command line reads from a command."""
    heard: list[SpecValues] = []

    def listen(values: SpecValues) -> list[ExperimentSpec]:
        heard.append(values)
        raise _StopError("enough")

    _, _, *arguments = shlex.split(command)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "build_specs", listen)
        result = CliRunner().invoke(compare.command, arguments)
    assert isinstance(result.exception, _StopError), result.output or result.exception
    (spec,) = build_specs(heard[0])
    return spec


@settings(max_examples=150, deadline=None)
@given(request=requests())
def test_the_repeat_command_asks_for_the_same_experiment(request: dict[str, Any]) -> None:
    spec = _spec_of(request)
    assert _understood(repeat_command(spec)) == spec


@settings(max_examples=150, deadline=None)
@given(request=requests())
def test_a_file_asks_for_the_same_experiment(
    request: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("request") / "experiment.toml"
    path.write_text("".join(f"{key} = {_toml(value)}\n" for key, value in request.items()))
    assert build_specs(read_spec_file(path)) == [_spec_of(request)]


@given(spec=requests().map(_spec_of))
@settings(max_examples=50, deadline=None)
def test_a_stored_experiment_loads(spec: ExperimentSpec) -> None:
    assert ExperimentSpec.model_validate_json(spec.model_dump_json()) == spec


def _toml(value: Any) -> str:
    """A value as inline TOML."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return "'''" + value + "'''" if "'" not in value else '"' + _escaped(value) + '"'
        case list():
            return f"[{', '.join(map(_toml, value))}]"
        case dict():
            return "{" + ", ".join(f'"{key}" = {_toml(one)}' for key, one in value.items()) + "}"
        case int() | float():
            return repr(value)
    return _toml(value.canonical)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


@EACH
def test_what_help_says_is_a_sentence(option: Option) -> None:
    assert option.help.endswith(".")
    assert option.shown_metavar or option.form.use is Use.SWITCH


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("0", "'--good-enough': 0.0 is not in the range 0<x<1"),
        ("100%", "'--good-enough': 1.0 is not in the range 0<x<1"),
        ("nan", "--good-enough: 'nan' is not a fraction"),
        ("5", "--good-enough: 5 is no fraction below 1"),
        ("5", "5%, which is 0.05?"),
    ],
)
def test_a_fraction_out_of_range_names_its_flag(
    written: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", "sim:ssd-sata", "--good-enough", written]) == ExitCode.USAGE
    assert said in capsys.readouterr().err


def test_one_seed_of_torture_is_not_many(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kernel", "torture", "stock", "--seed", "3", "--seeds", "10"]) == ExitCode.USAGE
    assert "--seed cannot be combined with --seeds" in capsys.readouterr().err


def test_a_module_s_name_on_a_model_says_where_modules_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "sim:ssd-sata", "-s", "kyber,kyber@copy"]) == ExitCode.USAGE
    assert "a module (kyber@copy) needs a disk of this machine" in capsys.readouterr().err.replace("\n", " ")
