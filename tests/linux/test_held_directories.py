"""Directories of blklab's own where others may rename: held, mounted out of their reach, removed."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from dead_journals import dead_journal

from blklab.errors import RefusedError, RequirementError, RestoreError
from blklab.linux.directories import held_directory, kernel_calls
from blklab.linux.directories.held_directory import FileIdentity, HeldDirectory
from blklab.linux.directories.kernel_calls import open_without_links, unmount_once
from blklab.linux.directories.tree_removal import remove_contents
from blklab.linux.directories.trusted_path import untrusted_component
from blklab.linux.disks import loop
from blklab.linux.journal.journal import Journal
from blklab.linux.journal.recovery import recover
from blklab.linux.scratch.data_files import reserved
from blklab.linux.scratch.loop_place import check_loop_place
from real_devices import own_loops

NAME = ".blklab-run-1"


@pytest.fixture
def held(scratch: Path) -> Iterator[HeldDirectory]:
    parent = open_without_links(scratch)
    with HeldDirectory.make(parent, scratch / NAME) as directory:
        yield directory
    os.close(parent)


# Opening


@pytest.mark.parametrize("without_openat2", [False, True])
def test_no_component_may_be_a_link(
    scratch: Path, without_openat2: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if without_openat2:
        monkeypatch.setattr(kernel_calls, "_SYS_OPENAT2", 100_000)
    inner = scratch.resolve() / "a" / "b"
    inner.mkdir(parents=True)
    descriptor = open_without_links(inner)
    assert os.fstat(descriptor).st_ino == inner.stat().st_ino
    os.close(descriptor)
    (scratch / "link").symlink_to(scratch / "a")
    for path in (scratch / "link", scratch / "link" / "b", scratch / "nothing"):
        with pytest.raises(OSError, match=r"No such|Not a dir|Too many"):
            open_without_links(path)


# Making


@pytest.mark.parametrize("what", ["link", "full directory", "nothing"])
def test_a_directory_that_is_replaced_at_once_is_refused(
    scratch: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.mkdir

    def mkdir(name: str, mode: int, *, dir_fd: int) -> None:
        real(name, mode, dir_fd=dir_fd)
        (scratch / NAME).rename(scratch / "moved")
        if what == "link":
            (scratch / NAME).symlink_to(scratch)
        elif what == "full directory":
            real(scratch / NAME)
            (scratch / NAME / "file").touch()

    parent = open_without_links(scratch)
    monkeypatch.setattr(os, "mkdir", mkdir)
    with pytest.raises(RefusedError, match="replaced"):
        HeldDirectory.make(parent, scratch / NAME)
    os.close(parent)


@pytest.mark.root
def test_a_directory_of_another_user_is_refused(
    needs_root: None, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS with root_squash, where root's files are another user's."""
    os.chown(scratch, 4242, 4242)
    real = os.mkdir

    def mkdir(name: str, mode: int, *, dir_fd: int) -> None:
        real(name, mode, dir_fd=dir_fd)
        os.chown(name, 4242, 4242, dir_fd=dir_fd)

    parent = open_without_links(scratch)
    monkeypatch.setattr(os, "mkdir", mkdir)
    with pytest.raises(RefusedError, match="belongs to user 4242"):
        HeldDirectory.make(parent, scratch / NAME)
    os.close(parent)


@pytest.mark.root
@pytest.mark.parametrize("mode", [0o755, 0o1777, 0o700])
def test_directories_of_other_users_and_sticky_ones_are_fine(
    needs_root: None, state: Path, scratch: Path, mode: int
) -> None:
    os.chown(scratch, 4242, 4242)
    scratch.chmod(mode)
    with Journal.create("run-1", "a test") as journal:
        held = journal.hold_directory(scratch / NAME)
        assert stat.S_IMODE(os.fstat(held.fileno()).st_mode) == 0o700
    assert list(scratch.iterdir()) == []


