"""From request to cache entry, on a source that builds in a moment: the build and the files that remain."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from blklab.errors import (
    BlklabError,
    KernelBuildError,
    KernelLacksError,
    KernelSourceError,
    PatchError,
    SpaceError,
    UsageError,
)
from blklab.guests.kernels import store
from blklab.guests.kernels.building import BuildRequest, build, plan_build
from blklab.guests.kernels.compilation import SilentBuildObserver
from blklab.guests.kernels.configuration import merge, read_fragment, shipped_fragment
from blklab.guests.kernels.digests import digest_file
from blklab.guests.kernels.names import kernel_names
from blklab.shipped import shipped_files


def state_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of a folder: time of modification and content."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def assert_no_remains(kernel_cache: Path) -> None:
    assert not list((kernel_cache / "work").glob("*/*")) if (kernel_cache / "work").exists() else True
    assert not list((kernel_cache / "builds").glob("*")) if (kernel_cache / "builds").exists() else True
    assert kernel_names() == []


def test_a_build_says_what_it_is_and_leaves_the_persons_tree_alone(
    kernel_cache: Path, kernel_tree: Path
) -> None:
    before = state_of(kernel_tree)
    kernel, is_new = build(BuildRequest("mine", str(kernel_tree)))
    assert is_new
    assert state_of(kernel_tree) == before
    assert kernel.version == "6.1.7"
    assert kernel.schedulers == ("none", "mq-deadline", "kyber", "bfq")
    assert kernel.has_ublk and kernel.has_time_travel
    assert kernel.record.compiled_files == 3
    assert kernel.record.linux_sha256 == digest_file(kernel.linux)
    assert os.access(kernel.linux, os.X_OK)
    assert kernel.config == {
        option.name: option.value for option in merge([shipped_fragment()]).values() if option.value != "n"
    }
    assert store.find("mine") == kernel
    # The tree that is kept holds what could be built, and not the sources of other machines.
    (kept,) = (kernel_cache / "trees").iterdir()
    assert not (kept / "tree" / "arch" / "arm" / "kernel.c").exists()
    assert (kept / "tree" / "arch" / "arm" / "Kconfig").exists()


def test_the_same_is_not_built_twice_even_under_another_name(kernel_cache: Path, kernel_tree: Path) -> None:
    first, _ = build(BuildRequest("one", str(kernel_tree)))
    linux_before = state_of(first.folder)
    second, is_new = build(BuildRequest("two", str(kernel_tree)))
    assert not is_new
    assert second.build_id == first.build_id
    assert state_of(first.folder) == linux_before
    (kernel_tree / "block" / "bfq.c").touch()  # content decides, not time
    assert not build(BuildRequest("one", str(kernel_tree)))[1]


def test_a_patch_compiles_only_what_it_touches(
    kernel_cache: Path, kernel_tree: Path, kernel_patch: Path
) -> None:
    stock, _ = build(BuildRequest("stock", str(kernel_tree)))
    patched, is_new = build(BuildRequest("slow", str(kernel_tree), patches=[str(kernel_patch)]))
    assert is_new
    assert patched.record.compiled_files == 1
    assert b"slower" in patched.linux.read_bytes()
    assert b"slower" not in stock.linux.read_bytes()
    assert [patch.files for patch in patched.record.patches] == [["block/kyber.c"]]
    # The kept tree is still that of the stock kernel: another variant starts without the patch.
    (kept,) = (kernel_cache / "trees").iterdir()
    assert "slower" not in (kept / "tree" / "block" / "kyber.c").read_text()


def test_a_patched_first_build_is_undone_for_the_next(
    kernel_cache: Path, kernel_tree: Path, kernel_patch: Path
) -> None:
    patched, _ = build(BuildRequest("slow", str(kernel_tree), patches=[str(kernel_patch)]))
    assert patched.record.compiled_files == 3
    stock, _ = build(BuildRequest("stock", str(kernel_tree)))
    assert stock.record.compiled_files == 1
    assert b"slower" not in stock.linux.read_bytes()
    assert b"line 20" in stock.linux.read_bytes()


def test_a_variant_equals_the_same_built_from_nothing(
    kernel_cache: Path, kernel_tree: Path, kernel_patch: Path
) -> None:
    build(BuildRequest("stock", str(kernel_tree)))
    variant, _ = build(BuildRequest("slow", str(kernel_tree), patches=[str(kernel_patch)]))
    store.remove("slow")
    store.remove("stock")
    assert not list((kernel_cache / "trees").iterdir())
    afresh, _ = build(BuildRequest("slow", str(kernel_tree), patches=[str(kernel_patch)]))
    assert afresh.build_id == variant.build_id
    assert afresh.record.linux_sha256 == variant.record.linux_sha256


def test_an_edited_tree_compiles_only_the_edits(kernel_cache: Path, kernel_tree: Path) -> None:
    build(BuildRequest("mine", str(kernel_tree)))
    (kernel_tree / "block" / "bfq.c").write_text("better bfq\n")
    (kernel_tree / "block" / "unused.c").write_text("new\n")
    edited, is_new = build(BuildRequest("mine", str(kernel_tree)))
    assert is_new and edited.record.compiled_files == 1
    assert b"better bfq" in edited.linux.read_bytes()
    # The former build had no other name and went; the kept tree follows the edits.
    assert [folder.name for folder in (kernel_cache / "builds").iterdir()] == [edited.build_id]
    (kept,) = (kernel_cache / "trees").iterdir()
    assert (kept / "tree" / "block" / "unused.c").read_text() == "new\n"
    (kernel_tree / "block" / "unused.c").unlink()
    (kernel_tree / "init" / "main.c").write_text("better main\n")
    again, _ = build(BuildRequest("mine", str(kernel_tree)))
    assert again.record.compiled_files == 1
    (kept,) = (kernel_cache / "trees").iterdir()
    assert not (kept / "tree" / "block" / "unused.c").exists()


def test_what_a_build_left_in_the_persons_tree_is_not_taken(kernel_cache: Path, kernel_tree: Path) -> None:
    clean = plan_build(BuildRequest("mine", str(kernel_tree)))
    for path in (
        "block/bfq.o",
        ".config",
        "include/generated/autoconf.h",
        "linux",
        ".git/HEAD",
        "block/.bfq.o.cmd",
    ):
        (kernel_tree / path).parent.mkdir(parents=True, exist_ok=True)
        (kernel_tree / path).write_text("left behind")
    assert plan_build(BuildRequest("mine", str(kernel_tree))).build_id == clean.build_id
    kernel, _ = build(BuildRequest("mine", str(kernel_tree)))
    assert b"left behind" not in kernel.linux.read_bytes()


def test_a_fragment_is_added_and_has_the_last_word(
    kernel_cache: Path, kernel_tree: Path, tmp_path: Path
) -> None:
    fragment = tmp_path / "more.config"
    fragment.write_text("CONFIG_FTRACE=y\nCONFIG_LOG_BUF_SHIFT=18\n# CONFIG_MQ_IOSCHED_KYBER is not set\n")
    kernel, _ = build(BuildRequest("traced", str(kernel_tree), fragments=[str(fragment)]))
    assert kernel.config["CONFIG_FTRACE"] == "y"
    assert kernel.config["CONFIG_LOG_BUF_SHIFT"] == "18"
    assert "kyber" not in kernel.schedulers
    with pytest.raises(KernelLacksError, match="kyber"):
        kernel.require_scheduler("kyber")


def test_objects_are_kept_of_the_shipped_configuration_as_it_is_now(
    kernel_cache: Path,
    kernel_tree: Path,
    kernel_patch: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build(BuildRequest("stock", str(kernel_tree)))
    fragment = tmp_path / "more.config"
    fragment.write_text("CONFIG_FTRACE=y\n")
    # Options of one build: init/main.c, which depends on the configuration, is compiled for it alone.
    more = build(BuildRequest("more", str(kernel_tree), fragments=[str(fragment)]))[0]
    slow = build(BuildRequest("slow", str(kernel_tree), patches=[str(kernel_patch)]))[0]
    assert [more.record.compiled_files, slow.record.compiled_files] == [1, 1]
    # A later blklab ships another configuration.
    fragment.write_text("CONFIG_LOG_BUF_SHIFT=18\n")
    options = merge([shipped_fragment(), read_fragment(fragment)])
    changed = replace(shipped_fragment(), options=tuple(options.values()))
    monkeypatch.setattr("blklab.guests.kernels.building.shipped_fragment", lambda: changed)
    stock = build(BuildRequest("stock", str(kernel_tree)))[0]
    slow = build(BuildRequest("slow", str(kernel_tree), patches=[str(kernel_patch)]))[0]
    assert [stock.record.compiled_files, slow.record.compiled_files] == [1, 1]
    assert b"CONFIG_LOG_BUF_SHIFT=18" in slow.linux.read_bytes()


def test_kernels_with_the_tortures_options_share_a_tree_of_their_own(
    kernel_cache: Path, kernel_tree: Path, kernel_patch: Path
) -> None:
    torture = str(shipped_files("kernel", ".config")["torture"])
    build(BuildRequest("stock", str(kernel_tree)))
    first = build(BuildRequest("checked", str(kernel_tree), fragments=[torture]))[0]
    slow = build(BuildRequest("slow", str(kernel_tree), patches=[str(kernel_patch)], fragments=[torture]))[0]
    assert [first.record.compiled_files, slow.record.compiled_files] == [3, 1]
    assert len(list((kernel_cache / "trees").iterdir())) == 2


def test_an_archive_and_its_top_folder(kernel_cache: Path, kernel_tree: Path, tmp_path: Path) -> None:
    archive = tmp_path / "linux.tar.xz"
    subprocess.run(["tar", "-C", kernel_tree.parent, "-cJf", archive, kernel_tree.name], check=True)
    kernel, _ = build(BuildRequest("stock", str(archive)))
    assert kernel.record.source_kind == "tarball"
    (kept,) = (kernel_cache / "trees").iterdir()
    assert not (kept / "tree" / "arch" / "arm" / "kernel.c").exists()
    assert not (kept / "tree" / "Documentation" / "block" / "kyber.rst").exists()
    # A patch may touch files that were left out.
    patch = tmp_path / "documented.patch"
    patch.write_text(
        "--- a/Documentation/block/kyber.rst\n+++ b/Documentation/block/kyber.rst\n"
        "@@ -1,2 +1,3 @@\n Kyber\n =====\n+Slow.\n"
    )
    patched, _ = build(BuildRequest("documented", str(archive), patches=[str(patch)]))
    assert patched.record.compiled_files == 0
    assert patched.record.linux_sha256 == kernel.record.linux_sha256


def test_callers_environment_stays_out(
    kernel_cache: Path, kernel_tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCFLAGS", "-O0")
    monkeypatch.setenv("MAKEFLAGS", "-n")  # as under `make test`; with it nothing would be built
    assert build(BuildRequest("mine", str(kernel_tree)))[0].linux.is_file()


def fails(request: BuildRequest, kind: type[BlklabError], *words: str) -> BlklabError:
    with pytest.raises(kind) as caught:
        build(request)
    text = f"{caught.value.message} {caught.value.hint}"
    for word in words:
        assert word in text
    return caught.value


def test_an_error_in_the_code_names_file_and_log(kernel_cache: Path, kernel_tree: Path) -> None:
    (kernel_tree / "block" / "bfq.c").write_text("BROKEN\n")
    error = fails(BuildRequest("mine", str(kernel_tree)), KernelBuildError, "block/bfq.c:1:1", "mine.log")
    assert error.hint is not None
    assert "expected" in Path(error.hint.rpartition(" ")[2]).read_text()
    assert_no_remains(kernel_cache)


def test_a_driver_of_hardware_that_no_guest_has_is_told(kernel_cache: Path, kernel_tree: Path) -> None:
    makefile = kernel_tree / "Makefile"
    rule = "drivers/%.o: drivers/%.c\n\t@cp $< $@\n"
    original = makefile.read_text() + rule
    for folder in ("drivers/base", "drivers/usb"):
        (kernel_tree / folder).mkdir(parents=True)
        (kernel_tree / folder / "core.c").write_text("core\n")
    makefile.write_text(original.replace("init/main.o", "init/main.o drivers/base/core.o", 1))
    build(BuildRequest("taken", str(kernel_tree)))
    makefile.write_text(original.replace("init/main.o", "init/main.o drivers/usb/core.o", 1))
    request = BuildRequest("left-out", str(kernel_tree))
    fails(
        request, KernelBuildError, "'drivers/usb/core.o'", "does not copy its source", "leave out the option"
    )


def test_a_failed_variant_leaves_what_was_there(kernel_cache: Path, kernel_tree: Path) -> None:
    stock, _ = build(BuildRequest("mine", str(kernel_tree)))
    before = state_of(kernel_cache / "trees")
    (kernel_tree / "block" / "bfq.c").write_text("BROKEN\n")
    fails(BuildRequest("mine", str(kernel_tree)), KernelBuildError)
    assert state_of(kernel_cache / "trees") == before
    assert store.find("mine") == stock
    (kernel_tree / "block" / "bfq.c").write_text("mended\n")
    assert build(BuildRequest("mine", str(kernel_tree)))[0].record.compiled_files == 1


def torn_patch(patch: Path, folder: Path) -> Path:
    """The same patch with a context line that no source has."""
    torn = folder / "torn.patch"
    torn.write_text(patch.read_text().replace("/* line 11 */", "/* line 99 */"))
    return torn


def test_a_patch_that_does_not_apply(
    kernel_cache: Path, kernel_tree: Path, kernel_patch: Path, tmp_path: Path
) -> None:
    torn = torn_patch(kernel_patch, tmp_path)
    fails(
        BuildRequest("slow", str(kernel_tree), patches=[str(torn)]),
        PatchError,
        "block/kyber.c: hunk 1",
        "torn.patch",
    )
    assert_no_remains(kernel_cache)


def test_a_patch_that_does_not_apply_is_told_before_anything_is_unpacked(
    kernel_cache: Path,
    kernel_tree: Path,
    kernel_patch: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    archive = tmp_path / "linux.tar.xz"
    subprocess.run(["tar", "-C", kernel_tree.parent, "-cJf", archive, kernel_tree.name], check=True)
    torn = torn_patch(kernel_patch, tmp_path)
    elsewhere = tmp_path / "elsewhere.patch"
    elsewhere.write_text(kernel_patch.read_text().replace("kyber.c", "elsewhere.c"))
    announced: list[str] = []

    class Watcher(SilentBuildObserver):
        def announce(self, line: str) -> None:
            announced.append(line)

    def told(patch: Path, source: Path, *words: str) -> None:
        announced.clear()
        with pytest.raises(PatchError) as caught:
            build(BuildRequest("slow", str(source), patches=[str(kernel_patch), str(patch)]), Watcher())
        for word in words:
            assert word in caught.value.message
        assert announced == [f"checking {kernel_patch.name}, {patch.name}"]
        assert not list(scratch.iterdir())

    for source in (archive, kernel_tree):
        told(torn, source, "block/kyber.c: hunk 1", "torn.patch")
        told(elsewhere, source, "block/elsewhere.c: not in this source")
        assert_no_remains(kernel_cache)
    # The kept tree has the patch in it: the trial goes by the source, of which the archive is not read again.
    build(BuildRequest("patched", str(archive), patches=[str(kernel_patch)]))
    monkeypatch.setattr("blklab.guests.kernels.patch_check.unpack", None)
    told(torn, archive, "block/kyber.c: hunk 1")
    told(elsewhere, archive, "block/elsewhere.c: not in this source")
    assert kernel_names() == ["patched"]


def test_a_source_that_cannot_be_built_is_told_before_its_patches(
    kernel_cache: Path, kernel_tree: Path, kernel_patch: Path, tmp_path: Path
) -> None:
    (kernel_tree / "Makefile").write_text("VERSION = 4\nPATCHLEVEL = 18\nSUBLEVEL = 1\nEXTRAVERSION =\n")
    (kernel_tree / "block" / "kyber.c").write_text("of another release\n")
    archive = tmp_path / "linux.tar.gz"
    subprocess.run(["tar", "-C", kernel_tree.parent, "-czf", archive, kernel_tree.name], check=True)
    for source in (archive, kernel_tree):
        request = BuildRequest("slow", str(source), patches=[str(kernel_patch)])
        fails(request, KernelSourceError, "4.18.1", "5.2", str(source))
    assert_no_remains(kernel_cache)


def test_options_that_are_dropped_and_options_that_are_unknown(
    kernel_cache: Path, kernel_tree: Path, tmp_path: Path
) -> None:
    (kernel_tree / "dropped").write_text("CONFIG_IOSCHED_BFQ=y\n")
    fails(
        BuildRequest("mine", str(kernel_tree)),
        KernelLacksError,
        "CONFIG_IOSCHED_BFQ=y",
        "it needs BLOCK and NET",
    )
    assert_no_remains(kernel_cache)
    # ublk is optional, and this source does not know it; null_blk is not optional.
    (kernel_tree / "dropped").write_text("CONFIG_BLK_DEV_UBLK=y\n")
    kernel, _ = build(BuildRequest("mine", str(kernel_tree)))
    assert not kernel.has_ublk
    assert kernel.record.missing_options == ["CONFIG_BLK_DEV_UBLK"]
    (kernel_tree / "dropped").write_text("CONFIG_BLK_DEV_NULL_BLK=y\n")
    fails(
        BuildRequest("mine", str(kernel_tree)),
        KernelLacksError,
        "CONFIG_BLK_DEV_NULL_BLK=y",
        "does not know it",
    )
    # What a tree knows and drops is an error even if it is optional.
    (kernel_tree / "dropped").write_text("CONFIG_BLK_DEV_UBLK=y\n")
    (kernel_tree / "block" / "Kconfig").write_text("config BLK_DEV_UBLK\n\tbool\n\tdepends on SOMETHING\n")
    fails(BuildRequest("mine", str(kernel_tree)), KernelLacksError, "CONFIG_BLK_DEV_UBLK=y", "SOMETHING")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("Makefile", "VERSION = 4\nPATCHLEVEL = 18\nSUBLEVEL = 1\nEXTRAVERSION =\n"), ["4.18.1", "5.2"]),
        (("Makefile", "all:\n\ttrue\n"), ["not a kernel source"]),
        (("arch/um/Kconfig", None), ["no User-mode Linux", "arch/um/Kconfig"]),
    ],
)
def test_sources_that_cannot_be_built(
    kernel_cache: Path, kernel_tree: Path, change: tuple[str, str | None], words: list[str]
) -> None:
    path, text = change
    if text is None:
        (kernel_tree / path).unlink()
    else:
        (kernel_tree / path).write_text(text)
    fails(BuildRequest("mine", str(kernel_tree)), KernelSourceError, str(kernel_tree), *words)
    assert_no_remains(kernel_cache)


def test_too_little_room(kernel_cache: Path, kernel_tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blklab.guests.kernels.building.FIRST_BUILD_BYTES", 1 << 60)
    fails(BuildRequest("mine", str(kernel_tree)), SpaceError, "needs 1024 PiB", "are free", "XDG_CACHE_HOME")
    assert_no_remains(kernel_cache)
    monkeypatch.undo()


def test_room_that_runs_out(kernel_cache: Path, kernel_tree: Path) -> None:
    (kernel_tree / "block" / "bfq.c").write_text("FULL\n")
    fails(BuildRequest("mine", str(kernel_tree)), SpaceError, "became full")
    assert_no_remains(kernel_cache)


def test_a_cache_where_the_kernels_makefiles_do_not_work(
    kernel_tree: Path, kernel_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "with blank"))
    fails(BuildRequest("mine", str(kernel_tree)), UsageError, "spaces")
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    fails(BuildRequest("mine", str(kernel_tree)), SpaceError, "/proc/nowhere")


def test_damaged_entries_are_said_and_built_again(kernel_cache: Path, kernel_tree: Path) -> None:
    kernel, _ = build(BuildRequest("mine", str(kernel_tree)))
    (kernel.folder / "build.json").write_text("{}")
    assert [error.exit_code for error in store.find_all()[1]] == [6]
    again, is_new = build(BuildRequest("mine", str(kernel_tree)))
    assert is_new and again.build_id == kernel.build_id
    (kept,) = (kernel_cache / "trees").iterdir()
    (kept / "tree.json").write_text("torn")
    (kernel_tree / "block" / "bfq.c").write_text("other\n")
    assert build(BuildRequest("mine", str(kernel_tree)))[0].record.compiled_files == 3
