"""`blklab fleet` and `blklab runs compare` on made-up stored runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator

from blklab.cli import run
from blklab.errors import ExitCode
from blklab.records.experiment import ExperimentRecord
from blklab.records.store import Store
from blklab.testing.experiments import SchedulerBehaviour, make_experiment, make_spec
from fleet_records import make_fleet, on_drive

JOB = "[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=4\ntime_based\nruntime=100ms\n"
SCHEMAS = Path(__file__).parents[2] / "docs" / "reference" / "schema"


def _stored(tmp_path: Path, records: list[ExperimentRecord]) -> str:
    url = str(tmp_path / "runs.sqlite")
    with Store.opened(url) as store:
        for record in records:
            store.begin(record)
            store.add_samples(record.run_id, record.samples)
    return url


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Six solid-state drives on which bfq is better, and three others on which it is not."""
    other = [
        on_drive(record, number + 6, model="OTHER HDD", name="sda", run_id=f"20260105-0304-o{number:03d}")
        for number, record in enumerate(make_fleet({"none": 0.0, "bfq": -0.2}, drives=3))
    ]
    return _stored(tmp_path, [*make_fleet({"none": 0.0, "bfq": 0.15}), *other])


def _validated(text: str, schema: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    Draft202012Validator(json.loads((SCHEMAS / schema).read_text("utf-8"))).validate(document)
    return document


def test_a_class_has_a_verdict(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fleet", "--model", "EXAMPLE*", "--store", url]) == 0
    shown = capsys.readouterr().out
    assert "bfq is best for drives of model EXAMPLE*" in shown
    assert "On a new drive, bfq is not worse than any other by more than 2 % (95 %)." in shown
    assert "6 drives of 3 hosts, 6 experiments" in shown
    assert "host2: nvme0n1" in shown
    assert run(["fleet", "--kind", "scsi", "--no-rotational", "--store", url]) == 0
    assert "`none` is best for non-rotational scsi drives" in capsys.readouterr().out


def test_too_few_drives_are_named_as_the_reason(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    alone = _stored(folder, make_fleet({"none": 0.0, "bfq": 0.15}, drives=1))
    assert run(["fleet", "--model", "EXAMPLE*", "--store", alone]) == 0
    assert "1 drive cannot speak for a class: compare on 3 or more" in capsys.readouterr().out
    assert run(["fleet", "--model", "EXAMPLE*", "--store", url]) == 0
    assert "cannot speak" not in capsys.readouterr().out


def test_the_document_satisfies_its_schema(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fleet", "--model", "EXAMPLE*", "--store", url, "--json"]) == 0
    document = _validated(capsys.readouterr().out, "fleet-1.json")
    assert document["drive_class"] == {"model": "EXAMPLE*", "kind": None, "rotational": None}
    (pair,) = document["comparisons"]
    assert pair["n"] == len(pair["drives"]) == 6


def test_a_goal_decides(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rule = tmp_path / "x.rules"
    asked = ["fleet", "--model", "EXAMPLE*", "--store", url, "--goal", "iops=0.6,latency_p99=0.4"]
    assert run([*asked, "--udev-rule", str(rule)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "for the goal iops=0.6,latency_p99=0.4: bfq" in shown
    assert "goal iops=0.6,latency_p99=0.4 over random-read-4k-qd32" in shown
    assert "latency p99 alone:" in shown
    assert "Pareto front: none is dominated by bfq" in shown
    assert "# all workloads, goal, bfq against none: mean of 6 drives +" in rule.read_text("utf-8")
    assert run([*asked, "--json"]) == 0
    goal = _validated(capsys.readouterr().out, "fleet-1.json")["goal"]
    assert goal["weights"] == {"iops": 0.6, "latency_p99": 0.4}
    assert [one["metric"] for one in goal["dimension_comparisons"]] == ["iops", "latency_p99"]


def test_the_list_of_models_names_the_next_step(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fleet", "--store", url]) == 0
    assert "next: blklab fleet --model " in capsys.readouterr().out.splitlines()[-1]


def test_without_a_class_models_are_listed(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fleet", "--store", url]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "EXAMPLE SSD 1TB nvme no 6 3 6" in shown
    assert "OTHER HDD scsi no 3" in shown
    assert run(["fleet", "--store", url, "--json"]) == 0
    classes = json.loads(capsys.readouterr().out)["classes"]
    assert [(one["model"], one["drives"]) for one in classes] == [("EXAMPLE SSD 1TB", 6), ("OTHER HDD", 3)]


@pytest.fixture
def virtual_url(tmp_path: Path) -> str:
    """Three virtual disks that say they rotate, in one store with three others."""
    virtual = [
        on_drive(record, number + 9, model="virtio disk", name="vda", run_id=f"20260106-0304-v{number:03d}")
        for number, record in enumerate(make_fleet({"none": 0.0, "bfq": -0.2}, drives=3))
    ]
    for number, record in enumerate(virtual):
        disk = record.target.disks[0].model_copy(update={"rotational": True})
        target = record.target.model_copy(update={"disks": [disk]})
        virtual[number] = record.model_copy(update={"target": target})
    return _stored(tmp_path, [*make_fleet({"none": 0.0, "bfq": 0.15}, drives=3), *virtual])


def test_virtual_disks_that_say_they_rotate_are_no_rotational_drives(
    virtual_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fleet", "--store", virtual_url]) == 0
    assert "virtio disk virtio virtual disk 3" in " ".join(capsys.readouterr().out.split())
    assert run(["fleet", "--store", virtual_url, "--json"]) == 0
    rotational = {one["model"]: one["rotational"] for one in json.loads(capsys.readouterr().out)["classes"]}
    assert rotational == {"EXAMPLE SSD 1TB": False, "virtio disk": None}
    assert run(["fleet", "--rotational", "--store", virtual_url]) == ExitCode.USAGE
    said = " ".join(capsys.readouterr().err.split())
    assert "no stored run tested rotational drives" in said
    assert "virtual disks do not tell whether they rotate: --kind virtio" in said
    assert run(["fleet", "--kind", "virtio", "--store", virtual_url]) == 0
    assert "`none` is best for virtual virtio disks" in capsys.readouterr().out


def test_models_are_apart_from_drives(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], job: str
) -> None:
    for rpm in (5400, 7200):
        assert (
            run(["compare", f"sim:hdd-7200,rpm={rpm}", "-w", job, "--blocks", "2", "-q", "--store", url]) == 0
        )
    capsys.readouterr()
    assert run(["fleet", "--store", url]) == 0
    drives, models = capsys.readouterr().out.split("\n\n")
    assert "EXAMPLE SSD 1TB" in drives
    assert "rpm" not in drives
    assert models.startswith("modelled disks (--models)")
    assert run(["fleet", "--model", "*", "--store", url]) == 0
    mixed = " ".join(capsys.readouterr().out.split())
    assert "for drives of model *" in mixed
    assert "2 experiments left out (on models, which `--models` judges alone)" in mixed
    for options in (["--model", "*", "--models"], ["--rotational"]):
        assert run(["fleet", *options, "--store", url]) == 0
        alone = capsys.readouterr().out
        assert "modelled disks" in alone.splitlines()[1]
        assert "2 modelled disks, 2 experiments" in alone
        assert "left out (on models" not in alone


def test_the_list_of_runs_names_several_hosts(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "--store", url]) == 0
    shown = capsys.readouterr().out
    assert shown.split()[:3] == ["run", "host", "verdict"]
    assert "host2" in shown


def test_rule_and_profile_with_their_evidence(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule, profile = tmp_path / "x.rules", tmp_path / "mine" / "tuned.conf"
    profile.parent.mkdir()
    outputs = ["--udev-rule", str(rule), "--tuned-profile", str(profile)]
    assert run(["fleet", "--model", "EXAMPLE*", "--store", url, *outputs]) == 0
    for text in (rule.read_text("utf-8"), profile.read_text("utf-8")):
        assert "# Measured on 6 drives of 3 hosts, 6 experiments; 95 % intervals in brackets.\n" in text
        assert "bfq against none: mean of 6 drives +1" in text
        assert "# Runs: 20260102-0304-a000, " in text
    assert 'KERNEL=="nvme*"' in rule.read_text("utf-8")
    assert "elevator=bfq" in profile.read_text("utf-8")
    assert "tuned-adm profile ACTIVE mine" in " ".join(capsys.readouterr().err.split())


def test_an_undecided_class_has_no_rule_without_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = _stored(tmp_path, make_fleet({"none": 0.0, "bfq": 0.02}, drives=3, spread=0.1))
    rule = tmp_path / "x.rules"
    command = ["fleet", "--model", "EXAMPLE*", "--store", url, "--udev-rule", str(rule)]
    assert run(command) == ExitCode.REFUSED
    assert "no recommendation" in capsys.readouterr().err
    assert not rule.exists()
    assert run([*command, "--force"]) == 0
    assert "Verdict: " in rule.read_text("utf-8")
    assert "undecided" in rule.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "NOBODY*"], "no stored run tested drives of model NOBODY*"),
        (["--model", " "], "the model is empty"),
        (["--udev-rule", "x"], "name the class"),
        (["--goal", "latency"], "name the class"),
        (["--kind", "nvme", "--goal", "speed"], "there is no goal 'speed'"),
        (["--kind", "tape"], "tape"),
    ],
)
def test_bad_requests(
    url: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fleet", "--store", url, *arguments]) == ExitCode.USAGE
    assert message in capsys.readouterr().err


@pytest.fixture
def two_runs(tmp_path: Path) -> str:
    first = make_experiment(make_spec(("none", "bfq"), blocks=8))
    second = make_experiment(
        make_spec(("none", "bfq"), blocks=8, seed=2), behaviours={"bfq": SchedulerBehaviour(speed=0.8)}
    )
    return _stored(tmp_path, [first, second.model_copy(update={"created_at": "2024-05-24T09:30:00+00:00"})])


def test_models_have_no_bad_days(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [make_experiment(make_spec(("none", "bfq"), blocks=8, seed=seed)) for seed in (1, 2)]
    modelled = [
        one.model_copy(update={"target": one.target.model_copy(update={"backend": "sim"})}) for one in runs
    ]
    url = _stored(tmp_path, modelled)
    assert run(["runs", "compare", "test1", "test2", "--store", url]) == ExitCode.OK
    shown = " ".join(capsys.readouterr().out.split())
    assert "Both are models, which have no good or bad days" in shown
    assert "may be of the day" not in shown


def test_a_slower_run_has_an_exit_code(two_runs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "compare", "test1", "test2", "--store", two_runs]) == ExitCode.SLOWER
    shown = " ".join(capsys.readouterr().out.split())
    assert "20240517-093000-test2 is slower in 1 of 2 comparisons" in shown
    assert "made 7 days apart, so a difference may be of the day" in shown
    assert "▼ slower" in shown
    assert "bfq over none" in shown
    assert run(["runs", "compare", "test2", "test1", "--store", two_runs]) == ExitCode.OK
    assert "is faster in 1 of 2" in capsys.readouterr().out
    assert run(["runs", "--store", two_runs, "compare", "test1"]) == ExitCode.SLOWER, (
        "the latest is the default"
    )


def test_its_document_satisfies_the_schema(two_runs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "compare", "test1", "test2", "--store", two_runs, "--json"]) == ExitCode.SLOWER
    document = _validated(capsys.readouterr().out, "change-1.json")
    assert document["status"] == "slower"
    assert document["set_up"] == [{"name": "seed", "first": "1", "second": "2"}]


def test_a_report_names_the_page_that_it_wrote(
    two_runs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "the page.html"
    assert run(["report", "latest", "--html", str(page), "--store", two_runs]) == 0
    assert f"All figures and charts: '{page}'" in capsys.readouterr().out.replace("\n", " ")
    assert page.exists()


def test_the_list_of_runs_is_still_there(two_runs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "--store", two_runs]) == 0
    assert "20240517-093000-test1" in capsys.readouterr().out
    assert run(["runs", "--store", two_runs, "--json"]) == 0
    (first, _) = json.loads(capsys.readouterr().out)["runs"]
    assert (first["host"], first["models"]) == ("", ["EXAMPLE HDD 4000"])
    assert run(["runs", "--remove", "test1", "compare", "test1", "--store", two_runs]) == ExitCode.USAGE
    assert run(["runs", "compare", "test1", "nobody", "--store", two_runs]) == ExitCode.USAGE


def test_compare_against_a_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str], job: str) -> None:
    url = str(tmp_path / "runs.sqlite")
    options = ["-w", job, "-s", "none,bfq", "-n", "3", "-q", "--store", url]
    assert run(["compare", "sim:fixed,latency=200us,depth=4", *options]) == 0
    capsys.readouterr()
    again = ["compare", "sim:fixed,latency=200us,depth=4", *options, "--against", "latest"]
    assert run(again) == ExitCode.OK
    assert "is equal within 2 % in all of 2 comparisons" in capsys.readouterr().out
    slow = ["compare", "sim:fixed,latency=300us,depth=4", *options, "--against", "latest"]
    junit = tmp_path / "junit.xml"
    written = ["--json", str(tmp_path / "a.json"), "--junit", str(junit)]
    assert run([*slow, *written]) == ExitCode.SLOWER
    shown = capsys.readouterr().out
    comparison, change = ET.parse(junit).getroot()  # noqa: S314 - our own
    assert comparison.get("failures") == "0"
    assert (change.get("tests"), change.get("failures")) == ("2", "2")
    assert [case.get("name", "").split(" of ")[1] for case in change.iter("testcase")] == [
        f"{name} under {Path(job).stem} is not worse" for name in ("none", "bfq")
    ]
    assert "slower" in str(change.findall(".//failure")[0].get("message"))
    assert "is slower in 2 of 2 comparisons" in shown
    assert "latency=300us" in " ".join(shown.split())
    assert run(["compare", "sim:fixed", *options, "--against", "nobody"]) == ExitCode.USAGE
    several = ["compare", "sim:fixed", "sim:hdd-7200", *options, "--against", "latest"]
    assert run(several) == ExitCode.USAGE
    assert len(json.loads((tmp_path / "a.json").read_text("utf-8"))["schedulers"]) == 2