@pytest.mark.root
def test_an_overlay_is_fine(needs_root: None, state: Path, scratch: Path) -> None:
    for name in ("lower", "upper", "work", "merged"):
        (scratch / name).mkdir()
    # An overlay's upper layer needs extended attributes, which an overlay itself lacks.
    options = f"lowerdir={scratch}/lower,upperdir={scratch}/upper,workdir={scratch}/work"
    mount = ["mount", "-t", "overlay", "overlay", "-o", options, str(scratch / "merged")]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("this kernel mounts no overlay here")
    try:
        with Journal.create("run-1", "a test") as journal:
            held = journal.hold_directory(scratch / "merged" / NAME)
            folder = scratch / "merged" / NAME / "deep" / "deeper"
            folder.mkdir(parents=True)
            (folder / "file").touch()
            assert held.path.exists()
        assert list((scratch / "merged").iterdir()) == []
    finally:
        subprocess.run(["umount", str(scratch / "merged")], check=True)


# Mounting


@pytest.mark.root
def test_the_mount_stays_where_it_is_and_has_no_privileged_programs(
    needs_root: None, scratch: Path, held: HeldDirectory
) -> None:
    point = scratch / "point"
    point.mkdir()
    held.bind_to(point)
    try:
        (scratch / NAME).rename(scratch / "moved")
        (scratch / NAME).mkdir()
        (point / "file").touch()
        assert (scratch / "moved" / "file").exists()
        flags = os.statvfs(point).f_flag
        assert flags & os.ST_NOSUID
        assert flags & kernel_calls.NODEV
        mounted = HeldDirectory(point, os.open(point, os.O_RDONLY))
        with mounted, pytest.raises(RestoreError, match="mounted"):
            mounted.remove()
    finally:
        unmount_once(point)
    assert held.remove()
    assert not (scratch / "moved").exists()
    assert (scratch / NAME).exists()


@pytest.mark.root
def test_a_mount_that_fails_is_an_error_with_the_reason(
    needs_root: None, scratch: Path, held: HeldDirectory
) -> None:
    with pytest.raises(RequirementError, match="no such file"):
        held.bind_to(scratch / "nowhere")
    assert held.remove()


# Removing


def test_a_deep_tree_is_removed_and_links_are_not_followed(scratch: Path, held: HeldDirectory) -> None:
    (scratch / "precious").mkdir()
    (scratch / "precious" / "file").touch()
    folder = os.dup(held.fileno())
    for _ in range(150):
        name = "d" * 200  # longer than any path may be
        os.mkdir(name, dir_fd=folder)
        os.symlink(scratch / "precious", "link", dir_fd=folder)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=folder))
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    remove_contents(held.fileno(), "it")
    assert list((scratch / NAME).iterdir()) == []
    assert (scratch / "precious" / "file").exists()


def test_what_was_put_in_its_place_is_left_alone(state: Path, scratch: Path) -> None:
    with Journal.create("run-1", "a test") as journal:
        held = journal.hold_directory(scratch / NAME)
        (scratch / NAME / "file").touch()
        (scratch / NAME).rename(scratch / "moved")
        (scratch / NAME).mkdir()
        (scratch / NAME / "theirs").touch()
        assert held.path == scratch / NAME
    assert not (scratch / "moved").exists()
    assert (scratch / NAME / "theirs").exists()


