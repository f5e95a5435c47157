"""Changes that make scratch space print themselves as they are made."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from blklab.linux.journal.journal import Journal
from blklab.linux.machine import host_change
from blklab.linux.machine.host_change import ProgramRun, shell_of
from blklab.linux.scratch import own_filesystem
from blklab.linux.scratch.changes import HeldFolder, LaidOutFiles, LoopOverFile, PlainFolder, RandomFile
from blklab.linux.scratch.own_filesystem import Image, OwnFilesystem
from blklab.linux.scratch.run_folder import RunFolder


def test_folders_and_files_are_those_that_the_printed_commands_make(tmp_path: Path) -> None:
    lengths = {"a b": 8192, "c": 4096}
    made, printed = tmp_path / "made", tmp_path / "printed"
    for folder in (made, printed):
        files = LaidOutFiles(folder)
        commands = [*PlainFolder(folder).shell(), *files.commands(lengths)]
        if folder == made:
            PlainFolder(folder).make()
            files.lay_out(lengths)
            assert files.changes(lengths) == []
            assert files.changes({"c": 8192}) == [RandomFile(made / "c", 8192)]
        else:
            subprocess.run(["sh", "-ec", "\n".join(commands)], check=True)
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {path.name: path.stat().st_size for path in folder.iterdir()} == lengths


def test_a_program_prints_the_words_that_it_runs(tmp_path: Path) -> None:
    run = ProgramRun(("touch", str(tmp_path / "a b")), "coreutils")
    assert run.shell() == [f"touch '{tmp_path}/a b'"]
    run.make()
    assert (tmp_path / "a b").exists()


class Recorded:
    """A journal and the programs that run, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[str] = []
        for module in (host_change, own_filesystem):
            monkeypatch.setattr(module, "run_program", self._run)

    def _run(self, words: list[str], *, package: str) -> None:
        assert package
        self.steps.append(shlex.join(words))

    def own_filesystem(self, device: Path, identity: str) -> None:
        self.steps.append(f"journal: {device} {identity}")

    def own_mount(self, point: Path) -> None:
        self.steps.append(f"journal: {point}")


def test_a_file_system_of_its_own_prints_the_programs_that_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, point = Recorded(monkeypatch), tmp_path / "point"
    made = OwnFilesystem(Path("/dev/a b"), point, recorded)  # type: ignore[arg-type]
    for change in [*made.creation, *made.remounting]:
        change.make()
    of_identity, mkfs, of_mount, mount, again = recorded.steps
    identity = of_identity.rpartition(" ")[2]
    assert (of_identity, of_mount) == (f"journal: /dev/a b {identity}", f"journal: {point}")
    assert again == mount, "nothing was mounted, so there was nothing to unmount"
    printed = [mkfs.replace(f"-U {identity} ", ""), f"mkdir -m 755 {point}", mount, f"chmod 755 {point}"]
    planned = OwnFilesystem(Path("/dev/a b"), point, None)
    assert shell_of(planned.creation) == printed
    assert shell_of(planned.remounting) == [f"umount {point}", mount]
    assert point.stat().st_mode & 0o777 == 0o755


def test_an_image_is_mounted_through_the_device_that_losetup_names(tmp_path: Path) -> None:
    own = OwnFilesystem(Image(tmp_path / "image", 1 << 20), tmp_path / "point", None)
    allocate, attach, mkfs, *_ = shell_of(own.creation)
    assert allocate == f"fallocate -l 1048576 {tmp_path}/image"
    assert attach.startswith("device=$(losetup ")
    assert mkfs.endswith(' "$device"')
    assert shell_of(own.remounting)[1].endswith(f' "$device" {tmp_path}/point')
    with pytest.raises(RuntimeError, match="dry run"):
        own.creation[1].make()


def test_the_run_folder_prints_the_mount_that_it_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = Recorded(monkeypatch)
    bound: list[Path] = []
    source = HeldFolder(tmp_path / "source", None)
    source.held = SimpleNamespace(bind_to=bound.append)  # type: ignore[assignment]
    folder = RunFolder("run-1", recorded)  # type: ignore[arg-type]
    folder.path = tmp_path
    changes = folder.mounting(source, "data")
    for change in changes:
        change.make()
    assert bound == [tmp_path / "data"]
    assert recorded.steps == [f"journal: {tmp_path}/data"]
    assert shell_of(changes) == [
        f"mkdir -m 700 {tmp_path}/data",
        f"mount --bind -o nosuid,nodev {tmp_path}/source {tmp_path}/data",
    ]


def test_a_dry_run_makes_nothing(tmp_path: Path) -> None:
    folder = HeldFolder(tmp_path / "held", None)
    loop = LoopOverFile(tmp_path / "held" / "loop.img", 1 << 20, folder.opened, None)
    assert shell_of([folder, loop]) == [
        f"mkdir -m 700 {tmp_path}/held",
        f"fallocate -l 1048576 {tmp_path}/held/loop.img",
        f"device=$(losetup --find --show --direct-io=on {tmp_path}/held/loop.img)",
    ]
    for change in (folder, loop):
        with pytest.raises(RuntimeError, match="dry run"):
            change.make()


@pytest.mark.root
def test_a_loop_device_is_over_a_file_in_a_held_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLKLAB_STATE_DIR", str(tmp_path / "state"))
    with Journal.create("run-1", "a test") as journal:
        folder = HeldFolder(tmp_path / ".blklab-run-1", journal)
        loop = LoopOverFile(folder.path / "loop.img", 1 << 20, folder.opened, journal)
        folder.make()
        loop.make()
        assert loop.disk.size_bytes == 1 << 20
        assert loop.backing.stat().st_blocks * 512 >= 1 << 20
    assert not folder.path.exists()
