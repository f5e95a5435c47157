"""The public names of `blklab`: signatures, defaults, words, progress and mistakes."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import blklab
from blklab.cli import run as run_command_line
from blklab.experiment.blocks import Progress
from blklab.records.store import Store
from blklab.report.text.answer import answer_of
from blklab.spec.argument_words import in_arguments
from blklab.spec.arguments import checked
from blklab.spec.experiment import OPTIONS
from blklab.spec.machines import load_machine
from blklab.spec.options import Option

MODEL = "sim:fixed,latency=2ms"
WORK: dict[str, Any] = {"workloads": "random-read-4k-qd1", "runtime": "100ms", "blocks": 2}
SHORT: dict[str, Any] = {"schedulers": "none,mq-deadline", **WORK}
OTHER_WORDS = {"change": "changes", "machine": "costs", "guest_file": "guest_files", "targets": "target"}
OF_PROGRAMS = {"store", "cluster", "progress", "callback", "gate"}


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    return {name: one.default for name, one in inspect.signature(function).parameters.items()}


def in_fresh_interpreter(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_public_names_show() -> None:
    shown = {name for name in dir(blklab) if not name.startswith("_")}
    assert shown == set(blklab.__all__) - {"__version__"}
    assert {"compare", "simulate", "load", "schedulers", "BlklabError"} <= shown
    for name in blklab.__all__:
        assert getattr(blklab, name) is not None


def test_importing_is_lazy() -> None:
    heavy = "[one for one in ('numpy', 'pydantic', 'rich', 'click', 'blklab._core') if one in sys.modules]"
    assert in_fresh_interpreter(f"import sys, blklab; dir(blklab); print({heavy})") == "[]"
    of_version = "['numpy', 'pydantic', 'scipy', 'blklab._core']"
    program = (
        "import sys; sys.argv = ['blklab', '--version']; from blklab.__main__ import main\n"
        "try: main()\n"
        f"except SystemExit: print([name for name in {of_version} if name in sys.modules])"
    )
    assert in_fresh_interpreter(program).endswith("[]")


def test_compare_has_every_option_of_the_command_with_its_default() -> None:
    given = defaults(blklab.compare)
    tables = {option.table for option in OPTIONS if option.table and "compare" in option.commands}
    options = {
        OTHER_WORDS.get(option.name, option.name): option
        for option in OPTIONS
        if "compare" in option.commands and not option.table
    }
    assert given.keys() == options.keys() | tables | OF_PROGRAMS
    for name, option in options.items():
        if name != "target":
            assert given[name] == (option.default or given[name]), name
            assert bool(given[name]) == bool(option.default), name
    assert given["margin"] == 0.02


def test_compare_and_simulate_share_words_and_defaults() -> None:
    comparing, simulating = defaults(blklab.compare), defaults(blklab.simulate)
    shared = comparing.keys() & simulating.keys()
    assert shared >= {"target", "queue", "cgroups", "changes", "costs", "seed", "arrangement", "runtime"}
    assert {name: comparing[name] for name in shared} == {name: simulating[name] for name in shared}
    assert defaults(blklab.SimulationRequest) == simulating
    # Those that only one has are not two words for one thing.
    assert simulating.keys() - shared == {
        "workload",
        "scheduler",
        "tunables",
        "parameters",
        "timeline",
        "max_events",
        "max_simulated_ns",
        "max_timeline_bytes",
    }


def test_a_simulation_is_the_command_s_run(capsys: pytest.CaptureFixture[str]) -> None:
    result = blklab.simulate(
        "sim:hdd-7200",
        "mixed-70-30",
        scheduler="bfq:slice_idle=0",
        queue="nr_requests=32",
        runtime="300ms",
        seed=9,
    )
    command = (
        "run sim:hdd-7200 mixed-70-30 --scheduler bfq --tunable slice_idle=0 --queue nr_requests=32 "
        "--runtime 300ms --seed 9 --json -"
    )
    assert run_command_line(command.split()) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["engine"] == json.loads(json.dumps(result.engine))
    assert [job["ios"] for job in printed["jobs"]] == [
        sum(entry.ios for entry in job.directions) for job in result.jobs
    ]


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        ({"queue": "nr_requests=16"}, {"queue": {"nr_requests": 16}}),
        ({"cgroups": "/:io.cost.qos=enable=1"}, {"cgroups": {"/": {"io.cost.qos": "enable=1"}}}),
        ({"changes": "50ms nr_requests=9"}, {"changes": [{"at": "50ms", "queue": {"nr_requests": 9}}]}),
        ({"costs": "zero-cpu-time"}, {"costs": load_machine("zero-cpu-time")}),
        ({"margin": "5%", "confidence": "90%"}, {"margin": 0.05, "confidence": 0.9}),
        ({"schedulers": "none,mq-deadline"}, {"schedulers": ("none", "mq-deadline")}),
    ],
    ids=lambda given: next(iter(given)),
)
def test_texts_and_values_mean_the_same(texts: dict[str, Any], values: dict[str, Any]) -> None:
    first, second = (blklab.compare(MODEL, **{**SHORT, **given}).record for given in (texts, values))
    # The machine is the same but for its load, which other programs make.
    unlike: Any = {"run_id": True, "created_at": True, "samples": True, "machine": {"details": {"load"}}}
    assert first.model_dump(exclude=unlike) == second.model_dump(exclude=unlike)
    assert [one.jobs for one in first.samples] == [one.jobs for one in second.samples]


def test_the_answer_is_at_hand() -> None:
    record = blklab.compare(
        "sim:hdd-7200", schedulers="none,bfq", workloads="many-readers", runtime="1s", blocks=3
    )
    assert record.best == "bfq"
    assert record.verdict.status == "best"
    assert record.verdict is record.document.verdict
    assert record.regret["bfq"] == 0
    assert (record.regret["none"] or 0) > 0.5
    two_alike = blklab.compare(MODEL, **{**SHORT, "blocks": 1})
    assert two_alike.best is None
    assert two_alike.verdict.status == "undecided"


def test_an_answer_is_read_as_the_report_says_it() -> None:
    comparison = blklab.compare("sim:hdd-7200", schedulers="none,bfq", workloads="many-readers", blocks=3)
    sentence = answer_of(comparison.document).sentence
    assert str(comparison.verdict) == sentence
    assert repr(comparison.verdict) == f"<Verdict: {sentence}>"
    assert sentence in str(comparison), "the text report says the same"
    assert comparison.verdict.model_dump() == comparison.document.verdict.model_dump()
    lines = repr(comparison.regret).splitlines()
    assert lines == str(comparison.regret).splitlines()
    assert lines[0] == "With bfq, no other is better (95 %)"
    assert lines[1].startswith("With `none`, no other is more than ")
    assert comparison.regret["bfq"] == 0


def test_a_bound_that_is_not_known_is_said_to_be_so() -> None:
    comparison = blklab.compare(MODEL, schedulers="none,kyber", workloads="random-read-4k-qd1", blocks=1)
    assert set(comparison.regret.values()) == {None}
    assert repr(comparison.regret).count("the most that is lost is not known yet") == 2


def test_a_callback_sees_each_run_and_can_end_the_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Progress] = []
    blklab.compare(MODEL, **SHORT, callback=seen.append)
    assert [progress.runs_done for progress in seen] == [0, 1, 2, 3]
    assert capsys.readouterr().err == ""

    def end(progress: Progress) -> None:
        if progress.runs_done == 2:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        blklab.compare(MODEL, **SHORT, callback=end)
    kept = blklab.load()
    assert kept.record.state == "failed"
    assert len(kept.record.samples) == 2


def test_progress_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    comparison = blklab.compare(MODEL, **SHORT, progress=True)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert comparison.record.run_id in printed.err
    assert "2 schedulers" in printed.err


def test_a_verdict_is_listed_with_the_run() -> None:
    run_id = blklab.compare(MODEL, **SHORT).record.run_id
    with Store.opened(None) as store:
        assert next(one for one in store.list_runs() if one.run_id == run_id).verdict


MISTAKES: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], str]] = [
    (blklab.simulate, ("hdd-7200", "many-readers"), {"machine": "zero-cpu-time"}, "did you mean costs"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"processors": None}, "did you mean costs"),
    (blklab.simulate, ("hdd-7200",), {"jobs": "many-readers"}, "did you mean workload"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"runtime": 1}, "'2s'"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"runtime": "0s"}, "help"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"queue": ["nr_requests"]}, "nr_requests=64"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"queue": [1]}, "nr_requests=64"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"queue": {1: 2}}, "nr_requests"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"queue": {"nr_requests": None}}, "nr_requests"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"tunables": 5}, "slice_idle=0"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"scheduler": ["bfq"]}, "bfq:slice_idle=0"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"scheduler": "bqf"}, "bfq"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"changes": "10s "}, "ionice"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"changes": 7}, "nr_requests=32"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"changes": [7]}, "nr_requests=32"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"changes": [{"att": "1s"}]}, "'at'"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"cgroups": {"batch": 7}}, "io.weight"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"seed": "1"}, "seed=1"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"seed": -1}, "seed=1"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"timeline": 1}, "timeline=True"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"max_events": 0}, "max_events=1"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"arrangement": "fix"}, "did you mean fixed"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"costs": "ordinry"}, "ordinary"),
    (blklab.simulate, ("hdd-7200", "many-readers"), {"costs": {}}, "zero-cpu-time"),
    (blklab.simulate, ("hdd-7200", ["many-readers"]), {}, "many-readers"),
    (blklab.simulate, ("hdd-7200", {"a": 5}), {}, "rw"),
    (blklab.simulate, (7, "many-readers"), {}, "hdd-7200"),
    (blklab.simulate, ("hdd-7200",), {}, "help"),
    (blklab.simulate, ("hdd-7200", "many-readers", "bfq"), {}, "help"),
    (blklab.simulate_many, ("hdd-7200",), {}, "SimulationRequest"),
    (blklab.simulate_many, (["hdd-7200"],), {}, "SimulationRequest"),
    (blklab.simulate_many, (5,), {}, "SimulationRequest"),
    (blklab.simulate_many, ([],), {"workers": 0}, "workers=1"),
    (blklab.SimulationRequest, ("hdd-7200",), {}, "help"),
    (blklab.SimulationRequest, ("hdd-7200", "many-readers"), {"device": 1}, "did you mean target"),
    (blklab.compare, (), {}, "help"),
    (blklab.compare, (7,), {}, "sim:hdd-7200"),
    (blklab.compare, (MODEL,), {"scheduler": ["none"]}, "did you mean schedulers"),
    (blklab.compare, (MODEL,), {"workload": "many-readers"}, "did you mean workloads"),
    (blklab.compare, (MODEL,), {"buget": "1m"}, "did you mean budget"),
    (blklab.compare, (MODEL,), {"machine": "ordinary"}, "did you mean costs"),
    (blklab.compare, (MODEL,), {"schedulers": 5}, "bfq:slice_idle=0"),
    (blklab.compare, (MODEL,), {"schedulers": ["none", "mq-dedline"]}, "mq-deadline"),
    (blklab.compare, (MODEL,), {"workloads": {"a": {}}}, "mine.fio"),
    (blklab.compare, (MODEL,), {"workloads": "nothing"}, "blklab workloads"),
    (blklab.compare, (MODEL,), {"budget": 600}, "10m"),
    (blklab.compare, (MODEL,), {"budget": "10x"}, "90s"),
    (blklab.compare, (MODEL,), {"blocks": "many"}, "experiments.md"),
    (blklab.compare, (MODEL,), {"blocks": 3, "budget": "1m"}, "blocks fixes"),
    (blklab.compare, (MODEL,), {"margin": 5}, "5%"),
    (blklab.compare, (MODEL,), {"margin": "a bit"}, "5%"),
    (blklab.compare, (MODEL,), {"goal": 3}, "experiments.md"),
    (blklab.compare, (MODEL,), {"guest": {"memori": 1}}, "memory"),
    (blklab.compare, (MODEL,), {"order": "random"}, "experiments.md"),
    (blklab.compare, (MODEL,), {"filesystem": "ext4"}, "did you mean guest={'filesystem': …}"),
    (blklab.compare, (MODEL,), {"schedulers": "none"}, "name them with schedulers"),
    (blklab.compare, (MODEL,), {"kernels": "mine"}, "leave out kernels and"),
    (blklab.compare, (MODEL,), {"space": "1g"}, "give commands=COMMAND"),
    (blklab.compare, (MODEL,), {"sweeps": "bfq:slice_idl=0,2"}, "did you mean slice_idle"),
    (blklab.compare, (MODEL,), {"changes": "90s nr_requests=2", **SHORT}, "give a longer runtime"),
    (blklab.compare, ("sim:ssd-sata",), {"goal": {"latency_p9": 1}, **SHORT}, "did you mean latency_p99"),
    (blklab.compare, (MODEL,), {"progress": "yes"}, "progress=True"),
    (blklab.compare, (MODEL,), {"callback": 3}, "callback=print"),
    (blklab.compare, (MODEL,), {"store": 3}, "runs.db"),
    (blklab.load, (5,), {}, "latest"),
    (blklab.load, (), {"name": "latest"}, "it takes"),
    (blklab.schedulers.register, (5, lambda queue: queue), {}, "'mine'"),
    (blklab.schedulers.register, ("mine", 5), {}, "class"),
]


@pytest.mark.parametrize(
    ("function", "arguments", "given", "hint"),
    MISTAKES,
    # By number: the texts of some values have addresses, and workers must agree on the names.
    ids=[str(number) for number in range(len(MISTAKES))],
)
def test_a_wrong_argument_is_answered(
    function: Callable[..., Any], arguments: tuple[Any, ...], given: dict[str, Any], hint: str
) -> None:
    with pytest.raises(blklab.BlklabError) as raised:
        function(*arguments, **given)
    assert hint in (raised.value.hint or ""), raised.value
    in_words = re.sub(r"`[^`]*`", "", f"{raised.value} {raised.value.hint}")
    assert "--" not in in_words, "flags are the command line's"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"memry": 1}, "parameters: memry: no such option; did you mean memory?"),
        ({"memory": "x"}, "parameters: memory = "),
    ],
)
def test_a_wrong_parameter_is_named_by_its_argument(given: dict[str, Any], said: str) -> None:
    with pytest.raises(blklab.BlklabError) as one:
        blklab.simulate("hdd-7200", "many-readers", parameters=given)
    request = blklab.SimulationRequest("hdd-7200", "many-readers", parameters=given)
    with pytest.raises(blklab.BlklabError) as many:
        blklab.simulate_many([request])
    assert str(one.value) == one.value.message == str(many.value)
    assert str(one.value).startswith(said)


@pytest.mark.parametrize(
    "option", [one for one in OPTIONS if "compare" in one.commands], ids=lambda one: one.key
)
def test_errors_name_arguments_in_place_of_flags(option: Option) -> None:
    if option.positional:
        return
    known = list(inspect.signature(blklab.compare).parameters)
    said = in_arguments(
        f"leave {option.flag} out, `blklab run {option.flag} 5`; give {option.flag} NAME", known
    )
    assert said.count(option.flag) == 1, "a shell command keeps it"
    named = OTHER_WORDS.get(option.name, option.name)
    assert (f"{{'{option.name}': NAME}}" if option.table == "guest" else f"{named}=NAME") in said


def test_the_word_after_a_flag_is_its_value_or_the_sentence_goes_on() -> None:
    known = list(inspect.signature(blklab.compare).parameters)
    said = in_arguments(
        "--runtime sets another length; --time host, --memory 256m or --command 'make -j2'", known
    )
    assert said == (
        "runtime sets another length; guest={'time': 'host'}, guest={'memory': '256m'} or commands='make -j2'"
    )


def test_checked_keeps_the_signature_and_other_errors() -> None:
    @checked
    def divide(first: int, second: int = 2) -> float:
        """Divides."""
        return first / second

    assert divide(4) == 2
    assert str(inspect.signature(divide)) == "(first: 'int', second: 'int' = 2) -> 'float'"
    assert divide.__doc__ == "Divides."
    with pytest.raises(ZeroDivisionError):
        divide(1, 0)


def test_the_reference_names_every_public_name() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/reference/python.md").read_text("utf-8")
    for name in set(blklab.__all__) - {"__version__"}:
        assert f"`{name}" in page, name
