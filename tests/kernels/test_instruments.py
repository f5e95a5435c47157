"""Instruments: applied where they fit, reported where they do not, and never a reason to compile twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blklab.cli import run
from blklab.guests.kernels.building import BuildRequest, build, plan_build
from blklab.guests.kernels.patches import Patch, read_patch, shipped_instruments, shipped_patches
from stand_in_source import PATCH

USER_MODE_LINUX = ("arch/um/", "arch/x86/um/")
TOUCHED_BESIDE = {
    "drivers/block/ublk_drv.c",
    "include/linux/processor_time.h",
    "include/trace/events/block.h",
    "include/trace/events/sched.h",
}
"""Files outside User-mode Linux: the disks' driver, and the headers of trace points."""
BFQ_AND_MAIN = """\
--- a/block/bfq.c
+++ b/block/bfq.c
@@ -1 +1,2 @@
 bfq
+exact
--- a/init/main.c
+++ b/init/main.c
@@ -1 +1,2 @@
 main
+exact
"""


def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> Patch:
    """Makes a text the only instrument, under the name ``exact-clock``."""
    path = tmp_path / "exact-clock.patch"
    path.write_text(text)
    instrument = read_patch(str(path))
    monkeypatch.setattr("blklab.guests.kernels.building.shipped_instruments", lambda: (instrument,))
    return instrument


def test_an_instrument_is_applied_recorded_and_compiled_once(
    kernel_cache: Path, kernel_tree: Path, kernel_patch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instrument = install(monkeypatch, tmp_path, BFQ_AND_MAIN)
    stock, _ = build(BuildRequest("stock", str(kernel_tree)))
    assert stock.linux.read_bytes().count(b"exact") == 2
    assert stock.instruments == ("exact-clock",) and stock.lacks == ()
    assert stock.record.instruments[0].sha256 == instrument.sha256
    assert stock.record.patches == []
    assert (kernel_tree / "block" / "bfq.c").read_text() == "bfq\n"
    slow, _ = build(BuildRequest("slow", str(kernel_tree), patches=[str(kernel_patch)]))
    assert slow.record.compiled_files == 1
    assert slow.linux.read_bytes().count(b"exact") == 2


def test_the_pure_source_is_another_build(
    kernel_cache: Path, kernel_tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, BFQ_AND_MAIN)
    pure_first, _ = build(BuildRequest("pure", str(kernel_tree), with_instruments=False))
    assert pure_first.instruments == () and pure_first.record.instruments == []
    assert b"exact" not in pure_first.linux.read_bytes()
    stock, is_new = build(BuildRequest("stock", str(kernel_tree)))
    assert is_new and stock.record.compiled_files == 2
    assert stock.build_id != pure_first.build_id
    for name in ("pure", "stock"):
        assert run(["kernel", "remove", name]) == 0
    # The other way round: the objects that are kept have the instrument in them.
    build(BuildRequest("stock", str(kernel_tree)))
    pure, _ = build(BuildRequest("pure", str(kernel_tree), with_instruments=False))
    assert pure.record.compiled_files == 2
    assert pure.record.linux_sha256 == pure_first.record.linux_sha256


def test_another_instrument_is_another_build(
    kernel_cache: Path, kernel_tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, BFQ_AND_MAIN)
    before = plan_build(BuildRequest("stock", str(kernel_tree))).build_id
    install(monkeypatch, tmp_path, BFQ_AND_MAIN.replace("exact", "very exact"))
    assert plan_build(BuildRequest("stock", str(kernel_tree))).build_id != before


def test_an_edited_file_gets_the_instrument_too(
    kernel_cache: Path, kernel_tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, PATCH.replace("slower", "exact"))
    build(BuildRequest("mine", str(kernel_tree)))
    kyber = kernel_tree / "block" / "kyber.c"
    kyber.write_text(kyber.read_text() + "edited\n")
    edited, _ = build(BuildRequest("mine", str(kernel_tree)))
    assert edited.record.compiled_files == 1
    assert b"exact" in edited.linux.read_bytes() and b"edited" in edited.linux.read_bytes()
    assert edited.instruments == ("exact-clock",)


def test_one_that_does_not_apply_is_left_out_as_a_whole_and_said(
    kernel_cache: Path,
    kernel_tree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its first file matches the instrument; its second does not."""
    install(monkeypatch, tmp_path, BFQ_AND_MAIN)
    (kernel_tree / "init" / "main.c").write_text("newer main\n")
    words = ["without exact-clock", "does not apply to Linux 6.1.7", "init/main.c: hunk 1"]
    assert run(["kernel", "build", "stock", "--source", str(kernel_tree), "--quiet"]) == 0
    built = capsys.readouterr().out
    assert run(["kernel", "show", "stock"]) == 0
    shown = capsys.readouterr().out
    for word in words:
        assert word in built and word in shown
    assert run(["kernel", "show", "stock", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)["kernel"]
    assert b"exact" not in Path(document["program"]).read_bytes()
    (item,) = document["instruments"]
    assert item["name"] == "exact-clock" and "init/main.c" in item["complaint"]


def test_a_persons_patch_goes_before_an_instrument(
    kernel_cache: Path, kernel_tree: Path, kernel_patch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, PATCH.replace("slower", "exact"))
    kernel, _ = build(BuildRequest("slow", str(kernel_tree), patches=[str(kernel_patch)]))
    assert b"slower" in kernel.linux.read_bytes() and b"exact" not in kernel.linux.read_bytes()
    assert kernel.instruments == () and len(kernel.lacks) == 1


def test_the_command_builds_without_them_if_asked_to(
    kernel_cache: Path, kernel_tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["kernel", "build", "pure", "--source", str(kernel_tree), "--dry-run", "--json", "-"]
    assert run(arguments) == 0
    planned = json.loads(capsys.readouterr().out)["instruments"]
    assert [item["name"] for item in planned] == [patch.path.stem for patch in shipped_instruments()]
    assert run([*arguments, "--no-instruments"]) == 0
    assert json.loads(capsys.readouterr().out)["instruments"] == []


def test_shipped_instruments_stay_away_from_the_block_layer() -> None:
    names = [patch.path.stem for patch in shipped_instruments()]
    assert names == [
        "exact-clock",
        "processor-time",
        "registers-stay",
        "set-ptes",
        "stubs-end-too",
        "whole-xstate",
    ]
    for patch in shipped_instruments():
        assert patch.path.parent.name == patch.path.stem
        outside = {path for path in patch.files if not path.startswith(USER_MODE_LINUX)}
        assert outside <= TOUCHED_BESIDE
        assert b"SPDX-License-Identifier: GPL-2.0" in patch.content
        assert (patch.path.parent / "README.md").is_file()
        assert patch.path.stem not in shipped_patches()
