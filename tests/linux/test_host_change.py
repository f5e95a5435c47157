"""A change of the host makes itself, takes itself back and prints itself as shell; the three must agree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from sysfs_tree import SysfsTree
from test_cgroups import DISKS, TreeJournal, as_linux_shows, create, kernel_like

from blklab.errors import TunableError
from blklab.linux.cgroups.hierarchy import Hierarchy
from blklab.linux.cgroups.run_cgroups import RunCgroups
from blklab.linux.cgroups.settings import wanted_settings
from blklab.linux.disks.disk import Disk, read_disk
from blklab.linux.machine import host_change
from blklab.linux.machine.host_change import HostChange, KernelWrite, MadeChanges, shell_of
from blklab.linux.machine.writeback import WritebackSettings
from blklab.linux.queue import attributes, schedulers
from blklab.linux.queue.changes import QueueWrite
from blklab.linux.queue.settings import QueueSettings
from blklab.spec.schedulers import parse_scheduler_choice


def run(lines: list[str]) -> None:
    subprocess.run(["sh", "-e", "-c", "\n".join(lines)], check=True)


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text().strip()
        for path in folder.rglob("*")
        if path.is_file()
    }


class Writes:
    """Every write to the kernel's files, with the truncation that they do and regular files do not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[str, str]] = []
        for module in (host_change, attributes, schedulers):
            monkeypatch.setattr(module, "write_once", self)

    def __call__(self, path: Path, value: str) -> None:
        self.made.append((str(path), value))
        if path.name == "scheduler":
            names = path.read_text().replace("[", "").replace("]", "").split()
            value = " ".join(f"[{name}]" if name == value else name for name in names)
        path.write_text(f"{value}\n")

    def printed(self) -> list[str]:
        return [f"echo {value} > {path}" for path, value in self.made]


@pytest.fixture
def queue_disk(tmp_path: Path) -> Disk:
    tree = SysfsTree(tmp_path)
    path = tree.disk("sda", "8:0", scheduler="[mq-deadline] none bfq\n")
    for name, value in (("read_ahead_kb", "128"), ("nomerges", "0")):
        (path / "queue" / name).write_text(f"{value}\n")
    return read_disk(path, tree.roots)


def test_a_dry_run_of_a_choice_prints_the_writes_of_a_run(
    queue_disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = Writes(monkeypatch)
    choice = parse_scheduler_choice("mq-deadline:read_ahead_kb=64:nomerges=2")
    settings = QueueSettings([queue_disk], {})
    settings.apply(choice)
    assert settings.commands(choice, ["mq-deadline", "none", "bfq"]) == writes.printed()
    assert len(writes.made) == 4


def test_a_dry_run_of_writeback_prints_the_writes_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = Writes(monkeypatch)
    (tmp_path / "dirty_bytes").write_text("0\n")
    choice = parse_scheduler_choice("none:vm.dirty_bytes=16777216")
    settings = WritebackSettings(tmp_path)
    settings.apply(choice)
    assert settings.commands(choice) == writes.printed() != []


@pytest.mark.parametrize("version", [1, 2])
def test_the_printed_lines_make_the_groups_that_a_run_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    monkeypatch.setattr(host_change, "write_once", kernel_like(lambda name, value: f"{value}\n"))
    attribute = {1: "blkio.throttle.read_bps_device", 2: "io.max"}[version]
    asked = {"batch": {attribute: "500" if version == 1 else "rbps=500"}, "a-b": {}}
    wanted = wanted_settings(version, asked, (), DISKS[:1])
    found = []
    for name in ("made", "printed"):
        root = tmp_path / name
        root.mkdir()
        (root / "cgroup.subtree_control").write_text("")
        groups = RunCgroups(Hierarchy(version, root), "run")
        if name == "printed":
            run(groups.commands(["batch", "a-b"], wanted))
        else:
            journal = TreeJournal()
            journal.files = (attribute,)
            groups.create(journal, ["batch", "a-b"], wanted)  # type: ignore[arg-type]
        found.append({file: text for file, text in contents(root).items() if text})
    assert found[0] == found[1]
    assert f"blklab-run/batch/{attribute}" in found[0]


def test_a_refused_change_takes_back_those_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "cgroup"
    root.mkdir()
    for name in ("cgroup.subtree_control", "io.cost.qos"):
        (root / name).write_text("")
    monkeypatch.setattr(host_change, "write_once", kernel_like(as_linux_shows))
    groups, _, _ = create(Hierarchy(2, root), {"batch": {"io.weight": "200"}}, [])
    weight = groups.folder("batch") / "io.weight"
    good, bad = (
        wanted_settings(2, {"batch": {name: "50"}}, (), DISKS[:1]) for name in ("io.weight", "io.nonsense")
    )
    made = MadeChanges()
    with pytest.raises(TunableError, match=r"io\.nonsense"):
        made.make(groups.writes([*good, *bad]))
    assert "200" in weight.read_text()
    made.make(groups.writes(good))
    assert "50" in weight.read_text()
    made.take_back()
    assert "200" in weight.read_text()


def test_what_taking_back_moves_is_taken_back_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As bfq's ``slice_idle`` and ``slice_idle_us``: a write of one moves the other."""
    cause, effect = tmp_path / "cause", tmp_path / "effect"
    for path in (cause, effect):
        path.write_text("before\n")

    def write(path: Path, value: str) -> None:
        moves = path == cause and cause.read_text().strip() != value
        path.write_text(f"{value}\n")
        if moves:
            effect.write_text("moved\n")

    monkeypatch.setattr(host_change, "write_once", write)
    made = MadeChanges()
    # The first is undone last, and moves the second once more.
    made.make([KernelWrite(cause, "other"), KernelWrite(effect, "wanted")])
    made.take_back()
    assert (cause.read_text(), effect.read_text()) == ("before\n", "before\n")


def test_changes_of_any_kind_print_themselves(queue_disk: Disk) -> None:
    queue = queue_disk.sys_path / "queue"
    changes: list[HostChange] = [
        KernelWrite(Path("/proc/a b"), "1 2"),
        QueueWrite(queue_disk, "nomerges", "2"),
    ]
    assert shell_of(changes) == ["echo '1 2' > '/proc/a b'", f"echo 2 > {queue}/nomerges"]
    run(changes[1].shell())
    assert changes[1].holds()
    assert not QueueWrite(queue_disk, "nomerges", "1").holds()
