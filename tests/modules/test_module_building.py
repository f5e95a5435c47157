"""From a patch to a module: what is built, what is refused, and what is kept."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blklab.errors import (
    BlklabError,
    FormatError,
    KernelBuildError,
    KernelSourceError,
    PatchError,
    RefusedError,
    UnknownNameError,
)
from blklab.errors import UsageError as BlklabUsageError
from blklab.guests.kernels.patches import read_patch
from blklab.modules import building
from blklab.modules.btf import read_type_information
from blklab.modules.building import ModuleRequest, build_module, plan_module
from blklab.modules.headers import running_release
from blklab.modules.patch_parts import without
from blklab.modules.signing import SigningKey
from blklab.modules.store import find_module, find_modules, remove_module
from modules.small_kernel import KYBER_C, PATCH, RELEASE, SmallKernel

REPOSITORY = Path(__file__).parents[2]


def silent(_line: str) -> None:
    """Ignores progress."""


def test_a_patched_scheduler_is_built_proven_and_kept(
    tmp_path: Path, request_for: Callable[..., ModuleRequest]
) -> None:
    patch = tmp_path / "slow.patch"
    patch.write_text(PATCH)
    module, is_new = build_module(request_for(patches=(str(patch),), scheduler=None), silent)
    assert is_new
    record = module.record
    assert (record.scheduler, record.name, record.module) == ("kyber", "mine", "blklab_mine")
    assert record.proof is not None
    assert record.proof.structures >= 12
    assert record.proof.members > 25
    assert record.proof.constants >= 1
    data = module.file.read_bytes()
    assert b"mine\0" in data
    assert b"kyber\0" not in data
    assert f"version={record.build_id[:16]}".encode() in data
    again, is_new = build_module(request_for(patches=(str(patch),), scheduler=None), silent)
    assert not is_new
    assert again.folder == module.folder
    assert find_module("mine", RELEASE) == module


def test_another_patch_replaces_the_build_of_a_name(
    tmp_path: Path, request_for: Callable[..., ModuleRequest]
) -> None:
    first, _ = build_module(request_for(), silent)
    patch = tmp_path / "slow.patch"
    patch.write_text(PATCH)
    second, _ = build_module(request_for(patches=(str(patch),)), silent)
    assert second.record.build_id != first.record.build_id
    assert not first.folder.exists()
    assert [module.record.name for module in find_modules()[0]] == ["mine"]
    assert remove_module("mine") == [RELEASE]
    assert not second.folder.exists()
    with pytest.raises(UnknownNameError, match="there is no module mine"):
        find_module("mine", RELEASE)


MISMATCHES = [
    ("blk-mq.h", "int tag;", "int padding; int tag;", "request"),
    ("blk-mq.h", "int tag;", "short tag;", "request.tag has 2 bytes"),
    (
        "blk-mq.h",
        "struct bio *bi_next; unsigned int bi_opf;",
        "unsigned int bi_opf; struct bio *bi_next;",
        "bio.",
    ),
    ("blk-mq.h", "int nr_requests;", "", "has no member nr_requests"),
    ("blk-mq.h", "long seq;", "int seq, more;", "request.flush.seq has 4 bytes"),
    ("blk-mq.h", "BLK_MQ_F_STACKING = 4", "BLK_MQ_F_STACKING = 2", "BLK_MQ_F_STACKING is 2"),
    ("blk-mq.h", "struct gendisk { int major; };", "", "the headers have no struct gendisk"),
    (
        "elevator.h",
        "registered:1, dying:2",
        "dying:2, registered:1",
        "elevator_queue.registered has bits 66 to 66",
    ),
    ("elevator.h", "dying:2", "dying:3", "elevator_queue.dying has bits 65 to 67"),
    (
        "elevator.h",
        "int (*init_sched)(void);",
        "int (*init_sched)(void); int (*exit)(void);",
        "elevator_mq_ops has 16",
    ),
]


@pytest.mark.parametrize(("file", "before", "after", "complaint"), MISMATCHES)
def test_private_headers_of_another_layout_are_refused(
    kernel: SmallKernel,
    request_for: Callable[..., ModuleRequest],
    file: str,
    before: str,
    after: str,
    complaint: str,
) -> None:
    kernel.change(f"block/{file}", before, after)
    with pytest.raises(RefusedError, match="do not fit the kernel") as raised:
        build_module(request_for(), silent)
    assert complaint in raised.value.message
    assert not find_modules()[0]


def test_a_source_of_another_version_is_refused(
    kernel: SmallKernel, request_for: Callable[..., ModuleRequest]
) -> None:
    kernel.change("Makefile", "192", "190")
    with pytest.raises(RefusedError, match=r"is Linux 6\.1\.190, and the headers are of 6\.1\.192"):
        plan_module(request_for(), silent)


def test_an_archive_of_another_package_version_is_refused(
    tmp_path: Path, kernel: SmallKernel, request_for: Callable[..., ModuleRequest]
) -> None:
    """Debian changes files without changing the kernel's own number."""
    for version, fits in (("6.1.192-2", False), ("6.1.192-3", True)):
        archive = tmp_path / f"linux-source-6.1_{version}.tar.xz"
        with tarfile.open(archive, "w:xz") as made:
            made.add(kernel.source, "linux-source-6.1")
        if fits:
            assert plan_module(request_for(source=str(archive)), silent).source.package == version
        else:
            with pytest.raises(RefusedError, match=r"6\.1\.192-2, and the headers are of 6\.1\.192-3"):
                plan_module(request_for(source=str(archive)), silent)