def test_a_directory_whose_name_says_that_it_is_gone_is_removed(
    state: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that is being renamed may not be listed for a moment."""
    with Journal.create("run-1", "a test") as journal:
        held = journal.hold_directory(scratch / NAME)
        (scratch / NAME).rename(scratch / "moved (deleted)")
        real, missed = held_directory.name_in, list(range(5))

        def miss(parent: int, expected: str, identity: FileIdentity) -> str | None:
            return real(parent, expected, identity) if not missed or missed.pop() < 3 else None

        monkeypatch.setattr(held_directory, "name_in", miss)
        assert held.path.parent == scratch
    assert list(scratch.iterdir()) == []


def test_recovery_knows_a_directory_by_its_inode(state: Path, scratch: Path) -> None:
    ours = scratch / ".blklab-renamed"
    ours.mkdir(mode=0o700)
    (ours / "file").touch()
    (scratch / NAME).mkdir()
    (scratch / NAME / "theirs").touch()
    place = {"kind": "directory", "path": str(scratch / NAME), "parent_inode": scratch.stat().st_ino}
    dead_journal(
        state,
        "dead",
        [{**place, "inode": None}, {**place, "inode": ours.stat().st_ino, "instead_of": 1}],
    )
    (report,) = recover(state)
    assert report.error is None
    assert report.done == [f"removed {scratch / NAME}"]
    assert report.notes == [f"{scratch / NAME} is not what blklab has made: left alone"]
    assert [path.name for path in scratch.iterdir()] == [NAME]


def test_recovery_removes_a_directory_that_had_just_been_made_only_if_it_is_empty(
    state: Path, scratch: Path
) -> None:
    entry = {
        "kind": "directory",
        "path": str(scratch / NAME),
        "parent_inode": scratch.stat().st_ino,
        "inode": None,
    }
    (scratch / NAME).mkdir()
    dead_journal(state, "dead", [entry])
    (report,) = recover(state)
    assert report.done == [f"removed {scratch / NAME}"]
    (scratch / NAME).mkdir()
    (scratch / NAME / "theirs").touch()
    dead_journal(state, "dead", [entry])
    (report,) = recover(state)
    assert report.error is None
    assert "left alone" in report.notes[0]
    assert (scratch / NAME / "theirs").exists()


def test_journals_of_older_versions_are_undone(state: Path, scratch: Path) -> None:
    entry = {"kind": "directory", "path": str(scratch / NAME), "parent_inode": scratch.stat().st_ino}
    (scratch / NAME).mkdir()
    (scratch / NAME / "file").touch()
    dead_journal(state, "dead", [entry])
    (report,) = recover(state)
    assert report.done == [f"removed {scratch / NAME}"]
    (scratch / NAME).symlink_to(scratch)
    dead_journal(state, "dead", [entry])
    (report,) = recover(state)
    assert "left alone" in report.notes[0]
    assert (scratch / NAME).is_symlink()


def test_a_directory_above_that_became_a_link_is_an_error(state: Path, scratch: Path) -> None:
    above = scratch / "above"
    (above / NAME).mkdir(parents=True)
    inode = (above / NAME).stat().st_ino
    entry = {"kind": "directory", "path": str(above / NAME), "parent_inode": above.stat().st_ino}
    above.rename(scratch / "moved")
    above.symlink_to(scratch / "moved")
    path = dead_journal(state, "dead", [{**entry, "inode": inode}])
    (report,) = recover(state)
    assert isinstance(report.error, RestoreError)
    assert path.exists()
    assert (scratch / "moved" / NAME).exists()


# Loop devices


@pytest.mark.root
@pytest.mark.parametrize("killed", [False, True])
def test_a_loop_device_is_ours_by_its_file_and_not_by_its_path(
    needs_loop: None, state: Path, scratch: Path, killed: bool
) -> None:
    with Journal.create("run-1", "a test") as journal:
        held = journal.hold_directory(scratch / NAME)
        with reserved(held.fileno(), scratch / NAME / "image", 8 << 20) as descriptor:
            disk = loop.create_over(journal, descriptor, scratch / NAME / "image")
        (scratch / NAME).rename(scratch / "moved")
        entry = journal.loop_entry(disk.name)
        assert entry is not None
        if killed:
            journal.keep_changes()
    if killed:
        dead_journal(state, "dead", [{key: value for key, value in entry.items() if key != "number"}])
        (report,) = recover(state)
        assert report.done == [f"removed {disk.name} over {scratch / NAME / 'image'}"]
        assert (scratch / "moved").exists()
    assert own_loops(scratch) == []


@pytest.mark.root
def test_kernels_before_5_8_attach_in_two_steps(
    needs_loop: None, state: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_LOOP_CONFIGURE", 0x4C7F)
    with Journal.create("run-1", "a test") as journal:
        (scratch / "image").write_bytes(bytes(8 << 20))
        disk = loop.create(journal, scratch / "image")
        assert disk.size_bytes == 8 << 20
        assert (disk.sys_path / "loop" / "dio").read_text() == "1\n"
    assert own_loops(scratch) == []


@pytest.mark.root
def test_a_loop_device_of_an_older_journal_over_another_path_is_named(
    needs_loop: None, state: Path, scratch: Path
) -> None:
    image = scratch / "image"
    with Journal.create("run-1", "a test") as journal:
        with image.open("wb") as file:
            file.truncate(8 << 20)
        disk = loop.create(journal, image)
        index = int(disk.name.removeprefix("loop"))
        dead_journal(state, "dead", [{"kind": "loop", "index": index, "backing_file": "/elsewhere"}])
        (report,) = recover(state)
        assert report.notes == [f"{disk.name} is over {image} now, not over /elsewhere: left alone"]
        assert loop.attached_identity(index) == FileIdentity.of(image.stat())


@pytest.mark.root
def test_only_a_regular_file_is_attached(needs_loop: None, state: Path, scratch: Path) -> None:
    (scratch / "link").symlink_to("/dev/null")
    with Journal.create("run-1", "a test") as journal:
        with pytest.raises(OSError, match="Too many"):
            loop.create(journal, scratch / "link")
        with pytest.raises(RefusedError, match="regular"):
            loop.create(journal, Path("/dev/null"))


@pytest.mark.root
def test_an_image_is_made_only_where_others_cannot_write(needs_root: None, scratch: Path) -> None:
    scratch.chmod(0o777)
    parent = open_without_links(scratch)
    with pytest.raises(RefusedError, match="others could write"), reserved(parent, scratch / "image", 4096):
        pass
    os.close(parent)
    assert list(scratch.iterdir()) == []


def test_memory_is_a_disk_only_on_demand() -> None:
    with pytest.raises(RefusedError, match="device nodes"):
        check_loop_place(Path("/dev"), named=True)
    mounts = Path("/proc/self/mountinfo").read_text()
    if " /dev/shm " not in mounts:
        pytest.skip("there is no tmpfs at /dev/shm")
    check_loop_place(Path("/dev/shm"), named=True)
    with pytest.raises(RequirementError, match="in memory"):
        check_loop_place(Path("/dev/shm"), named=False)


# Paths that others could make lead elsewhere


def test_own_directories_are_trusted(tmp_path: Path) -> None:
    assert untrusted_component(tmp_path / "not" / "there") is None


@pytest.mark.root
def test_every_component_counts(needs_root: None, scratch: Path) -> None:
    folder = scratch / "a" / "b"
    folder.mkdir(parents=True)
    assert untrusted_component(folder) is None
    (scratch / "a").chmod(0o777)
    assert untrusted_component(folder) == f"other users may write to {scratch / 'a'}"
    (scratch / "a").chmod(0o1777)
    assert untrusted_component(folder) is None
    os.chown(scratch / "a", 4242, 4242)
    assert untrusted_component(folder) == f"{scratch / 'a'} belongs to user 4242"
    (scratch / "link").symlink_to(folder)
    os.chown(scratch / "a", 0, 0)
    assert untrusted_component(scratch / "link") is None
    os.chown(scratch / "link", 4242, 4242, follow_symlinks=False)
    assert untrusted_component(scratch / "link") == f"{scratch / 'link'} belongs to user 4242"


def test_links_in_a_circle_are_not_trusted(scratch: Path) -> None:
    (scratch / "one").symlink_to("two")
    (scratch / "two").symlink_to(scratch / "one")
    assert "too many symbolic links" in str(untrusted_component(scratch / "one"))
