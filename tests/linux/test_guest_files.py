"""Files for commands in guests: needs of programs, trees of files, the archive."""

from __future__ import annotations

import os
import shutil
import struct
import sys
from pathlib import Path

import pytest

from blklab.errors import MissingToolError, RequirementError
from blklab.guests.command_files import command_root
from blklab.guests.executables import needs_of, read_executable
from blklab.guests.file_tree import FileTree

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="guests run programs of Linux on x86-64"
)


def _entries(archive: Path) -> dict[str, tuple[int, bytes]]:
    """Modes and contents in a cpio archive, by name."""
    data, place = archive.read_bytes(), 0
    found: dict[str, tuple[int, bytes]] = {}
    while True:
        assert data[place : place + 6] == b"070701"
        fields = [int(data[place + 6 + 8 * index : place + 14 + 8 * index], 16) for index in range(13)]
        mode, size, length = fields[1], fields[6], fields[11]
        name = data[place + 110 : place + 110 + length - 1].decode()
        start = (place + 110 + length + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        found[name] = (mode, data[start : start + size])
        place = (start + size + 3) // 4 * 4


def test_an_archive_holds_files_folders_and_links_sorted(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "b").mkdir(parents=True)
    (folder / "b" / "file").write_bytes(b"12345")
    (folder / "a-link").symlink_to("b/file")
    (folder / "b" / "file").chmod(0o640)
    tree = FileTree()
    tree.add_whole_folder(folder, "top", with_needs=False)
    tree.add_text("etc/text", "words\n")
    digest = tree.write(tmp_path / "archive")
    found = _entries(tmp_path / "archive")
    assert list(found) == sorted(found) == ["etc", "etc/text", "top", "top/a-link", "top/b", "top/b/file"]
    assert found["top/b/file"] == (0o100640, b"12345")
    assert found["top/a-link"][0] & 0o170000 == 0o120000
    assert found["top/a-link"][1] == b"b/file"
    assert tree.bytes == 3 * 4096
    # Times differ each time that a set-up runs, so they do not count.
    os.utime(folder / "b" / "file", (5, 5))
    again = FileTree()
    again.add_whole_folder(folder, "top", with_needs=False)
    again.add_text("etc/text", "words\n")
    assert again.write(tmp_path / "again") == digest
    (folder / "b" / "file").write_bytes(b"12346")
    assert again.write(tmp_path / "again") != digest


def test_what_is_no_file_cannot_be_copied(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RequirementError, match=r"pipe cannot be copied"):
        FileTree().add_whole_folder(tmp_path, with_needs=False)


def test_a_program_needs_its_loader_and_libraries() -> None:
    shell = Path("/bin/sh").resolve()
    needs = [str(need) for need in needs_of(shell)]
    executable = read_executable(shell)
    assert executable is not None
    if executable.interpreter is not None:
        assert str(executable.interpreter) in needs
        assert any("libc" in need for need in needs)


def test_a_script_needs_its_interpreter(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#! /bin/sh -e\ntrue\n")
    assert needs_of(script)[0] == Path("/bin/sh")
    script.write_text("#!/no/such/program\n")
    with pytest.raises(MissingToolError, match="needs the interpreter /no/such/program, which is missing"):
        needs_of(script)
    script.write_text("no script\n")
    assert needs_of(script) == []


def _elf(machine: int) -> bytes:
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<H", header, 18, machine)
    return bytes(header)


def test_programs_of_other_processors_and_static_ones(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(_elf(183))
    with pytest.raises(RequirementError, match="another kind of processor"):
        needs_of(program)
    program.write_bytes(_elf(62)[:40])
    with pytest.raises(RequirementError, match="another kind of processor"):
        needs_of(program)
    program.write_bytes(_elf(62))
    assert needs_of(program) == []


def test_the_root_of_a_command_has_what_its_line_names(tmp_path: Path) -> None:
    directory = tmp_path / "directory"
    directory.mkdir()
    (directory / "own").write_text("#!/bin/sh\n")
    listed = tmp_path / "listed.txt"
    listed.write_text("x")
    tree = command_root([f"LC_ALL=C ./own && cat {listed} | wc -c"], ["true", "no-such"], [], directory)
    tree.write(tmp_path / "root.cpio")
    names = set(_entries(tmp_path / "root.cpio"))
    assert {"bin/sh", "proc", "dev", "tmp", "command/own", str(listed).lstrip("/")} <= names
    for program in ("cat", "wc", "true"):
        assert any(name.endswith(f"bin/{program}") for name in names), program
    assert not any(name.endswith("bin/ls") for name in names)
    assert shutil.which("no-such") is None


def test_a_first_word_that_is_no_program_is_refused() -> None:
    with pytest.raises(MissingToolError, match="there is no program no-such-program"):
        command_root(["A=1 no-such-program"], [], [], None)
    for line in ("if true; then echo; fi", "x=1", "cd /; true", '"$PROGRAM" -x', "(true)"):
        command_root([line], [], [], None)
    with pytest.raises(RequirementError, match="there is no /no/file"):
        command_root(["true"], [], ["/no/file*"], None)
