"""Schedulers that are one file: added to a source, built, offered, and gone from the next build."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.errors import PatchError, UnknownNameError
from blklab.guests.kernels.building import BuildRequest, build, plan_build
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.guests.kernels.scheduler_files import read_scheduler_files
from blklab.shipped import shipped_folder

SCHEDULER = 'static struct elevator_type t = { .elevator_name = "mine" };\n'


@pytest.fixture
def tree(kernel_cache: Path, kernel_tree: Path) -> Path:
    """The stand-in source, with the makefile and options of a block layer."""
    del kernel_cache
    makefile = kernel_tree / "Makefile"
    objects = "objects := block/bfq.o"
    reads = f"-include .config\ninclude block/Makefile\n{objects} $(addprefix block/,$(obj-y))"
    makefile.write_text(makefile.read_text().replace(objects, reads))
    (kernel_tree / "block" / "Makefile").write_text("obj-y :=\n")
    (kernel_tree / "block" / "Kconfig.iosched").write_text('menu "IO Schedulers"\nendmenu\n')
    return kernel_tree


@pytest.fixture
def scheduler(tmp_path: Path) -> Path:
    path = tmp_path / "my-scheduler.c"
    path.write_text(SCHEDULER)
    return path


def build_with(tree: Path, *files: Path, name: str = "mine") -> KernelBuild:
    return build(BuildRequest(name, str(tree), scheduler_files=[str(path) for path in files]))[0]


def test_a_scheduler_is_built_and_offered(tree: Path, scheduler: Path) -> None:
    kernel = build_with(tree, scheduler)
    assert kernel.schedulers == ("none", "mq-deadline", "kyber", "bfq", "mine")
    assert kernel.config["CONFIG_MQ_IOSCHED_MY_SCHEDULER"] == "y"
    assert SCHEDULER in kernel.linux.read_text()
    assert [patch.files[0] for patch in kernel.record.patches] == ["block/my-scheduler.c"]
    assert not (tree / "block" / "my-scheduler.c").exists()


def test_the_next_build_is_without_it(tree: Path, scheduler: Path) -> None:
    build_with(tree, scheduler)
    plain = build_with(tree, name="plain")
    assert plain.schedulers == ("none", "mq-deadline", "kyber", "bfq")
    assert SCHEDULER not in plain.linux.read_text()


def test_an_edit_makes_another_kernel(tree: Path, scheduler: Path) -> None:
    before = build_with(tree, scheduler)
    scheduler.write_text(SCHEDULER + "/* faster */\n")
    after = build_with(tree, scheduler)
    assert after.build_id != before.build_id and "faster" in after.linux.read_text()


def test_a_scheduler_that_comes_as_a_patch_is_offered_too(tree: Path, tmp_path: Path) -> None:
    patch = tmp_path / "new.patch"
    new = f"--- /dev/null\n+++ b/block/new.c\n@@ -0,0 +1 @@\n+{SCHEDULER}"
    patch.write_text(
        f"{new}--- a/block/Makefile\n+++ b/block/Makefile\n@@ -1 +1 @@\n-obj-y :=\n+obj-y := new.o\n"
    )
    assert build(BuildRequest("patched", str(tree), [str(patch)]))[0].schedulers[-1] == "mine"


def test_names_that_the_source_has_already_are_refused(tree: Path, scheduler: Path) -> None:
    taken = scheduler.with_name("kyber.c")
    taken.write_text(SCHEDULER)
    with pytest.raises(PatchError, match=r"block/kyber\.c: this source has a file of that name"):
        build_with(tree, taken)
    (tree / "block" / "Makefile").unlink()
    with pytest.raises(PatchError, match="block/Makefile: not in this source"):
        build_with(tree, scheduler)


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("a b.c", SCHEDULER, "cannot become a file of block/"),
        ("mine.txt", SCHEDULER, "cannot become a file of block/"),
        ("mine.c", "int x;\n", "no times"),
        ("mine.c", SCHEDULER * 2, "2 times"),
        ("mine.c", SCHEDULER.replace("mine", "kyber"), "there is a scheduler kyber already"),
        ("mine.c", SCHEDULER.replace("mine", "a-name-that-is-long"), "more than 15 letters"),
    ],
)
def test_files_that_are_no_scheduler(tmp_path: Path, name: str, text: str, word: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(PatchError, match=word):
        read_scheduler_files([str(tmp_path / name)])
    with pytest.raises(UnknownNameError, match="lost"):
        read_scheduler_files(["lost.c"])


def test_every_shipped_scheduler_can_be_added() -> None:
    for path in sorted((shipped_folder("kernel") / "schedulers").glob("*/*.c")):
        (scheduler,) = read_scheduler_files([str(path)])
        assert scheduler.path.parent.name == path.stem
        assert "SPDX-License-Identifier: GPL-2.0" in path.read_text()
        assert "blklab kernel build" in (path.parent / "README.md").read_text()


def test_a_plan_names_it(tree: Path, scheduler: Path) -> None:
    plan = plan_build(BuildRequest("mine", str(tree), scheduler_files=[str(scheduler)]))
    assert [patch.name for patch in plan.patches] == ["my-scheduler.c"]
    assert plan.options["CONFIG_MQ_IOSCHED_MY_SCHEDULER"].value == "y"
