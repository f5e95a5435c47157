"""`blklab apply` on real loop devices, in a mount namespace with an /etc/udev of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from blklab.cli import run
from blklab.cli.apply import _refuse_kernels, resolve_fleet, resolve_run
from blklab.errors import RefusedError, UnknownNameError, UsageError
from blklab.linux.cgroups.hierarchy import find_hierarchy
from blklab.linux.disks.disk import Disk
from blklab.linux.journal.journal import Journal
from blklab.linux.journal.locks import disk_locks
from blklab.records.samples import DiskDescription
from blklab.records.store import Store
from blklab.spec.drive_classes import DriveClass
from blklab.spec.goals import parse_goal
from blklab.testing.experiments import (
    QUIET,
    SchedulerBehaviour,
    make_choice,
    make_experiment,
    make_spec,
    make_target,
)
from fleet_records import make_fleet
from real_devices import LoopMaker, changed, in_private_machine, queue_of, tool

pytestmark = pytest.mark.root


@pytest.fixture
def disk(make_loop: LoopMaker, state: Path) -> Disk:
    tool("udevadm", "udev")
    made = make_loop(32)
    queue = made.sys_path / "queue"
    (queue / "scheduler").write_text("mq-deadline")
    (queue / "iosched" / "fifo_batch").write_text("5")
    (queue / "nr_requests").write_text("99")
    return made


class PrivateMachine:
    """Runs commands that share one private /etc/udev; each call is a whole shell script."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk

    def __call__(self, script: str) -> subprocess.CompletedProcess[str]:
        blklab = f'blklab() {{ "{sys.executable}" -m blklab "$@"; }}\n'
        device = f"DEVICE={self.disk.dev_path}\n"
        rules = "rules() { cat /etc/udev/rules.d/* 2>/dev/null || true; }\n"
        return in_private_machine(["sh", "-c", blklab + device + rules + script], [self.disk])


@pytest.fixture
def private(disk: Disk) -> PrivateMachine:
    return PrivateMachine(disk)


def _scheduler(disk: Disk) -> str:
    return (disk.sys_path / "queue" / "scheduler").read_text()


def test_set_and_undo(disk: Disk, private: PrivateMachine, state: Path) -> None:
    before = queue_of(disk)
    answer = private(
        "set -e; blklab apply bfq:slice_idle=0 --device $DEVICE; echo ---; rules; echo ---\n"
        "cat /sys/block/${DEVICE#/dev/}/queue/scheduler /sys/block/${DEVICE#/dev/}/queue/iosched/slice_idle\n"
        "blklab apply --undo --device $DEVICE; echo ---; rules"
    )
    assert answer.returncode == 0, answer.stderr
    applied, rule, in_force, after = answer.stdout.split("---\n")
    assert f"{disk.name}: bfq:slice_idle=0, was mq-deadline, and at every boot" in applied
    assert 'ATTR{queue/scheduler}="bfq"' in rule
    assert f"blklab apply --undo --device {disk.dev_path}" in rule
    scheduler, slice_idle = in_force.splitlines()[:2]
    assert "[bfq]" in scheduler
    assert slice_idle == "0"
    assert f"{disk.name}: back to mq-deadline" in in_force
    assert after == ""
    assert "udevadm test accept it" in answer.stderr
    assert not changed(before, queue_of(disk))
    assert not list(state.glob("applied/*"))
    assert not list(state.glob("journal/*.journal"))


def test_undo_after_two_goes_back_to_the_beginning(disk: Disk, private: PrivateMachine) -> None:
    before = queue_of(disk)
    answer = private(
        "set -e; blklab apply bfq --device $DEVICE; blklab apply kyber --device $DEVICE\n"
        "ls /etc/udev/rules.d | wc -l; grep -c kyber /etc/udev/rules.d/*.rules\n"
        "blklab apply --undo --device $DEVICE; rules"
    )
    assert answer.returncode == 0, answer.stderr
    assert "\n1\n" in answer.stdout, "one rule for one disk"
    assert not changed(before, queue_of(disk))


