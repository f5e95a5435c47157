"""Planned changes in the simulator, from the program's side: samples, phases, refusals, reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from blklab.backends.protocol import SessionOptions
from blklab.backends.sim import BACKEND
from blklab.cli import command_line
from blklab.errors import SchedulerUnavailableError, SpecError, TunableError, UnknownNameError, UsageError
from blklab.records.samples import JobSample, RunSample
from blklab.spec.changes import parse_changes
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import parse_scheduler_choices
from blklab.spec.targets import parse_target
from blklab.spec.workloads import parse_workload
from plain_simulation import simulate

JOBS = (
    "; focus: a\n"
    "[global]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=4\ntime_based\nruntime=2s\nsize=1g\n"
    "[a]\ncgroup=a\n[b]\ncgroup=b\n"
)
S = 1_000_000_000


def _check_and_run(
    changes: Sequence[str], scheduler: str = "bfq", jobs: str = JOBS, **options: object
) -> RunSample:
    choices = parse_scheduler_choices(scheduler)
    workload = parse_workload(jobs, name="jobs", source="jobs.fio")
    key = CellKey(block=0, sequence=0, position=0, workload="jobs", scheduler=choices[0].label, seed=7)
    given = {"run_id": "test", "changes": parse_changes(changes)} | options
    with BACKEND.open(parse_target("sim:hdd-7200"), SessionOptions.model_validate(given)) as session:
        session.check(choices, [workload])
        return session.run(Cell(key, choices[0], workload))


def _ios(jobs: Sequence[JobSample]) -> dict[str, int]:
    return {job.name: sum(entry.ios for entry in job.directions) for job in jobs}


def test_a_sample_has_the_changes_and_the_phases_between_them() -> None:
    changes = [
        "500ms a: io.bfq.weight=700",
        "1s nr_requests=8",
        "1s a: ionice=idle",
        "1500ms scheduler=kyber",
    ]
    sample = _check_and_run(changes, arrangement="fixed")
    assert sample.status == "ok", sample.error
    assert [made.change for made in sample.changes] == changes
    weight, depth, priority, switch = sample.changes
    assert (weight.made_ns, priority.made_ns) == (S // 2, S)
    assert depth.made_ns >= S + 28_000_000
    assert switch.made_ns >= 3 * S // 2 + 28_000_000
    edges = [(phase.from_ns, phase.to_ns) for phase in sample.phases]
    assert edges == [(1, S // 2), (S // 2, S), (S, 3 * S // 2), (3 * S // 2, 2 * S)]
    total = _ios(sample.jobs)
    assert sum(_ios(phase.jobs)["a"] for phase in sample.phases) >= 0.98 * total["a"]
    for phase in sample.phases:
        # The windows count the focus only, and a last, shorter one is left out.
        assert 0 <= _ios(phase.jobs)["a"] - sum(phase.ios) <= 10
    assert {value for name, value in sample.settings.items() if name.endswith("/scheduler")} == {"bfq"}


def test_a_drawn_load_is_measured_once_all_its_processes_have_begun() -> None:
    sample = _check_and_run(
        ["1s nr_requests=8"], jobs=JOBS.replace("runtime=2s", "runtime=2s\nramp_time=300ms")
    )
    assert [(phase.from_ns, phase.to_ns) for phase in sample.phases] == [
        (321_000_000, S),
        (S, 2_300_000_000),
    ]


def test_the_same_seed_gives_the_same_run() -> None:
    varying = {"started_at", "elapsed_ns"}
    first, second = (_check_and_run(["700ms scheduler=none"]).model_dump(exclude=varying) for _ in range(2))
    assert first == second


def test_a_load_that_ends_too_early_fails_and_says_so() -> None:
    jobs = "[a]\nrw=randread\nbs=4k\ndirect=1\nsize=1m\nnumber_ios=5\nruntime=20s\n"
    sample = _check_and_run(["10s nr_requests=8"], jobs=jobs)
    assert sample.status == "failed"
    assert "before the change '10s nr_requests=8'" in str(sample.error)


@pytest.mark.parametrize(
    ("change", "schedulers", "error", "reason"),
    [
        ("1s nobody: ionice=idle", "bfq", UnknownNameError, "it has a, b"),
        ("1s lost: io.weight=3", "bfq", UnknownNameError, "no control group 'lost'"),
        ("2s nr_requests=8", "bfq", UsageError, "after the end"),
        ("1s slice_idle=0", "bfq,kyber", TunableError, "slice_idle"),
        ("1s scheduler=cfq", "bfq", SchedulerUnavailableError, "no kernel has both"),
        ("1s scheduler=bfq", "none:nr_requests=64", SpecError, "brings nr_requests"),
        ("1s ioband=3", "bfq", TunableError, "ioband"),
    ],
)
def test_what_cannot_come_about_is_refused_before_the_first_run(
    change: str, schedulers: str, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error) as caught:
        _check_and_run([change], schedulers)
    assert reason in f"{caught.value} {getattr(caught.value, 'hint', '')}"


def test_a_program_can_plan_changes_too() -> None:
    plain = simulate("hdd-7200", JOBS, scheduler="bfq:low_latency=0")
    changed = simulate("hdd-7200", JOBS, scheduler="bfq:low_latency=0", changes=["1s a: io.bfq.weight=900"])
    assert changed.changes_made_ns == [S]
    assert plain.changes_made_ns == []
    assert _ios(changed.jobs)["a"] > 1.2 * _ios(plain.jobs)["a"]
    late = simulate("hdd-7200", JOBS, scheduler="bfq:low_latency=0", changes=["3s nr_requests=9"])
    assert late.changes_made_ns == []
    assert late.jobs == plain.jobs


DESCRIPTION = """
target = "sim:hdd-7200"
workloads = ["jobs.fio"]
schedulers = ["bfq:low_latency=0", "mq-deadline"]
blocks = 3

