"""Patches: parsing and refusals; none is half applied."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from blklab.errors import PatchError, UnknownNameError
from blklab.guests.kernels.patches import apply_patches, read_patch, shipped_patches

OLD = "".join(f"line {number}\n" for number in range(1, 13))


def change(number: int, text: str, file: str = "a.c") -> str:
    """A patch that puts a line of text after a line of `OLD`."""
    before = "".join(f" line {n}\n" for n in range(number - 1, number + 1))
    after = "".join(f" line {n}\n" for n in range(number + 1, number + 3))
    head = f"--- a/block/{file}\n+++ b/block/{file}\n@@ -{number - 1},4 +{number - 1},5 @@\n"
    return f"{head}{before}+{text}\n{after}"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    if shutil.which("patch") is None:
        pytest.skip("patch is not installed")
    folder = tmp_path / "source"
    (folder / "block").mkdir(parents=True)
    for name in ("a.c", "b.c"):
        (folder / "block" / name).write_text(OLD)
    return folder


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def apply(source: Path, tmp_path: Path, *texts: str) -> None:
    patches = [read_patch(write(tmp_path, f"{n}.patch", text)) for n, text in enumerate(texts, start=1)]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    apply_patches(patches, source, scratch)


def test_patches_build_on_each_other(source: Path, tmp_path: Path) -> None:
    second = (
        change(4, "two")
        .replace("+two", " one\n+two")
        .replace(" line 3\n", "")
        .replace("-3,4 +3,5", "-4,4 +4,5")
    )
    apply(source, tmp_path, change(4, "one"), second)
    assert "line 4\none\ntwo\nline 5" in (source / "block" / "a.c").read_text()


def test_nothing_is_half_applied(source: Path, tmp_path: Path) -> None:
    """The first patch and the first file of the second would apply; its second file does not."""
    torn = change(5, "two") + change(6, "three", "b.c").replace("line 7", "line 77")
    with pytest.raises(PatchError) as caught:
        apply(source, tmp_path, change(4, "one"), torn)
    assert "2.patch" in caught.value.message
    assert "block/b.c: hunk 1 at line 5" in caught.value.message
    assert sorted(path.name for path in source.rglob("*")) == ["a.c", "b.c", "block"]
    assert all(path.read_text() == OLD for path in source.glob("block/*"))


def test_files_are_made_and_removed(source: Path, tmp_path: Path) -> None:
    new = "--- /dev/null\n+++ b/block/new/c.c\n@@ -0,0 +1 @@\n+new\n"
    gone = "--- a/block/b.c\n+++ /dev/null\n@@ -1,12 +0,0 @@\n" + OLD.replace("line", "-line")
    assert read_patch(write(tmp_path, "new.patch", new)).created == ("block/new/c.c",)
    apply(source, tmp_path, new, gone)
    assert (source / "block/new/c.c").read_text() == "new\n"
    assert not (source / "block/b.c").exists()


def test_a_file_is_renamed(source: Path, tmp_path: Path) -> None:
    head = "diff --git a/block/b.c b/block/c.c\nsimilarity index 100%\nrename from block/b.c\n"
    head += "rename to block/c.c\ndiff --git a/block/a.c b/block/a.c\n"
    apply(source, tmp_path, head + change(4, "one"))
    assert not (source / "block" / "b.c").exists()
    assert (source / "block" / "c.c").read_text() == OLD
    assert "one" in (source / "block" / "a.c").read_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (change(4, "x", "nowhere.c"), ["block/nowhere.c", "not in this source"]),
        (change(4, "x").replace("line 3", "line 33"), ["block/a.c", "hunk 1 at line 3"]),
        (change(4, "x")[:-9], ["block/a.c"]),
        ("just text\n", ["not a patch"]),
        ("GIT binary patch\nliteral 3\n" + change(4, "x"), ["binary"]),
        ("@@ -1 +1 @@\n-a\n+b\n", ["not a patch", "names no file"]),
        (change(4, "x").replace("a/block/a.c", "/etc/passwd"), ["/etc/passwd"]),
        (change(4, "x").replace("a/block/a.c", "a/../../etc/passwd"), ["etc/passwd"]),
        (change(4, "x").replace("a/block/a.c", "Makefile"), ["Makefile"]),
    ],
)
def test_patches_that_do_not_fit(source: Path, tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(PatchError) as caught:
        apply(source, tmp_path, text)
    assert "1.patch" in caught.value.message
    for word in words:
        assert word in caught.value.message
    assert (source / "block" / "a.c").read_text() == OLD


def test_a_patch_that_is_in_the_source_already(source: Path, tmp_path: Path) -> None:
    with pytest.raises(PatchError, match="previously applied"):
        apply(source, tmp_path, change(4, "one"), change(4, "one"))


def test_a_line_in_another_place_is_found_but_not_in_another_context(source: Path, tmp_path: Path) -> None:
    (source / "block" / "a.c").write_text("more\nmore\n" + OLD)
    apply(source, tmp_path, change(4, "one"))
    assert "line 4\none\nline 5" in (source / "block" / "a.c").read_text()


def test_a_missing_patch_names_those_that_ship() -> None:
    with pytest.raises(UnknownNameError) as caught:
        read_patch("kyber-busy-weight")
    assert caught.value.hint is not None and "kyber-busy-wait" in caught.value.hint
    assert read_patch("kyber-busy-wait").files == ("block/kyber-iosched.c",)


def test_every_shipped_patch_says_what_it_shows() -> None:
    mending = {"bfq-idle-time", "io-max-fraction", "iocost-whole-device"}
    assert set(shipped_patches()) == {"kyber-busy-wait", "mq-deadline-wrap"} | mending
    for name, path in shipped_patches().items():
        assert path.parent.name == name
        assert "SPDX-License-Identifier: GPL-2.0" in path.read_text()
        assert "blklab kernel build" in (path.parent / "README.md").read_text()