def test_undo_takes_back_attributes_of_the_queue_too(disk: Disk, private: PrivateMachine) -> None:
    """Also those that only a later change has brought."""
    before = queue_of(disk)
    done = private(
        "blklab apply none:nomerges=2 --device $DEVICE && rules && "
        "blklab apply bfq:read_ahead_kb=64:nr_requests=32 --device $DEVICE"
    )
    assert done.returncode == 0, done.stderr
    assert 'ATTR{queue/nomerges}="2"' in done.stdout
    queue = disk.sys_path / "queue"
    assert [(queue / name).read_text() for name in ("read_ahead_kb", "nr_requests")] == ["64\n", "32\n"]
    undone = private("blklab apply --undo --device $DEVICE")
    assert undone.returncode == 0, undone.stderr
    assert changed(before, queue_of(disk)) == {}


def test_now_only_writes_no_rule(disk: Disk, private: PrivateMachine) -> None:
    before = queue_of(disk)
    answer = private(
        "set -e; blklab apply none --now-only --device $DEVICE; rules; blklab apply --undo --device $DEVICE"
    )
    assert answer.returncode == 0, answer.stderr
    assert "until the next boot" in answer.stdout
    assert "ATTR" not in answer.stdout
    assert not changed(before, queue_of(disk))


def test_tunables_not_named_are_at_their_defaults(disk: Disk, private: PrivateMachine) -> None:
    """Scheduler and tunable as after the next boot."""
    answer = private("blklab apply mq-deadline:writes_starved=3 --now-only --device $DEVICE")
    assert answer.returncode == 0, answer.stderr
    iosched = disk.sys_path / "queue" / "iosched"
    assert (iosched / "writes_starved").read_text() == "3\n"
    assert (iosched / "fifo_batch").read_text() == "16\n"


def test_dry_run_says_all_and_does_nothing(disk: Disk, private: PrivateMachine, state: Path) -> None:
    before = queue_of(disk)
    answer = private("set -e; blklab apply bfq:slice_idle=0 --device $DEVICE --dry-run; echo ---; rules")
    assert answer.returncode == 0, answer.stderr
    planned, after = answer.stdout.split("---\n")
    assert f"echo bfq > {disk.sys_path}/queue/scheduler\n" in planned
    assert f"echo 0 > {disk.sys_path}/queue/iosched/slice_idle\n" in planned
    assert "/etc/udev/rules.d/90-blklab-" in planned
    assert after == ""
    assert not changed(before, queue_of(disk))
    assert not state.exists()


def test_dry_run_prints_exactly_what_is_then_written(
    disk: Disk, private: PrivateMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = private(
        "set -e; blklab apply bfq --device $DEVICE --dry-run --json plan.json 2>/dev/null\n"
        f"blklab apply bfq --device $DEVICE --json {disk.name}.json\n"
        "rules | grep -v 'Written by' > written; blklab apply --undo --device $DEVICE"
    )
    assert answer.returncode == 0, answer.stderr
    plan: dict[str, Any] = json.loads(Path("plan.json").read_text())
    done: dict[str, Any] = json.loads(Path(f"{disk.name}.json").read_text())
    assert (plan["schema"], plan["dry_run"], done["dry_run"]) == ("blklab.apply/1", True, False)
    (planned,), (made,) = plan["disks"], done["disks"]
    assert planned["commands"] == made["commands"]
    text = "".join(
        line for line in planned["rule"]["text"].splitlines(keepends=True) if "Written by" not in line
    )
    assert text == Path("written").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("bfq:slice_idle=-5 --device $DEVICE", 2, "slice_idle = -5"),
        ("bfq:slice_idel=5 --device $DEVICE", 2, "slice_idel"),
        ("cfq --device $DEVICE", 3, "cfq"),
        ("bqf --device $DEVICE", 2, "did you mean bfq?"),
        ("bfq --device /dev/nosuchdisk", 2, "/dev/nosuchdisk"),
        ("bfq", 2, "which disk"),
        ("", 2, "name a run or a scheduler"),
        ("--undo --device $DEVICE", 2, "no change to undo"),
        ("--undo", 2, "--device"),
        ("bfq --undo --device $DEVICE", 2, "--undo takes no scheduler"),
        ("20990101-0000-zzzz --device $DEVICE", 2, "20990101-0000-zzzz"),
        ("Bfq! --device $DEVICE", 2, "Bfq!"),
    ],
)
def test_a_request_that_fails_changes_nothing(
    disk: Disk, private: PrivateMachine, state: Path, arguments: str, code: int, words: str
) -> None:
    before = queue_of(disk)
    answer = private(f"blklab apply {arguments}; code=$?; rules; exit $code")
    assert answer.returncode == code, answer.stderr
    assert words in answer.stderr
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""
    assert not changed(before, queue_of(disk))
    assert not list(state.glob("applied/*"))
    assert not list(state.glob("journal/*.journal"))


