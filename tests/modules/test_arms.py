"""Choices that name modules: which builds they mean, the placebo beside them, loading and unloading."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import blklab
from blklab.cli import run
from blklab.errors import (
    BlklabError,
    ExitCode,
    KernelCacheError,
    RefusedError,
    RunFailedError,
    UnknownNameError,
)
from blklab.experiment.pipeline import planned_commands
from blklab.linux.journal import module_loading
from blklab.linux.journal import modules as journal_modules
from blklab.linux.journal.journal import Journal
from blklab.linux.journal.module_loading import ModuleInsertion
from blklab.linux.machine.kernel_log import LogLine
from blklab.linux.machine.kernel_mistakes import MistakeWatch, mistakes_in
from blklab.modules import building
from blklab.modules.building import ModuleRequest, build_module
from blklab.modules.headers import find_headers
from blklab.modules.loading import ModuleArms, build_copies, copy_builds, find_arms, with_placebos
from blklab.modules.store import BuiltModule, find_module
from blklab.quantities.notes import Note
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.schedulers import parse_scheduler_choice, parse_scheduler_choices
from blklab.spec.workloads import load_workload
from modules.small_kernel import KYBER_C, RELEASE


def silent(_line: str) -> None:
    """Ignores progress."""


@pytest.fixture
def built(request_for: Callable[..., ModuleRequest], monkeypatch: pytest.MonkeyPatch) -> ModuleRequest:
    """The module mine, on a machine that runs the small kernel."""
    monkeypatch.setattr("platform.release", lambda: RELEASE)
    monkeypatch.setattr("platform.version", lambda: "#1 SMP Debian 6.1.192-3 (2026-11-26)")
    request = request_for()
    build_module(request, silent)
    return request


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("kyber", "kyber"),
        ("kyber@mine", "mine"),
        ("kyber@copy", "kyber-copy"),
        ("bfq@copy:slice_idle=0", "bfq-copy"),
        ("mq-deadline@copy", "mqdeadline-copy"),
    ],
)
def test_the_name_that_the_queue_has(text: str, name: str) -> None:
    assert parse_scheduler_choice(text).name_in_queue == name
    assert len(name) <= 15


def test_a_placebo_and_the_original_are_added(built: ModuleRequest) -> None:
    choices = with_placebos(parse_scheduler_choices("none,kyber@mine:read_lat_nsec=5"))
    assert [choice.canonical for choice in choices] == [
        "none",
        "kyber@mine:read_lat_nsec=5",
        "kyber:read_lat_nsec=5",
        "kyber@copy:read_lat_nsec=5",
    ]
    assert with_placebos(choices) == choices
    assert with_placebos(parse_scheduler_choices("none,kyber")) == parse_scheduler_choices("none,kyber")


def test_a_copy_is_built_from_the_source_of_the_module_beside_it(
    built: ModuleRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = find_headers(RELEASE, built.headers)
    monkeypatch.setattr(building, "find_headers", lambda *_: headers)
    monkeypatch.setattr(building, "RUNNING_TYPES", built.types)
    choices = parse_scheduler_choices("kyber,kyber@copy,kyber@mine")
    with pytest.raises(UnknownNameError, match="there is no module kyber-copy"):
        find_arms(choices)
    build_copies(choices, silent)
    arms = find_arms(choices)
    assert [module.record.name for module in arms.modules] == ["kyber-copy", "mine"]
    assert all(module.record.source == built.source for module in arms.modules)
    assert "no patch" in arms.remarks[0]
    assert all(isinstance(remark, Note) for remark in arms.remarks)


def test_the_file_of_a_scheduler_is_named(
    built: ModuleRequest, request_for: Callable[..., ModuleRequest], tmp_path: Path
) -> None:
    file = tmp_path / "wise.c"
    file.write_text(KYBER_C.replace('"kyber"', '"wise"'))
    build_module(request_for("wise", scheduler=None, scheduler_file=str(file)), silent)
    (remark,) = find_arms(parse_scheduler_choices("wise@wise")).remarks
    assert ": wise.c; not through the gate" in remark


def test_the_printed_build_of_a_copy_takes_the_source_of_the_module_beside_it(built: ModuleRequest) -> None:
    (build,) = copy_builds(parse_scheduler_choices("kyber@copy,kyber@copy:read_lat_nsec=5,kyber@mine"))
    words = [
        "blklab",
        "kernel",
        "module",
        "kyber-copy",
        "--scheduler",
        "kyber",
        "--source",
        str(built.source),
    ]
    assert build.shell() == [shlex.join(words)]
    (plain,) = copy_builds(parse_scheduler_choices("bfq@copy"))
    assert plain.shell() == ["blklab kernel module bfq-copy --scheduler bfq"]


def test_a_dry_run_builds_a_copy_once_and_loads_it_in_each_run(tmp_path: Path) -> None:
    """As the comparison does, which builds before it opens the disk."""
    spec = ExperimentSpec(
        target=f"loop:600m,dir={tmp_path}",
        schedulers=parse_scheduler_choices("none,kyber@copy"),
        workloads=[load_workload("random-read-4k-qd1")],
        blocks=1,
    )
    (title, builds), *runs = planned_commands(spec, blocks=1)[1]
    assert "before the first run" in title
    assert builds == ["blklab kernel module kyber-copy --scheduler kyber"]
    lines = [line for _, commands in runs for line in commands]
    assert not any("kernel module" in line for line in lines)
    assert sum(line.startswith("insmod") for line in lines) == 1


def test_a_module_that_nothing_proves_is_warned_of(built: ModuleRequest) -> None:
    (module,) = find_arms(parse_scheduler_choices("kyber@mine")).modules
    unproven = replace(module, record=module.record.model_copy(update={"proof": None}))
    (remark,) = ModuleArms({("kyber", "mine"): unproven}).remarks
    assert "unproven" in remark
    assert not isinstance(remark, Note)


def test_a_new_scheduler_has_no_copy(built: ModuleRequest) -> None:
    with pytest.raises(RefusedError, match="no unchanged copy"):
        build_copies(parse_scheduler_choices("adios@copy"), silent)


def test_a_module_of_another_scheduler_is_named(built: ModuleRequest) -> None:
    with pytest.raises(UnknownNameError, match="a variant of kyber, not of bfq"):
        find_arms(parse_scheduler_choices("bfq@mine"))
    with pytest.raises(UnknownNameError, match="there is no module other"):
        find_arms(parse_scheduler_choices("kyber@other"))


def test_a_module_that_was_changed_is_not_loaded(built: ModuleRequest) -> None:
    (module,) = find_arms(parse_scheduler_choices("kyber@mine")).modules
    module.file.write_bytes(module.file.read_bytes() + b"!")
    with pytest.raises(KernelCacheError, match="is not the file that was built"):
        find_arms(parse_scheduler_choices("kyber@mine"))


class Kernel:
    """Loads and unloads files."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.loaded: dict[str, str] = {}
        patch.setattr(module_loading, "insert_module", lambda path: self.loaded.update({path.stem: "v1"}))
        patch.setattr(module_loading, "module_version", lambda module: self.loaded[module])
        patch.setattr("blklab.linux.journal.journal.is_loaded", self.is_loaded)
        patch.setattr(module_loading, "is_loaded", self.is_loaded)
        patch.setattr(journal_modules, "is_loaded", self.is_loaded)
        patch.setattr(journal_modules, "unload_module", lambda module: self.loaded.pop(module) and None)

    def is_loaded(self, module: str) -> bool:
        """Whether a module is loaded."""
        return module in self.loaded