def test_headers_of_another_kernel_are_refused(request_for: Callable[..., ModuleRequest]) -> None:
    with pytest.raises(RefusedError, match=f"has the headers of Linux {RELEASE}"):
        plan_module(request_for(release="6.1.0-56-amd64"), silent)


def test_headers_of_another_build_of_the_running_kernel_are_refused(
    request_for: Callable[..., ModuleRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.release", lambda: RELEASE)
    monkeypatch.setattr("platform.version", lambda: "#1 SMP Debian 6.1.192-2 (2026-11-20)")
    with pytest.raises(RefusedError, match="the running kernel is the build"):
        plan_module(request_for(), silent)


def test_without_type_information_only_an_unproven_module_is_built(
    request_for: Callable[..., ModuleRequest],
) -> None:
    with pytest.raises(RefusedError, match="cannot be proven"):
        plan_module(request_for(types=None), silent)
    module, _ = build_module(request_for(types=None, unproven=True), silent)
    assert module.record.proof is None


ELSEWHERE = [
    ("block/blk-mq.c", "part of the running kernel"),
    ("block/blk-mq.h", "was built with that header as it was"),
    ("block/mq-deadline.c", "it belongs to mq-deadline"),
    ("block/Makefile", "needs neither Kconfig nor"),
]


@pytest.mark.parametrize(("file", "reason"), ELSEWHERE)
def test_changes_elsewhere_are_refused_with_the_reason(
    tmp_path: Path, request_for: Callable[..., ModuleRequest], file: str, reason: str
) -> None:
    patch = tmp_path / "wide.patch"
    patch.write_text(f"{PATCH}--- a/{file}\n+++ b/{file}\n@@ -1,1 +1,2 @@\n obj-y := elevator.o\n+more\n")
    with pytest.raises(PatchError, match=reason):
        plan_module(request_for(patches=(str(patch),)), silent)


def test_a_patch_that_does_not_apply_is_refused(
    tmp_path: Path, request_for: Callable[..., ModuleRequest]
) -> None:
    patch = tmp_path / "old.patch"
    patch.write_text(PATCH.replace("static int kyber_init", "static long kyber_init"))
    with pytest.raises(PatchError, match="does not apply"):
        plan_module(request_for(patches=(str(patch),)), silent)


def test_a_new_scheduler_comes_as_one_file_or_as_a_patch(
    tmp_path: Path, request_for: Callable[..., ModuleRequest]
) -> None:
    text = KYBER_C.replace('"kyber"', '"adios"')
    file = tmp_path / "adios.c"
    file.write_text(text)
    module, _ = build_module(request_for("adios2", scheduler=None, scheduler_file=str(file)), silent)
    assert (module.record.scheduler, module.record.is_new) == ("adios", True)
    patch = tmp_path / "adios.patch"
    patch.write_text(
        "--- a/block/Makefile\n+++ b/block/Makefile\n@@ -1,1 +1,2 @@\n obj-y := elevator.o\n"
        "+obj-m += adios.o\n--- a/block/Kconfig.iosched\n+++ b/block/Kconfig.iosched\n@@ -9,1 +9,2 @@\n"
        f"+config ADIOS\n config IOSCHED_BFQ\n{_adding('block/adios.c', text)}"
    )
    module, _ = build_module(request_for("adios3", scheduler=None, patches=(str(patch),)), silent)
    assert (module.record.scheduler, module.record.is_new) == ("adios", True)


TRACED = """\
#undef TRACE_SYSTEM
#define TRACE_SYSTEM adios
static const char system[] __attribute__((used)) = TRACED(TRACE_SYSTEM);
"""


def test_a_patch_may_add_the_trace_points_of_its_scheduler(
    tmp_path: Path, request_for: Callable[..., ModuleRequest]
) -> None:
    """Their system gets the module's name, as a stock scheduler's does."""
    text = KYBER_C.replace('"kyber"', '"adios"').replace(
        "struct kyber_data",
        "#define TEXT(word) #word\n#define TRACED(word) TEXT(word)\n"
        "#define CREATE_TRACE_POINTS\n#include <trace/events/adios.h>\nstruct kyber_data",
    )
    patch = tmp_path / "adios.patch"
    patch.write_text(_adding("block/adios.c", text) + _adding("include/trace/events/adios.h", TRACED))
    module, _ = build_module(request_for("mine", scheduler=None, patches=(str(patch),)), silent)
    assert (module.record.scheduler, module.record.is_new) == ("adios", True)
    assert b"blklab_mine\0" in module.file.read_bytes()


def test_a_header_of_the_kernel_stays_as_it_is(
    tmp_path: Path, request_for: Callable[..., ModuleRequest]
) -> None:
    patch = tmp_path / "adios.patch"
    text = KYBER_C.replace('"kyber"', '"adios"')
    patch.write_text(_adding("block/adios.c", text) + _adding("include/linux/adios.h", TRACED))
    with pytest.raises(PatchError, match=r"changes include/linux/adios\.h"):
        plan_module(request_for(scheduler=None, patches=(str(patch),)), silent)


def _adding(path: str, text: str) -> str:
    """A patch that adds a file."""
    lines = text.splitlines(keepends=True)
    added = "".join(f"+{line}" for line in lines)
    return f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n{added}"


def test_a_part_of_a_patch_ends_with_its_last_hunk(tmp_path: Path) -> None:
    """A line that is removed may look like the start of another file."""
    removed = "--- a/block/a.c\n+++ b/block/a.c\n@@ -1,2 +1,1 @@\n--- a/block/b.c\n int a;\n"
    other = "--- a/block/b.c\n+++ b/block/b.c\n@@ -1 +1 @@\n-int b;\n+int c;\n"
    file = tmp_path / "two.patch"
    file.write_text(f"{removed}{other}")
    left = without(read_patch(str(file)), ("block/a.c",))
    assert (left.content.decode(), left.files) == (other, ("block/b.c",))


def test_an_edited_file_of_a_stock_scheduler_is_a_variant_of_it(
    tmp_path: Path, request_for: Callable[..., ModuleRequest]
) -> None:
    file = tmp_path / "edited.c"
    file.write_text(KYBER_C)
    plan = plan_module(request_for(scheduler=None, scheduler_file=str(file)), silent)
    assert (plan.scheduler.scheduler, plan.scheduler.is_new) == ("kyber", False)


def test_a_mistake_in_the_code_is_shown(tmp_path: Path, request_for: Callable[..., ModuleRequest]) -> None:
    patch = tmp_path / "wrong.patch"
    patch.write_text(PATCH.replace("mdelay(100);", "mdelay(100;"))
    with pytest.raises(KernelBuildError, match=r"kyber-iosched\.c:\d+"):
        build_module(request_for(patches=(str(patch),)), silent)


def test_all_that_a_changed_interface_breaks_is_shown(
    tmp_path: Path, request_for: Callable[..., ModuleRequest]
) -> None:
    """By names that the user has: the folder of the build is removed."""
    file = tmp_path / "adios.c"
    broken = "\n".join(f"int use{number}(void) {{ return gone{number}; }}" for number in range(8))
    file.write_text(f"{KYBER_C}{broken}\n".replace('"kyber"', '"adios"'))
    with pytest.raises(KernelBuildError) as raised:
        build_module(request_for(scheduler=None, scheduler_file=str(file)), silent)
    message = raised.value.message
    assert message.startswith("the module could not be built: adios.c:")
    assert [f"gone{number}" in message for number in range(8)] == [True] * 6 + [False] * 2
    assert message.endswith("; and 2 more")


@pytest.mark.parametrize("name", ["kyber", "none", "copy", "much-too-long-name", "Mine", "a.b"])
def test_names_that_the_kernel_cannot_choose_are_refused(
    request_for: Callable[..., ModuleRequest], name: str
) -> None:
    with pytest.raises(BlklabUsageError):
        plan_module(request_for(name), silent)


def test_a_missing_source_is_named_before_missing_headers(
    request_for: Callable[..., ModuleRequest], tmp_path: Path
) -> None:
    missing = str(tmp_path / "linux")
    with pytest.raises(UnknownNameError, match=f"there is no kernel source {missing}"):
        plan_module(request_for(headers=None, release="1.2.3-none", source=missing), silent)


def test_missing_headers_are_named_with_the_way_to_get_them(
    request_for: Callable[..., ModuleRequest],
) -> None:
    with pytest.raises(KernelSourceError, match="are not installed") as raised:
        plan_module(request_for(headers=None, release="1.2.3-none"), silent)
    assert raised.value.hint


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "not said which scheduler"),
        ({"scheduler_file": str(REPOSITORY / "README.md")}, r"README\.md cannot be compiled"),
        (
            {"patches": (str(REPOSITORY / "tests/torture/requeued-durable-writes.patch"),)},
            "the patches change no scheduler",
        ),
        (
            {"patches": (str(REPOSITORY / "tests/torture/planted-mistakes.patch"),), "scheduler": "kyber"},
            "part of the running kernel",
        ),
    ],
)
def test_mistakes_of_the_request_come_before_missing_headers(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    request = ModuleRequest("mine", headers=tmp_path, **arguments)
    with pytest.raises(BlklabError, match=message):
        plan_module(request, silent)


def test_a_damaged_build_is_built_again(request_for: Callable[..., ModuleRequest]) -> None:
    module, _ = build_module(request_for(), silent)
    module.file.write_bytes(b"damaged")
    again, is_new = build_module(request_for(), silent)
    assert is_new
    assert again.is_intact


def test_a_module_is_signed_where_the_kernel_wants_it(
    tmp_path: Path, request_for: Callable[..., ModuleRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_module(request_for(), silent)
    here = replace(plan, headers=replace(plan.headers, release=running_release()))
    monkeypatch.setattr(building, "wants_signature", lambda: "the kernel is locked down (integrity)")
    monkeypatch.setattr(building, "find_key", lambda: None)
    _, notes = building._sign_if_wanted(here, tmp_path / "x.ko")
    assert "mokutil --import" in notes[0]
    signer = plan.headers.folder / "scripts/sign-file"
    signer.parent.mkdir()
    signer.write_text('#!/bin/sh\nprintf "signed with $1 $2" >> "$4"\n')
    signer.chmod(0o755)
    monkeypatch.setattr(building, "find_key", lambda: SigningKey(Path("/k/mok.key"), Path("/k/mok.pub")))
    (tmp_path / "x.ko").write_bytes(b"")
    signed_with, _ = building._sign_if_wanted(here, tmp_path / "x.ko")
    assert signed_with == "/k/mok.key"
    assert (tmp_path / "x.ko").read_text() == "signed with sha256 /k/mok.key"


def test_type_information_is_that_of_the_compiler(kernel: SmallKernel) -> None:
    """The offsets of unnamed structures and bit fields, against those that readelf's producer wrote."""
    types = read_type_information(kernel.types)
    (request,) = types.layouts("struct request")
    offsets = {member.path: member.offset_bits // 8 for member in request.members}
    assert offsets["flush.next"] == 16
    assert offsets["priv"] == 8
    assert offsets["ref.counter"] == 24
    assert offsets["tag"] == 28
    (queue,) = types.layouts("struct elevator_queue")
    assert [(m.path, m.offset_bits, m.bits) for m in queue.members if m.bits] == [
        ("registered", 64, 1),
        ("dying", 65, 2),
    ]
    assert types.constants["BLK_MQ_F_STACKING"] == {4}


def test_cut_type_information_is_refused(kernel: SmallKernel, tmp_path: Path) -> None:
    section = tmp_path / "btf"
    command = ["objcopy", "-O", "binary", "--set-section-flags", ".BTF=alloc", "-j", ".BTF"]
    subprocess.run([*command, str(kernel.types), str(section)], check=True)
    whole = section.read_bytes()
    read_type_information(section)
    for length in (0, 3, 20, len(whole) // 2, len(whole) - 1):
        section.write_bytes(whole[:length])
        with pytest.raises(FormatError, match="no type information"):
            read_type_information(section)
