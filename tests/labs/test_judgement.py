"""Judgements: from pairs of runs to answers, and to a page and a document that repeat."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from blklab.cli import run
from blklab.errors import ExitCode, RunFailedError
from blklab.guests.kernels.build_record import BuildRecord, PatchRecord
from blklab.guests.kernels.kernel_build import SCHEDULER_OPTIONS, KernelBuild
from blklab.labs.judgement.answers import JudgementAnswer, answers_to, require_answer, settled
from blklab.labs.judgement.document import JudgementDocument, outcome_of
from blklab.labs.judgement.judge import Judgement
from blklab.labs.judgement.junit import judgement_suite
from blklab.labs.judgement.loads import LOADS
from blklab.labs.judgement.page import page_of
from blklab.labs.judgement.questions import BESIDE_ON, SCHEDULERS, JudgementQuestion, Scope
from blklab.records.samples import DirectionSample, JobSample, LatencyHistogram, RunSample
from blklab.report.monitoring.junit import junit_xml
from blklab.spec.changes import parse_changes
from blklab.spec.plan import CellKey
from blklab.spec.workloads import parse_workload
from plain_simulation import simulate

QUESTION = JudgementQuestion("hdd-7200", "bfq", "streams")
OTHER_QUESTION = JudgementQuestion("hdd-7200", "kyber", "streams")
NS_PER_SECOND = 1_000_000_000
NO_IOS = {"count": 0, "sum_ns": 0, "min_ns": 0, "max_ns": 0, "bins": {}}


def sample(ios: float, *, status: str = "ok") -> RunSample:
    """A run of one reader at depth 1 that makes so many I/Os in a second."""
    count = round(ios)
    latency_ns = NS_PER_SECOND // count
    latency = LatencyHistogram(
        count=count, sum_ns=count * latency_ns, min_ns=latency_ns, max_ns=latency_ns, bins={latency_ns: count}
    )
    read = DirectionSample(
        direction="read", ios=count, bytes=count * 4096, runtime_ns=NS_PER_SECOND, latency=latency
    )
    key = CellKey(block=0, sequence=0, position=0, workload="streams", scheduler="bfq", seed=1)
    jobs = [JobSample(name="reader", clones=1, runtime_ns=NS_PER_SECOND, directions=[read])]
    failed = status != "ok"
    return RunSample.model_validate(
        {
            "cell": key,
            "started_at": "",
            "elapsed_ns": 1,
            "status": status,
            "error": "the guest's kernel panicked" if failed else None,
            "jobs": [] if failed else jobs,
        }
    )


def pairs(effect: float, seed: int = 1, rounds: int = 8) -> list[tuple[RunSample, RunSample]]:
    """Runs whose speed differs between arrangements by 5 %, and between kernels by an effect and 0.5 %."""
    drawn = random.Random(seed)  # noqa: S311 - not for secrets
    found = []
    for _ in range(rounds):
        level = 10_000 * drawn.gauss(1, 0.05)
        found.append((sample(level), sample(level * effect * drawn.gauss(1, 0.005))))
    return found


def of_iops(answers: list[JudgementAnswer]) -> JudgementAnswer:
    (found,) = [answer for answer in answers if answer.metric == "iops"]
    return found


@pytest.mark.parametrize(("effect", "outcome"), [(1.2, "faster"), (0.8, "slower"), (1.0, "same")])
def test_an_effect_is_found_with_its_size(effect: float, outcome: str) -> None:
    found = of_iops(answers_to({QUESTION: pairs(effect)}))
    assert found.outcome == outcome
    assert found.interval is not None
    low, high = found.interval
    assert low < effect < high and high / low < 1.02


def test_a_lower_latency_is_faster() -> None:
    answers = answers_to({QUESTION: pairs(1.2)})
    assert {answer.metric for answer in answers} == {"iops", "latency_mean", "latency_p99"}
    assert {answer.outcome for answer in answers} == {"faster"}


def test_equal_bits_need_no_answer() -> None:
    runs = [(sample(1000), sample(1000)), (sample(1100), sample(1100))]
    assert answers_to({QUESTION: runs}) == []


def test_a_kernel_that_fails_is_broken_and_others_are_still_answered() -> None:
    failing = [(sample(1000), sample(1000, status="failed"))]
    answers = answers_to({QUESTION: failing, OTHER_QUESTION: pairs(0.8)})
    (broken,) = [answer for answer in answers if answer.question == QUESTION]
    assert (broken.outcome, broken.error) == ("broken", "the guest's kernel panicked")
    assert of_iops([answer for answer in answers if answer.question == OTHER_QUESTION]).outcome == "slower"


def test_runs_that_both_fail_say_nothing() -> None:
    failed = sample(1000, status="failed")
    with pytest.raises(RunFailedError, match="hdd-7200/bfq/streams: the guest's kernel panicked") as error:
        require_answer(QUESTION, failed, failed, kernel="mine")
    assert error.value.hint is not None
    assert "--kernel mine" in error.value.hint
    for one, other in ((sample(1000), failed), (failed, sample(1000)), (sample(1000), sample(1000))):
        require_answer(QUESTION, one, other, kernel="mine")


def test_chance_alone_is_rarely_taken_for_a_difference() -> None:
    """A hundred neutral changes that move every bit, each with ten questions: 5 % at most may be wrong."""
    wrong = 0
    for change in range(100):
        runs = {
            JudgementQuestion("hdd-7200", "bfq", f"load {number}"): pairs(1.0, seed=1000 * change + number)
            for number in range(10)
        }
        wrong += any(answer.outcome in ("faster", "slower") for answer in answers_to(runs))
    assert wrong <= 5


def with_one_otherwise(rounds: int) -> list[tuple[RunSample, RunSample]]:
    """An effect of 20 % in all arrangements but one, which goes the other way."""
    found = pairs(1.2, rounds=rounds)
    return [(sample(10_000), sample(6_000)), *found[1:]]


def test_more_arrangements_decide_what_one_that_goes_otherwise_hides() -> None:
    first = answers_to({QUESTION: with_one_otherwise(8)}, level=0.025)
    assert of_iops(first).is_open
    second = answers_to({QUESTION: with_one_otherwise(16)}, level=0.025)
    assert of_iops(settled(first, second)).outcome == "faster"


def test_a_second_look_does_not_take_back_what_the_first_decided() -> None:
    first = answers_to({QUESTION: pairs(0.8)})
    second = answers_to({QUESTION: with_one_otherwise(8)})
    assert settled(first, second) == first


def test_a_job_that_starves_is_slower() -> None:
    """It has no latency, and a rate of nothing must not drop out of the comparison."""
    starved = sample(1).model_copy(deep=True)
    (read,) = starved.jobs[0].directions
    nothing = read.model_copy(
        update={"ios": 0, "bytes": 0, "latency": LatencyHistogram.model_validate(NO_IOS)}
    )
    jobs = [starved.jobs[0].model_copy(update={"directions": [nothing]})]
    runs = [(sample(20), starved.model_copy(update={"jobs": jobs})) for _ in range(8)]
    (answer,) = answers_to({QUESTION: runs})
    assert (answer.metric, answer.outcome) == ("iops", "slower")
    assert answer.speed == pytest.approx(0.5 / 20)


def test_questions_are_valid_and_distinct() -> None:
    asked = [question for asked in Scope().questions(SCHEDULERS).values() for question in asked]
    assert len(set(asked)) == len(asked)
    assert {question.load for question in asked} == set(LOADS)
    for question in asked:
        load = LOADS[question.load]
        workload = parse_workload(load.text(question.disk), name=question.load, source="load.fio")
        assert workload.jobs and not workload.host_only and not workload.warnings
        for change in parse_changes(load.changes_on(question.disk)):
            assert change.at_ns < load.runtime_ns(question.disk)


def test_bfq_is_asked_about_in_both_modes_where_idling_counts() -> None:
    asked = Scope(schedulers=("bfq",), loads=("streams",)).questions(SCHEDULERS)
    for disk, questions in asked.items():
        modes = ["bfq", "bfq:low_latency=0"] if disk == BESIDE_ON else ["bfq"]
        assert [question.scheduler for question in questions] == modes


@pytest.mark.parametrize(
    ("load", "waiting", "ios"), [("pipes", "consumer0", 600), ("cooperators", "journal", 100)]
)
def test_jobs_that_wait_for_each_other_come_to_their_end(load: str, waiting: str, ios: int) -> None:
    result = simulate("ssd-sata", LOADS[load].text("ssd-sata"), scheduler="none", runtime="80ms")
    (job,) = [job for job in result.jobs if job.name == waiting]
    assert sum(entry.ios for entry in job.directions) == ios


def test_a_scope_narrows_the_questions_and_changes_none() -> None:
    every = Scope().questions(SCHEDULERS)
    narrow = Scope(disks=("ssd-sata",), schedulers=("bfq", "kyber"), loads=("mixed", "streams"))
    asked = narrow.questions(SCHEDULERS)
    assert list(asked) == ["ssd-sata"] and len(asked["ssd-sata"]) == 4
    assert set(asked["ssd-sata"]) < set(every["ssd-sata"])
    assert narrow.questions(("none", "mq-deadline")) == {"ssd-sata": []}


@pytest.fixture
def judgement_of(tmp_path: Path) -> Callable[..., Judgement]:
    (tmp_path / "config").write_text("".join(f"{option}=y\n" for option in SCHEDULER_OPTIONS.values()))

    def kernel(name: str, patches: tuple[PatchRecord, ...] = ()) -> KernelBuild:
        fields = dict.fromkeys(
            ("source", "source_sha256", "compiler", "tree_id", "linux_sha256", "built_at"), ""
        )
        numbers = {"recipe": 1, "compiled_files": 0, "build_seconds": 0}
        record = BuildRecord(
            build_id=name, version="6.1", source_kind="debian", patches=list(patches), fragments=[],
            missing_options=[],
            **fields, **numbers,
        )  # fmt: skip
        return KernelBuild(name, tmp_path, record)

    def judged(
        *effects: float, schedulers: tuple[str, ...] = (), patches: tuple[PatchRecord, ...] = ()
    ) -> Judgement:
        asked = Scope(schedulers=schedulers).questions(SCHEDULERS)["hdd-7200"]
        runs = {question: pairs(effect) for question, effect in zip(asked, effects, strict=False)}
        return Judgement(
            1, kernel("base"), kernel("other", patches), "ordinary", tuple(asked), tuple(answers_to(runs))
        )

    return judged


@pytest.fixture
def found(
    judgement_of: Callable[..., Judgement], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[float], None]:
    """Makes the command find a judgement with an effect, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def find(effect: float) -> None:
        monkeypatch.setattr("blklab.cli.judging.judge", lambda *_, **__: judgement_of(effect))

    return find