def test_a_module_is_recorded_loaded_and_unloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLKLAB_STATE_DIR", str(tmp_path / "state"))
    kernel = Kernel(monkeypatch)
    with Journal.create("run-1", "a test") as journal:
        ModuleInsertion(Path("/x/blklab_mine.ko"), "v1", journal).make()
        ModuleInsertion(Path("/x/blklab_mine.ko"), "v1", journal).make()
        assert '"module":"blklab_mine"' in journal.path.read_text().replace(" ", "")
        assert kernel.loaded == {"blklab_mine": "v1"}
        with (
            Journal.create("run-2", "a test") as other,
            pytest.raises(RefusedError, match="another build of the module"),
        ):
            ModuleInsertion(Path("/x/blklab_mine.ko"), "v2", other).make()
        assert kernel.loaded
    assert not kernel.loaded


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: CPU: 1 PID: 7 at block/blk-mq.c:1 blk_mq_start_request+0x1",
        "BUG: kernel NULL pointer dereference, address: 0000000000000008",
        "Oops: 0002 [#1] PREEMPT SMP NOPTI",
        "INFO: task fio:812 blocked for more than 120 seconds.",
        "BUG: scheduling while atomic: fio/812/0x00000002",
        "general protection fault, probably for non-canonical address 0xdead: 0000 [#1]",
        "refcount_t: underflow; use-after-free.",
        "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [fio:812]",
    ],
)
def test_mistakes_of_the_kernel_end_a_run(line: str) -> None:
    assert mistakes_in(
        [LogLine("blklab_mine: loading out-of-tree module taints kernel."), LogLine(line)]
    ) == [line]

    class Log:
        def new_lines(self) -> list[LogLine]:
            return [LogLine(line)]

    watch = MistakeWatch(Path("/nonexistent"))
    watch.raise_for_mistakes(["blklab_mine"])
    watch._log = Log()  # type: ignore[assignment]
    with pytest.raises(RunFailedError, match="while the module blklab_mine was loaded"):
        watch.raise_for_mistakes(["blklab_mine"])