[[change]]
at = "1s"
ionice = { a = "rt/2" }
queue = { nr_requests = 16 }
"""


def test_reports_show_what_happened_between_the_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.fio").write_text(JOBS)
    (tmp_path / "follow.toml").write_text(DESCRIPTION)
    store = ["--store", str(tmp_path / "runs.sqlite")]
    arguments = [
        "compare",
        "--spec",
        "follow.toml",
        "-q",
        "-v",
        "-v",
        "--html",
        "report.html",
        "--json",
        "out.json",
        *store,
    ]
    answer = CliRunner().invoke(command_line, arguments)
    assert answer.exit_code in (0, 3), answer.output
    assert "1s nr_requests=16; 1s a: ionice=rt/2" in " ".join(answer.output.split())
    assert "0 to 1.00 s" in answer.output
    page = (tmp_path / "report.html").read_text()
    assert 'data-chart="changes"' in page
    assert page.count('class="change"') == 2  # the wide drawing and the narrow one
    assert "--change &#39;1s a: ionice=rt/2&#39;" in page
    changes = json.loads((tmp_path / "out.json").read_text())["changes"]
    assert changes["planned"] == ["1s nr_requests=16", "1s a: ionice=rt/2"]
    assert [(part["number"], part["from_seconds"], part["to_seconds"]) for part in changes["phases"]] == [
        (0, 0.0, 1.0),
        (1, 1.0, None),
    ]
    for part in changes["phases"]:
        assert [(result["scheduler"], result["n"]) for result in part["results"]] == [
            ("bfq:low_latency=0", 3),
            ("mq-deadline", 3),
        ]


def test_a_single_run_shows_its_phases(tmp_path: Path) -> None:
    job = tmp_path / "jobs.fio"
    job.write_text(JOBS)
    arguments = ["run", "sim:hdd-7200", str(job), "--scheduler", "bfq", "--change", "1s a: io.bfq.weight=900"]
    answer = CliRunner().invoke(command_line, arguments)
    assert answer.exit_code == 0, answer.output
    assert "1s a: io.bfq.weight=900" in answer.output
    planned = CliRunner().invoke(command_line, [*arguments, "--dry-run"])
    assert "--change '1s a: io.bfq.weight=900'" in planned.output
