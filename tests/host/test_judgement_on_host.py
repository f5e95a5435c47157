"""The questions of a judgement on a loop device: two stock schedulers stand for original and change."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from jsonschema import Draft202012Validator

from blklab.cli import run
from blklab.errors import ExitCode, RefusedError, UsageError
from blklab.labs.judgement.answers import JudgementAnswer
from blklab.labs.judgement.host_document import HostJudgementDocument
from blklab.labs.judgement.on_host import HostJudgement, host_page, judge_on_host
from blklab.labs.judgement.questions import JudgementQuestion
from blklab.spec.schedulers import parse_scheduler_choices

SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "schema" / "host-judgement-1.json"


def judged(outcomes: Sequence[str], placebo: str | None = "same") -> HostJudgement:
    question = JudgementQuestion("loop:1g", "kyber", "streams")

    def answer(outcome: str) -> JudgementAnswer:
        return JudgementAnswer(question, "stream", "iops", outcome, 0.5, (0.4, 0.6), 8)  # type: ignore[arg-type]

    found = tuple(answer(outcome) for outcome in outcomes)
    copies = () if placebo is None else (answer(placebo),)
    return HostJudgement("loop:1g", "kyber", "kyber@mine", 10**9, 8, ("streams",), found, copies)


class Observer:
    """Notes the progress."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def progressed(self, _what: str, done: int, expected: int) -> None:
        self.seen.append((done, expected))


@pytest.mark.root
def test_questions_are_asked_on_a_loop_device(disk_folder: Path) -> None:
    observer = Observer()
    arms = parse_scheduler_choices("kyber,mq-deadline,kyber:read_lat_nsec=2000000")
    loads = ("random-readers", "log-and-batch")
    target = f"loop:512m,dir={disk_folder}"
    judgement = judge_on_host(target, arms, observer, loads, rounds=2, runtime_ns=200_000_000)
    assert observer.seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert judgement.asked == loads
    assert {(answer.question.load, answer.job) for answer in judgement.answers} == {
        ("random-readers", "reader"),
        ("log-and-batch", "log"),
        ("log-and-batch", "batch"),
    }
    assert judgement.placebo
    assert all(answer.rounds == 2 for answer in judgement.answers)
    assert "judged mq-deadline" in host_page(judgement)


def test_only_scratch_devices_and_loads_without_a_guest() -> None:
    arms = parse_scheduler_choices("kyber,mq-deadline")
    for target in ("/dev/vda", "/srv", "sim:nvme-tlc"):
        with pytest.raises(RefusedError, match="not a scratch device"):
            judge_on_host(target, arms, Observer())
    for load, reason in (("groups", "io.cost"), ("pipes", "virtual time")):
        with pytest.raises(UsageError, match=reason):
            judge_on_host("loop:1g", arms, Observer(), [load])


def test_a_copy_that_differs_withholds_the_verdict() -> None:
    assert judged(["slower"], "slower").withheld
    assert host_page(judged(["slower"], "slower")).startswith("No verdict: an unchanged copy differs")
    assert not judged(["slower"]).withheld and judged(["slower"]).worse
    assert host_page(judged(["slower"])).startswith("Slower for somebody")


@pytest.mark.parametrize(
    ("judgement", "outcome"),
    [
        (judged(["slower"], "faster"), "withheld"),
        (judged(["slower", "broken"]), "broken"),
        (judged(["slower", "faster"]), "mixed"),
        (judged(["same", "faster"]), "faster"),
        (judged(["same", "undecided"], None), "undecided"),
        (judged(["same"], None), "same"),
    ],
)
def test_the_document_satisfies_its_schema(judgement: HostJudgement, outcome: str) -> None:
    document = HostJudgementDocument.of(judgement, release="6.12.95", build="0" * 64)
    plain = json.loads(document.model_dump_json(by_alias=True))
    validator = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    validator.validate(plain)
    assert plain["outcome"] == outcome
    assert len(plain["placebo"]) == len(judgement.placebo)
    plain["outcome"] = "certain"
    assert not validator.is_valid(plain)


def test_the_command_writes_the_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = SimpleNamespace(is_new=False, scheduler="kyber", changes="patched", sha256="a" * 64)
    module, gated = SimpleNamespace(record=record), list[object]()
    place = "blklab.cli.judge_module"
    monkeypatch.setattr(f"{place}.find_module", lambda _: module)
    monkeypatch.setattr(f"{place}.find_arms", lambda _: SimpleNamespace(modules=(module,)))
    monkeypatch.setattr(f"{place}.require_root", lambda *_, **__: None)
    monkeypatch.setattr(f"{place}.build_copies", lambda *_: None)
    monkeypatch.setattr(f"{place}.gate_module", lambda one, *_, **__: gated.append(one))
    monkeypatch.setattr(f"{place}.judge_on_host", lambda *_: judged(["slower"]))
    assert run(["kernel", "judge", "--module", "mine", "--json", "-", "--quiet"]) == ExitCode.SLOWER
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["outcome"]) == ("blklab.host-judgement/1", "slower")
    assert document["build"] == "a" * 64 and gated == [module]
    file = tmp_path / "judgement.json"
    assert run(["kernel", "judge", "--module", "mine", "--no-gate", "--json", str(file)]) == ExitCode.SLOWER
    assert json.loads(file.read_text(encoding="utf-8")) == document
    assert capsys.readouterr().out.startswith("Slower for somebody")
    assert gated == [module]


def test_the_command_refuses_what_is_for_guests(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["kernel", "judge", "--module", "mine", "--disk", "ssd-sata"]) == ExitCode.USAGE
    assert "--disk is for guests" in capsys.readouterr().err
    assert run(["kernel", "judge", "--module", "mine", "--junit", "judgement.xml"]) == ExitCode.USAGE
    assert "--junit is for guests" in capsys.readouterr().err
    assert run(["kernel", "judge", "--kernel", "stock,mine", "--on", "loop:1g"]) == ExitCode.USAGE
    assert "--on names the device for a module" in capsys.readouterr().err
    assert run(["kernel", "judge", "--module", "no-such"]) == ExitCode.USAGE
    assert "there is no module no-such" in capsys.readouterr().err
    new = SimpleNamespace(record=SimpleNamespace(is_new=True, scheduler="adios"))
    monkeypatch.setattr("blklab.cli.judge_module.find_module", lambda _: new)
    assert run(["kernel", "judge", "--module", "adios2"]) == ExitCode.REFUSED
    assert "a scheduler of its own" in capsys.readouterr().err
