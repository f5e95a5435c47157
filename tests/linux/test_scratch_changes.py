"""Changes that make scratch space print themselves as they are made."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from blklab.linux.journal.journal import Journal
from blklab.linux.machine.host_change import ProgramRun, shell_of
from blklab.linux.scratch.changes import HeldFolder, LaidOutFiles, LoopOverFile, PlainFolder, RandomFile


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