def test_an_edited_rule_is_not_removed_without_force(disk: Disk, private: PrivateMachine) -> None:
    answer = private(
        "blklab apply bfq --device $DEVICE; echo '# mine' | tee -a /etc/udev/rules.d/*.rules > /dev/null\n"
        "blklab apply --undo --device $DEVICE; echo code $?; rules | tail -1\n"
        "blklab apply --undo --force --device $DEVICE; echo code $?; rules"
    )
    assert "code 4\n# mine\n" in answer.stdout
    assert answer.stdout.endswith("code 0\n")
    assert "was edited" in answer.stderr


def test_a_damaged_record_is_named(disk: Disk, private: PrivateMachine) -> None:
    answer = private(
        "blklab apply bfq --device $DEVICE; echo x | tee $BLKLAB_STATE_DIR/applied/*.json > /dev/null\n"
        "blklab apply --undo --device $DEVICE; echo code $?"
    )
    assert "code 6" in answer.stdout
    assert "cannot be read" in answer.stderr


def test_a_disk_with_a_living_run_is_left_alone(disk: Disk, private: PrivateMachine, state: Path) -> None:
    with disk_locks([disk], run_id="a-run"), Journal.create("a-run", "a test"):
        answer = private("blklab apply bfq --device $DEVICE")
    assert answer.returncode == 4
    assert "a-run" in answer.stderr
    assert "[mq-deadline]" in _scheduler(disk)


def test_without_root(disk: Disk, private: PrivateMachine) -> None:
    tool("setpriv", "util-linux")
    command = f"setpriv --reuid=65534 --clear-groups {sys.executable} -m blklab apply bfq --device $DEVICE"
    answer = private(command)
    if "No module named" in answer.stderr or "Permission denied" in answer.stderr:
        pytest.skip("other users cannot read this copy of blklab")
    assert answer.returncode == 3
    assert "needs root" in answer.stderr


def _stored(
    tmp_path: Path,
    disk: Disk,
    speeds: dict[str, float],
    *,
    size_bytes: int | None = None,
    noise: float = 0.003,
    good_enough: float | None = None,
    disturbed_blocks: int = 0,
) -> str:
    spec = make_spec(tuple(speeds), target=str(disk.dev_path))
    spec = spec.model_copy(update={"good_enough": good_enough})
    description = DiskDescription(name=disk.name, model=disk.model, size_bytes=size_bytes or disk.size_bytes)
    target = make_target(spec).model_copy(update={"disks": [description]})
    behaviours = {
        make_choice(text).label: SchedulerBehaviour(speed=speed, noise=noise)
        for text, speed in speeds.items()
    }
    record = make_experiment(spec, behaviours=behaviours, target=target).model_copy(
        update={"run_id": "20261121-0231-k3f9"}
    )
    url = str(tmp_path / "runs.sqlite")
    with Store.opened(url) as store:
        store.begin(record)
        for sample in record.samples:
            disturbed = sample.cell.block < disturbed_blocks and sample.cell.scheduler == "bfq"
            events = QUIET.model_copy(update={"steal_fraction": 0.5}) if disturbed else QUIET
            store.add_sample(record.run_id, sample.model_copy(update={"events": events}))
    return url


