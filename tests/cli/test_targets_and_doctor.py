"""`blklab targets` and `blklab doctor` on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from blklab.cli import run
from blklab.errors import ExitCode
from blklab.linux.doctor import doctor
from blklab.linux.journal.file import encode_line
from blklab.linux.queue.schedulers import available_schedulers
from blklab.linux.recording.support import ways_of_recording
from blklab.shipped import bpf_programs
from container_root import as_container_root
from real_devices import LoopMaker, Mounter, tool


def _json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    run([*arguments, "--json", "-"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.mark.root
def test_targets_of_a_loop_device(
    make_loop: LoopMaker, mount: Mounter, capsys: pytest.CaptureFixture[str]
) -> None:
    tool("mkfs.ext4", "e2fsprogs")
    free, used = make_loop(16), make_loop(32)
    subprocess.run(["mkfs.ext4", "-q", used.dev_path], check=True)
    folder = mount(used.dev_path)
    document = _json(["targets"], capsys)
    assert document["schema"] == "blklab.targets/1"
    disks = {disk["name"]: disk for disk in document["disks"]}
    entry = disks[free.name]
    active, offered = available_schedulers(free)
    assert (entry["scheduler"], entry["schedulers"]) == (active, offered)
    assert (entry["size_bytes"], entry["readable"], entry["writable"]) == (16 << 20, True, True)
    assert entry["mount_points"] == []
    entry = disks[used.name]
    assert entry["mount_points"] == [str(folder)]
    assert (entry["readable"], entry["writable"]) == (True, False)
    assert f"mounted on {folder}" in entry["writes"]


@pytest.mark.root
def test_members_of_a_btrfs_show_its_mount_point(
    make_loop: LoopMaker, mount: Mounter, capsys: pytest.CaptureFixture[str]
) -> None:
    tool("mkfs.btrfs", "btrfs-progs")
    first, second = make_loop(128), make_loop(128)
    subprocess.run(["mkfs.btrfs", "-q", first.dev_path, second.dev_path], check=True)
    subprocess.run(["btrfs", "device", "scan"], check=True, capture_output=True)
    folder = mount(first.dev_path)
    disks = {disk["name"]: disk for disk in _json(["targets"], capsys)["disks"]}
    assert disks[first.name]["mount_points"] == disks[second.name]["mount_points"] == [str(folder)]


def test_simulated_devices_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    targets = [device["target"] for device in _json(["targets"], capsys)["simulated"]]
    assert "sim:fixed" in targets
    assert len(targets) == len(set(targets))
    assert run(["targets"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert all(target in shown for target in targets)


def _as_another_user(*words: str) -> subprocess.CompletedProcess[str]:
    """The user nobody gets an answer without a traceback."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    tool("setpriv", "util-linux")
    command = ["setpriv", "--reuid=65534", "--clear-groups", sys.executable, "-m", "blklab", *words]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if "No module named" in answer.stderr or "Permission denied" in answer.stderr:
        pytest.skip("other users cannot read this copy of blklab")
    assert "Traceback" not in answer.stderr
    return answer


def test_targets_without_root() -> None:
    answer = _as_another_user("targets")
    assert answer.returncode == ExitCode.OK, answer.stderr
    assert "sim:fixed" in answer.stdout


@pytest.mark.root
def test_targets_do_not_promise_a_user_disks_that_he_cannot_open(make_loop: LoopMaker) -> None:
    disk = make_loop(16)
    disk.dev_path.chmod(0o600)
    entries = json.loads(_as_another_user("targets", "--json", "-").stdout)["disks"]
    entry = next(entry for entry in entries if entry["name"] == disk.name)
    assert not entry["readable"]
    assert entry["reads"] == "it cannot be opened: permission denied"


def test_doctor_agrees_with_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["doctor", "--json", "-"])
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "blklab.doctor/1"
    missing = [finding for finding in document["findings"] if finding["state"] == "missing"]
    assert document["ready"] == (not missing)
    assert code == (ExitCode.REQUIREMENT if missing else ExitCode.OK)
    subjects = {finding["subject"] for finding in document["findings"]}
    assert {
        "kernel",
        "root",
        "fio",
        "control groups",
        "loop devices",
        "free space",
        "compiled core",
    } <= subjects
    assert run(["doctor"]) == code
    shown = capsys.readouterr().out
    # Other programs' disks may be gone by now.
    assert all(subject in shown for subject in subjects if not subject.startswith("disk "))


def test_doctor_misses_fio(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["doctor"]) == ExitCode.REQUIREMENT
    shown = capsys.readouterr().out
    assert "apt install fio" in shown
    assert "cannot yet be compared" in shown


def test_doctor_finds_the_journal_of_a_killed_run(state: Path) -> None:
    folder = state / "journal"
    folder.mkdir(parents=True)
    (folder / "20261121-0231-k3f9.journal").write_bytes(encode_line({"kind": "header", "version": 1}, "")[0])
    finding = next(finding for finding in doctor.examine() if finding.subject == "killed runs")
    assert finding.state == "lacking"
    assert "blklab restore" in str(finding.remedy)
    assert ("20261121-0231-k3f9" in finding.text) == (os.geteuid() == 0), "only root can tell"


@pytest.mark.root
def test_doctor_says_how_it_could_record() -> None:
    """And agrees with what a recording finds."""
    findings = {finding.subject: finding for finding in doctor.examine()}
    ways = {name: findings[f"recording: {name}"] for name in ("bpf", "tracefs")}
    assert all((way.state == "ok") == (way.remedy is None) for way in ways.values())
    if bpf_programs() is None:
        assert "built without BPF programs" in ways["bpf"].text


@pytest.mark.root
def test_doctor_gives_the_reason_why_nothing_can_be_recorded() -> None:
    command = as_container_root([sys.executable, "-m", "blklab", "doctor", "--json", "-"])
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    findings = {finding["subject"]: finding for finding in json.loads(answer.stdout)["findings"]}
    for name in ("bpf", "tracefs"):
        finding = findings[f"recording: {name}"]
        assert finding["state"] == "lacking"
        assert finding["remedy"] == "blklab record cannot work here"
    assert "ermitted" in findings["recording: tracefs"]["text"]


def test_doctor_without_bpf_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blklab.linux.recording.support.bpf_programs", lambda: None)
    bpf = ways_of_recording()[0]
    assert bpf.name == "bpf"
    assert bpf.reason == "this blklab was built without BPF programs"


def test_doctor_without_root() -> None:
    answer = _as_another_user("doctor")
    assert answer.returncode == ExitCode.REQUIREMENT, answer.stderr
    assert "run with sudo" in answer.stdout


def test_doctor_elsewhere(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the system's name is faked."""
    monkeypatch.setattr(sys, "platform", "darwin")
    assert run(["doctor"]) == ExitCode.REQUIREMENT
    assert "use Linux for real disks" in capsys.readouterr().out


def test_the_drives_of_the_atlas_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    document = _json(["targets", "--atlas"], capsys)
    assert document["schema"] == "blklab.targets/1"
    found = {entry["model"]: entry for entry in document["atlas"]}
    assert len(found) == 36
    pro = found["Samsung SSD 980 PRO 1TB"]
    assert pro["target"] == "sim:Samsung SSD 980 PRO 1TB"
    assert pro["coefficients"]["rbps"] == 2_548_800_265
    run(["targets", "--atlas"])
    printed = capsys.readouterr().out
    assert "sim:Samsung SSD 980 PRO 1TB" in printed
    assert "2549" in printed
