"""Names, removal, and keeping a kernel while a guest runs on it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from blklab.errors import KernelCacheError, KernelInUseError, UnknownNameError, UsageError
from blklab.guests.kernels import store
from blklab.guests.kernels.building import BuildRequest, build
from blklab.guests.kernels.names import kernel_names

GUEST = """
import sys
from blklab.guests.kernels import store
with store.find(sys.argv[1]).in_use():
    print("running", flush=True)
    sys.stdin.read()
"""


@contextmanager
def guest_on(name: str) -> Iterator[None]:
    """Another process that uses a kernel."""
    with subprocess.Popen(
        [sys.executable, "-c", GUEST, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "running\n"
        try:
            yield
        finally:
            process.stdin.close()
            process.wait()


def test_an_unknown_kernel_says_how_to_build_it(kernel_cache: Path, kernel_tree: Path) -> None:
    with pytest.raises(UnknownNameError) as caught:
        store.find("nobody")
    assert "nobody" in caught.value.message
    assert caught.value.hint is not None and "blklab kernel build nobody" in caught.value.hint
    build(BuildRequest("stock", str(kernel_tree)))
    with pytest.raises(UnknownNameError, match="there is no kernel nobody; there are stock"):
        store.find("nobody")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../stock", "a b", "a,b", "a@b", "-x", "x" * 65, "ä"])
def test_names_that_cannot_be(kernel_cache: Path, name: str) -> None:
    for use in (store.find, store.remove):
        with pytest.raises(UsageError):
            use(name)


def test_a_kernel_in_use_is_not_removed(kernel_cache: Path, kernel_tree: Path) -> None:
    build(BuildRequest("stock", str(kernel_tree)))
    with guest_on("stock"):
        with pytest.raises(KernelInUseError, match="a guest runs on it"):
            store.remove("stock")
        assert store.find("stock").linux.is_file()
        with store.find("stock").in_use():  # guests do not keep each other out
            pass
    store.remove("stock")
    assert kernel_names() == []
    assert not list((kernel_cache / "builds").iterdir())
    assert not list((kernel_cache / "trees").iterdir())


def test_a_guest_keeps_its_kernel_when_the_name_moves_on(kernel_cache: Path, kernel_tree: Path) -> None:
    former, _ = build(BuildRequest("mine", str(kernel_tree)))
    with guest_on("mine"):
        (kernel_tree / "block" / "bfq.c").write_text("other\n")
        build(BuildRequest("mine", str(kernel_tree)))
        assert former.linux.is_file()
        assert store.find("mine").build_id != former.build_id
    build(BuildRequest("another", str(kernel_tree)))
    assert not former.folder.exists()  # the next change clears away what nobody names or uses


def test_a_kernel_that_was_removed_since_it_was_found(kernel_cache: Path, kernel_tree: Path) -> None:
    kernel, _ = build(BuildRequest("stock", str(kernel_tree)))
    store.remove("stock")
    with pytest.raises(UnknownNameError), kernel.in_use():
        pytest.fail("it is gone")


def test_a_build_goes_with_its_last_name(kernel_cache: Path, kernel_tree: Path, kernel_patch: Path) -> None:
    kernel, _ = build(BuildRequest("one", str(kernel_tree)))
    build(BuildRequest("two", str(kernel_tree)))
    build(BuildRequest("slow", str(kernel_tree), patches=[str(kernel_patch)]))
    with guest_on("one"):
        store.remove("two")  # the guest's kernel has another name left
    assert kernel_names() == ["one", "slow"]
    assert kernel.linux.is_file()
    store.remove("one")
    assert not kernel.folder.exists()
    assert list((kernel_cache / "trees").iterdir())  # `slow` is of the same source
    store.remove("slow")
    assert not list((kernel_cache / "trees").iterdir())


def test_trees_can_go_alone(kernel_cache: Path, kernel_tree: Path, kernel_patch: Path) -> None:
    kernel, _ = build(BuildRequest("stock", str(kernel_tree)))
    assert store.remove_trees() > 0
    assert not list((kernel_cache / "trees").iterdir())
    assert store.find("stock") == kernel
    slow, _ = build(BuildRequest("slow", str(kernel_tree), patches=[str(kernel_patch)]))
    assert slow.record.compiled_files == 3


def test_damage_is_said_and_can_be_removed(kernel_cache: Path, kernel_tree: Path) -> None:
    kernel, _ = build(BuildRequest("stock", str(kernel_tree)))
    content = json.loads((kernel.folder / "build.json").read_text())
    (kernel.folder / "build.json").write_text(json.dumps({**content, "format": 99}))
    with pytest.raises(KernelCacheError, match="another version"):
        store.find("stock")
    (kernel.folder / "build.json").write_text(json.dumps(content))
    kernel.linux.unlink()
    with pytest.raises(KernelCacheError, match="lacks its program"):
        store.find("stock")
    store.remove("stock")
    assert kernel_names() == []


def test_require_scheduler(kernel_cache: Path, kernel_tree: Path) -> None:
    kernel, _ = build(BuildRequest("stock", str(kernel_tree)))
    kernel.require_scheduler("none")