def test_a_run_names_its_winner_and_its_disk(
    disk: Disk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = _stored(tmp_path, disk, {"none": 1.0, "gentle=bfq:slice_idle=0": 1.5})
    for name in ("20261121-0231-k3f9", "latest", "k3f9", "20261121"):
        choice, path = resolve_run(name, url, False)  # noqa: FBT003
        assert (choice.without_label, path) == ("bfq:slice_idle=0", str(disk.dev_path))
    code = run(["apply", "k3f9", "--store", url, "--dry-run"])
    shown = capsys.readouterr()
    assert code == 0, shown.err
    assert f"echo bfq > {disk.sys_path}/queue/scheduler" in shown.out


_ADVISE = """
import sys
from blklab.analysis.verdict import analyse
from blklab.cli import advising, run
from blklab.cli.comparing import Compared
from blklab.records.store import Store
from blklab.report.documents.comparison import compare_document

device, url, *flags = sys.argv[1:]
with Store.opened(url) as store:
    record = store.load("latest")
document = compare_document(record, analyse(record))
advising.compare_and_show = lambda *_, **__: Compared(0, [document])
sys.exit(run(["advise", device, "--for", "files", "--yes", "-q", "--store", url, *flags]))
"""


@pytest.mark.parametrize("flag", ["--apply", "--no-apply"])
def test_advise_sets_the_better_scheduler_and_it_can_be_undone(
    flag: str, disk: Disk, private: PrivateMachine, tmp_path: Path, state: Path
) -> None:
    """The comparison is made up, its disk and all that `apply` does with it are real."""
    url = _stored(tmp_path, disk, {"mq-deadline": 1.0, "bfq": 1.5})
    before = queue_of(disk)
    (tmp_path / "advise.py").write_text(_ADVISE)
    answer = private(
        f'"{sys.executable}" "{tmp_path}/advise.py" $DEVICE "{url}" {flag} || exit\n'
        "echo ---; rules; echo ---\n"
        "cat /sys/block/${DEVICE#/dev/}/queue/scheduler; blklab apply --undo --device $DEVICE; rules"
    )
    told, rule, after = answer.stdout.split("---\n")
    if flag == "--no-apply":
        assert ("[mq-deadline]" in after, rule, told) == (True, "", "")
        assert "there is no change to undo" in answer.stderr
    else:
        assert answer.returncode == 0, answer.stderr
        assert f"{disk.name}: bfq, was mq-deadline, and at every boot" in told
        assert 'ATTR{queue/scheduler}="bfq"' in rule
        assert "[bfq]" in after
        assert f"{disk.name}: back to mq-deadline" in after
    assert not changed(before, queue_of(disk))
    assert not list(state.glob("applied/*"))


def test_an_undecided_run_is_refused(disk: Disk, tmp_path: Path) -> None:
    url = _stored(tmp_path, disk, {"none": 1.0, "bfq": 1.3}, noise=0.5)
    with pytest.raises(RefusedError, match="recommends no scheduler: Not known yet"):
        resolve_run("latest", url, False)  # noqa: FBT003
    assert resolve_run("latest", url, True)[1] == str(disk.dev_path)  # noqa: FBT003


def test_an_undecided_run_is_applied_if_a_scheduler_is_good_enough(disk: Disk, tmp_path: Path) -> None:
    url = _stored(tmp_path, disk, {"bfq": 1.02, "mq-deadline": 1.0}, noise=0.05, good_enough=0.5)
    # mq-deadline was in force before: staying needs no change, whichever has the smaller bound.
    assert resolve_run("latest", url, False)[0].name == "mq-deadline"  # noqa: FBT003


def test_the_doubts_about_a_run_are_noted(
    disk: Disk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = _stored(tmp_path, disk, {"none": 1.0, "bfq": 1.5}, disturbed_blocks=4)
    assert resolve_run("latest", url, False)[0].name == "bfq"  # noqa: FBT003
    said = " ".join(capsys.readouterr().err.split())
    warning = "4 repetitions were disturbed from outside, and without them the answer is another"
    assert f"note: of run 20261121-0231-k3f9: {warning}" in said


def test_a_run_on_another_disk_is_refused(disk: Disk, tmp_path: Path) -> None:
    url = _stored(tmp_path, disk, {"none": 1.0, "bfq": 1.5}, size_bytes=12345)
    with pytest.raises(RefusedError, match="different disks"):
        resolve_run("latest", url, False)  # noqa: FBT003
    assert resolve_run("latest", url, True)[0].name == "bfq"  # noqa: FBT003


def test_what_overwrites_the_scheduler_is_noted(disk: Disk, private: PrivateMachine) -> None:
    answer = private(
        "mkdir -p /etc/udev/rules.d\n"
        'printf \'ACTION=="add|change", KERNEL=="loop*", ATTR{queue/scheduler}="none"\\n\' '
        "> /etc/udev/rules.d/99-other.rules\n"
        "blklab apply bfq --dry-run --device $DEVICE; blklab apply bfq --now-only --device $DEVICE\n"
        "blklab apply --undo --device $DEVICE"
    )
    assert answer.returncode == 0, answer.stderr
    notes = " ".join(answer.stderr.split())
    place = f"/etc/udev/rules.d/99-other.rules:1 sets scheduler to none for {disk.name}"
    assert f"{place}, after blklab's rule; take that line out" in notes
    assert f"{place}, at every add or change event; take that line out" in notes


def test_a_loop_device_has_no_model_for_others(disk: Disk, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["fleet"], ["bfq", "--for-model"]):
        assert run(["apply", *command, "--device", str(disk.dev_path), "--dry-run"]) == 2
        assert "has no model that other drives could share" in capsys.readouterr().err
    assert run(["apply", "bfq", "--for-model", "--now-only", "--device", str(disk.dev_path)]) == 2
    assert run(["apply", "fleet"]) == 2
    assert "which disk?" in capsys.readouterr().err


def test_the_verdict_of_a_fleet_names_scheduler_and_evidence(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("blklab.linux.apply.class_rule.class_of", lambda _: DriveClass(model="EXAMPLE*"))
    url = str(tmp_path / "runs.sqlite")
    with Store.opened(url) as store:
        for record in make_fleet({"none": 0.0, "bfq": 0.15}):
            store.begin(record)
            store.add_samples(record.run_id, record.samples)
    choice, evidence = resolve_fleet(str(disk.dev_path), url, force=False)
    assert choice.name == "bfq"
    assert any("6 drives" in line for line in evidence)
    monkeypatch.setattr("blklab.linux.apply.class_rule.class_of", lambda _: DriveClass(model="OTHER"))
    with pytest.raises(UnknownNameError, match="no stored run tested drives of model OTHER"):
        resolve_fleet(str(disk.dev_path), url, force=False)


def test_a_goal_can_turn_the_verdict_of_a_fleet(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("blklab.linux.apply.class_rule.class_of", lambda _: DriveClass(model="EXAMPLE*"))
    url = str(tmp_path / "runs.sqlite")
    with Store.opened(url) as store:
        for record in make_fleet({"none": 0.0, "bfq": 0.15}, tails={"bfq": 3.0}):
            store.begin(record)
            store.add_samples(record.run_id, record.samples)
    assert resolve_fleet(str(disk.dev_path), url, force=False)[0].name == "bfq"
    choice, evidence = resolve_fleet(
        str(disk.dev_path), url, force=False, goal=parse_goal("iops=0.1,latency_p99=0.9")
    )
    assert choice.name == "none"
    assert any("for the goal iops=0.1,latency_p99=0.9: `none`" in line for line in evidence)
    asked = ["apply", "fleet", "--device", str(disk.dev_path), "--store", url, "--dry-run", "--now-only"]
    assert run([*asked, "--goal", "iops=0.1,latency_p99=0.9"]) == 0
    commands = capsys.readouterr().out.splitlines()
    assert commands == [f"echo none > {disk.sys_path}/queue/scheduler"]
    assert run([*asked, "--goal", "speed"]) == 2
    assert "there is no goal 'speed'" in capsys.readouterr().err


def test_what_belongs_to_units_is_left_to_the_person(disk: Disk, capsys: pytest.CaptureFixture[str]) -> None:
    choice = "bfq:slice_idle=0:batch/io.bfq.weight=500"
    asked = ["apply", choice, "--device", str(disk.dev_path), "--dry-run", "--now-only"]
    assert run(asked) == 0
    said = capsys.readouterr()
    assert [line for line in said.out.splitlines() if "batch" in line or "weight" in line] == []
    assert f"echo 0 > {disk.sys_path}/queue/iosched/slice_idle" in said.out
    assert "the group 'batch' stands for: systemctl set-property UNIT IOWeight=4500" in " ".join(
        said.err.split()
    )
    assert run([*asked, "--unit", "batch=backup.service", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["tunables"] == {"slice_idle": "0"}
    assert document["left_to_units"] == ["systemctl set-property backup.service IOWeight=4500"]
    assert run([*asked, "--unit", "other=backup.service"]) == 2
    assert "sets nothing of the group 'other'" in capsys.readouterr().err


def test_io_cost_is_applied_or_refused_with_the_reason(
    disk: Disk, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = "none:/io.cost.qos.enable=1:/io.cost.qos.min=50"
    code = run(["apply", choice, "--device", str(disk.dev_path), "--dry-run", "--now-only"])
    said = capsys.readouterr()
    hierarchy = find_hierarchy()
    if hierarchy.version == 1:
        assert code == 2
        assert "no io.cost.qos under cgroup v1" in said.err
    else:
        number = disk.device_number
        assert f"echo '{number} enable=1 min=50' > {hierarchy.root}/io.cost.qos" in said.out.splitlines()


def test_what_an_earlier_change_made_of_io_cost_is_undone_first(
    disk: Disk, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file stands for io.cost.qos, which cgroup v1 does not have."""
    number = disk.device_number
    qos = tmp_path / "io.cost.qos"
    qos.write_text(f"{number} enable=1 ctrl=user min=50.00\n")
    ask = ["apply", "bfq", "--device", str(disk.dev_path), "--now-only"]
    assert run(ask) == 0
    (record,) = state.glob("applied/*.json")
    content = json.loads(record.read_text()) | {"groups": [[str(qos), f"{number} enable=0 ctrl=auto"]]}
    record.write_text(json.dumps(content))
    ask[1] = "kyber"
    capsys.readouterr()
    assert run([*ask, "--dry-run"]) == 0
    assert f"echo '{number} enable=0 ctrl=auto' > {qos}" in capsys.readouterr().out.splitlines()
    assert "enable=1" in qos.read_text()
    assert run(ask) == 0
    # Unlike the kernel, the file keeps the end of a longer line.
    assert qos.read_text().startswith(f"{number} enable=0 ctrl=auto")
    assert json.loads(record.read_text())["groups"] == []
    assert run(["apply", "--undo", "--device", str(disk.dev_path)]) == 0
    assert "[mq-deadline]" in _scheduler(disk)


def test_a_goal_goes_with_a_fleet_only(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["bfq", "--device", "/dev/loop0"], ["latest"], ["--undo", "--device", "/dev/loop0"]):
        assert run(["apply", *arguments, "--goal", "latency"]) == 2
        assert "--goal goes with fleet" in capsys.readouterr().err


def test_a_run_on_a_model_has_no_disk(tmp_path: Path) -> None:
    url = str(tmp_path / "runs.sqlite")
    with Store.opened(url) as store:
        store.begin(make_experiment(make_spec(target="sim:hdd-7200")))
    with pytest.raises(UsageError, match="not a disk of this machine"):
        resolve_run("latest", url, False)  # noqa: FBT003
    with pytest.raises(UnknownNameError):
        resolve_run("20990101-0000-zzzz", url, False)  # noqa: FBT003


def test_equal_kernels_leave_nothing_to_apply() -> None:
    chosen = [
        SimpleNamespace(label=f"bfq@{kernel}", kernel=kernel, name="bfq") for kernel in ("stock", "mine")
    ]
    record = SimpleNamespace(run_id="latest", spec=SimpleNamespace(schedulers=chosen))
    with pytest.raises(RefusedError, match="found bfq@stock and bfq@mine equal") as caught:
        _refuse_kernels(record, ["bfq@stock", "bfq@mine"])
    assert caught.value.hint == "there is nothing to apply"