@pytest.mark.parametrize(("output", "said"), [(None, "next: --output FILE"), ("page.txt", "page: page.txt")])
def test_a_judgement_ends_with_its_page_or_the_way_to_one(
    output: str | None,
    said: str,
    found: Callable[[float], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    found(1.0)
    asked = ["kernel", "judge", "--kernel", "base,other", *(["--output", output] if output else [])]
    assert run(asked) == ExitCode.OK
    assert said in capsys.readouterr().err
    assert output is None or Path(output).exists()
    assert run([*asked, "-q"]) == ExitCode.OK
    assert said not in capsys.readouterr().err


def _patch(name: str, *files: str) -> PatchRecord:
    return PatchRecord(name=name, sha256=name, files=list(files))


KYBER = _patch("busy.patch", "block/kyber-iosched.c")
ELSEWHERE = _patch("merge.patch", "block/blk-merge.c")


def test_a_patch_of_a_scheduler_that_was_not_asked_about_is_named(
    judgement_of: Callable[..., Judgement],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    judged = judgement_of(schedulers=("mq-deadline",), patches=(ELSEWHERE, KYBER))
    monkeypatch.setattr("blklab.cli.judging.judge", lambda *_, **__: judged)
    asked = ["kernel", "judge", "--kernel", "base,other", "-s", "mq-deadline", "--disk", "hdd-7200"]
    assert run(asked) == ExitCode.OK
    said = capsys.readouterr()
    page = " ".join(said.out.split())
    assert "busy.patch changes kyber, which no question was about: ask with `--scheduler kyber`." in page
    assert max(map(len, said.out.splitlines()[1:])) <= 80, "the verdict itself is longer"
    command = "blklab kernel judge --kernel base,other --scheduler kyber --disk hdd-7200"
    assert said.err.rstrip().endswith(f"next: {command}")


def test_a_patch_whose_scheduler_was_asked_about_or_that_changes_none_is_not_named(
    judgement_of: Callable[..., Judgement],
) -> None:
    every = judgement_of(patches=(ELSEWHERE, KYBER))
    general = judgement_of(schedulers=("mq-deadline",), patches=(ELSEWHERE,))
    for judgement in (every, general):
        assert "no question was about" not in page_of(judgement)
    alike = judgement_of(schedulers=("mq-deadline",), patches=(KYBER,))
    assert not replace(alike, base=alike.other).not_asked, "both have the patch"


@pytest.mark.parametrize(
    ("effect", "given", "said"),
    [
        (1.0, ["--kernel", "base,other"], "next: blklab kernel torture other looks"),
        (
            1.0,
            ["--kernel", "base", "--patch", "a.patch"],
            "next: blklab kernel torture --patch a.patch looks",
        ),
        (1.0, ["--kernel", "base", "--source", "linux"], "next: blklab kernel torture --source linux looks"),
        (0.8, ["--kernel", "base,other"], "next: change it"),
    ],
)
def test_a_kept_page_is_followed_by_the_next_step(
    effect: float,
    given: list[str],
    said: str,
    found: Callable[[float], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found(effect)
    monkeypatch.setattr("blklab.cli.judging._kernels", lambda *_, **__: ("base", "other"))
    run(["kernel", "judge", *given, "-o", "page.txt"])
    assert capsys.readouterr().err.splitlines()[-1].startswith(said)


@pytest.mark.parametrize(
    ("effects", "outcome", "worse"),
    [
        ((), "identical", False),
        ((1.0,), "same", False),
        ((1.2, 1.0), "faster", False),
        ((0.8,), "slower", True),
        ((0.8, 1.2), "mixed", True),
    ],
)
def test_the_word_for_all_answers(
    effects: tuple[float, ...], outcome: str, worse: bool, judgement_of: Callable[..., Judgement]
) -> None:
    judgement = judgement_of(*effects)
    assert (outcome_of(judgement), judgement.worse) == (outcome, worse)
    assert judgement.identical == len(judgement.asked) - len(effects)
    assert JudgementDocument.of(judgement).outcome == outcome


def test_page_and_document_repeat_and_name_the_worst_first(judgement_of: Callable[..., Judgement]) -> None:
    page = page_of(judgement_of(1.2, 0.8))
    assert page == page_of(judgement_of(1.2, 0.8))
    assert page.startswith("Slower for some, faster for others.\n")
    assert page.index("Slower:\n") < page.index("Faster:\n")
    assert max(map(len, page.splitlines())) <= 80
    place = judgement_of(1.2, 0.8).answers[0].question
    assert f"\n  {place.disk}, {place.scheduler}\n" in page
    first, second = (JudgementDocument.of(judgement_of(1.2, 0.8)).model_dump_json() for _ in range(2))
    assert first == second


def test_a_speed_near_nothing_is_a_fraction(judgement_of: Callable[..., Judgement]) -> None:
    page = page_of(judgement_of(0.002))
    assert re.search(r" 1/[45]\d\d ", page)
    assert "e-0" not in page


def test_counts_of_questions_with_several_answers_do_not_look_like_a_sum(
    judgement_of: Callable[..., Judgement],
) -> None:
    apart = judgement_of(1.2, 0.8)
    asked = len(apart.asked)
    assert f"{asked} questions, {asked - 2} the same to the bit, slower in 1, faster in 1." in page_of(apart)
    first = apart.answers[0].question
    both = replace(apart, answers=tuple(replace(answer, question=first) for answer in apart.answers))
    assert (
        f"{asked} questions, {asked - 1} the same to the bit. "
        "Of the jobs in the other 1: some slower in 1, some faster in 1."
    ) in " ".join(page_of(both).split())


def test_junit_has_a_statement_for_each_question(judgement_of: Callable[..., Judgement]) -> None:
    judgement = judgement_of(1.2, 0.8)
    text = junit_xml([judgement_suite(judgement)])
    assert text == junit_xml([judgement_suite(judgement_of(1.2, 0.8))])
    (suite,) = ET.fromstring(text)  # noqa: S314 - our own
    assert (suite.get("tests"), suite.get("failures")) == (str(len(judgement.asked)), "1")
    (failed,) = (case for case in suite.iter("testcase") if case.find("failure") is not None)
    assert failed.get("name") == f"{judgement.asked[1]} is not slower"
    assert "slower: " in str(failed.find("failure").get("message"))  # type: ignore[union-attr]