@pytest.mark.parametrize(
    "line",
    [
        "EXT4-fs (sda1): warning: mounting unchecked fs",
        "blklab_mine: module verification failed: signature and/or required key missing - tainting kernel",
        "nvme nvme0: I/O tag 458 timeout, aborting",
        "DEBUG: a driver talks",
    ],
)
def test_ordinary_lines_are_none(line: str) -> None:
    assert mistakes_in([LogLine(line)]) == []


def test_models_have_no_modules_and_disks_no_guest_kernels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], built: ModuleRequest
) -> None:
    load = tmp_path / "read.fio"
    load.write_text("[reader]\nrw=randread\nsize=1m\n")
    common = ["-w", str(load), "--store", f"sqlite:///{tmp_path}/runs.sqlite"]
    assert run(["compare", "sim:nvme-tlc", *common, "-s", "kyber,kyber@mine"]) == ExitCode.USAGE
    assert "does not run in a guest kernel" in capsys.readouterr().err
    assert run(["compare", str(tmp_path), *common, "-s", "kyber", "--kernel", "mine"]) == ExitCode.USAGE
    assert "does not run in a guest kernel" in capsys.readouterr().err
    assert run(["compare", str(tmp_path), *common, "-s", "kyber,kyber@other"]) == ExitCode.USAGE
    assert "there is no module other" in capsys.readouterr().err


def test_a_module_is_not_applied(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["apply", "kyber@mine", "--device", "/dev/null"]) != ExitCode.OK
    assert "a module is for trials" in " ".join(capsys.readouterr().err.split())


def test_modules_are_listed_and_removed(capsys: pytest.CaptureFixture[str], built: ModuleRequest) -> None:
    assert run(["kernel", "list", "--json", "-"]) == ExitCode.OK
    (listed,) = json.loads(capsys.readouterr().out)["modules"]
    assert (listed["name"], listed["scheduler"], listed["release"]) == ("mine", "kyber", RELEASE)
    assert run(["kernel", "remove", "--modules", "mine", "--dry-run"]) == ExitCode.OK
    assert "would remove the module mine" in capsys.readouterr().out
    assert find_module("mine").is_intact
    assert run(["kernel", "remove", "--modules", "mine"]) == ExitCode.OK
    assert f"removed the module mine for Linux {RELEASE}" in capsys.readouterr().out
    assert run(["kernel", "remove", "--modules", "mine"]) == ExitCode.USAGE


def test_the_command_builds_and_says_what_it_would_build(
    capsys: pytest.CaptureFixture[str], built: ModuleRequest
) -> None:
    command = ["kernel", "module", "other", "--scheduler", "kyber", "--source", str(built.source)]
    command += ["--headers", str(built.headers), "--btf", str(built.types), "-q"]
    assert run([*command, "--dry-run"]) == ExitCode.OK
    planned = capsys.readouterr().out
    assert f"module blklab_other for Linux {RELEASE}" in planned
    assert "CONFIG_DEBUG_INFO_BTF_MODULES=" in planned
    assert run([*command, "--json", "-"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "blklab.kernel-module/1"
    assert document["built"]
    assert document["module"]["proof"]["members"] > 25


def test_the_python_face_asks_the_gate(built: ModuleRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    def refuse(module: BuiltModule, _: object) -> None:
        asked.append(module.record.name)
        raise RefusedError("mine stays out of this machine's kernel")

    monkeypatch.setattr("blklab.labs.gate.arms.gate_module", refuse)
    monkeypatch.setattr("blklab.api.experiments.run_comparison", lambda *_, **__: 1 / 0)
    experiment: dict[str, Any] = {
        "schedulers": "kyber,kyber@mine",
        "workloads": "random-read-4k-qd1",
        "progress": False,
    }
    with pytest.raises(RefusedError, match="stays out"):
        blklab.compare("loop:64m", **experiment)
    assert asked == ["mine"]
    with pytest.raises(ZeroDivisionError):
        blklab.compare("loop:64m", gate=False, **experiment)
    with pytest.raises(ZeroDivisionError):
        blklab.compare("loop:64m", schedulers="kyber", workloads="random-read-4k-qd1")
    assert asked == ["mine"]
    with pytest.raises(BlklabError, match="gate must be"):
        blklab.compare("loop:64m", **{**experiment, "gate": "no"})
