"""Schedulers that are modules, on made-up machines; loading one needs such a kernel (tests/vm)."""

from __future__ import annotations

import gzip
import lzma
import platform
from pathlib import Path

import pytest
from dead_journals import dead_journal

from blklab.errors import SchedulerUnavailableError
from blklab.linux.cgroups import settings as cgroup_settings
from blklab.linux.disks.disk import Disk
from blklab.linux.journal import journal as journal_module
from blklab.linux.journal import modules as journal_modules
from blklab.linux.journal.journal import Journal
from blklab.linux.journal.recovery import recover
from blklab.linux.machine import scheduler_modules
from blklab.linux.machine.kernel_config import about_option, kernel_options
from blklab.linux.machine.scheduler_modules import SchedulerModules, find_scheduler_modules, module_of
from blklab.linux.queue import schedulers

ALIASES = """# Aliases extracted from modules themselves.
alias char-major-10-234 btrfs
alias bfq-iosched bfq
alias mq-deadline-iosched mq_deadline
"""
DEPENDENCIES = """kernel/block/bfq.ko.xz:
kernel/block/kyber-iosched.ko.xz:
kernel/block/mq-deadline.ko.xz:
"""
ALL_CAPABILITIES = "CapBnd:\t000001ffffffffff\n"
WITHOUT_MODULES = "CapBnd:\t00000000a80425fb\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stock kernel with mq-deadline loaded."""
    monkeypatch.setattr(scheduler_modules, "find_program", lambda name: f"/sbin/{name}")
    folder = tmp_path / "lib/modules" / platform.release()
    (folder / "kernel/block").mkdir(parents=True)
    (folder / "modules.alias").write_text(ALIASES)
    (folder / "modules.dep").write_text(DEPENDENCIES)
    for line in DEPENDENCIES.splitlines():
        signed = lzma.compress(b"\x7fELF~Module signature appended~\n")
        (folder / line.rstrip(":")).write_bytes(signed)
    (tmp_path / "sys/module/mq_deadline").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/self").mkdir()
    (tmp_path / "proc/modules").touch()
    (tmp_path / "proc/sys/kernel/modules_disabled").write_text("0\n")
    (tmp_path / "proc/self/status").write_text(ALL_CAPABILITIES)
    return tmp_path


def test_what_is_not_loaded_is_loadable(machine: Path) -> None:
    found = find_scheduler_modules(machine)
    assert found == SchedulerModules({"bfq": "bfq", "kyber": "kyber_iosched"}, {})
    (machine / "sys/module/kyber_iosched").mkdir()
    assert find_scheduler_modules(machine).loadable == {"bfq": "bfq"}
    assert module_of("kyber", machine) == "kyber_iosched"
    assert module_of("none", machine) is None


def test_a_kernel_without_modules_has_none(machine: Path) -> None:
    (machine / "proc/modules").unlink()
    assert find_scheduler_modules(machine) == SchedulerModules()


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("proc/sys/kernel/modules_disabled", "1\n", "kernel.modules_disabled is 1"),
        ("proc/self/status", WITHOUT_MODULES, "CAP_SYS_MODULE"),
        ("etc/modprobe.d/no.conf", "# no\nblacklist bfq\n", "/etc/modprobe.d/no.conf forbids the module bfq"),
        ("etc/modprobe.d/no.conf", "install bfq /bin/false\n", "forbids the module bfq"),
        ("sys/kernel/security/lockdown", "none [integrity] confidentiality\n", "not signed"),
    ],
)
def test_why_one_is_not_offered(machine: Path, file: str, text: str, reason: str) -> None:
    folder = machine / "lib/modules" / platform.release()
    (folder / "kernel/block/bfq.ko.xz").write_bytes(lzma.compress(b"\x7fELF"))
    assert "bfq" in find_scheduler_modules(machine).loadable
    (machine / file).parent.mkdir(parents=True, exist_ok=True)
    (machine / file).write_text(text)
    found = find_scheduler_modules(machine)
    assert "bfq" not in found.loadable
    assert reason in found.refused["bfq"]


def test_signed_modules_are_offered_under_lockdown(machine: Path) -> None:
    path = machine / "sys/kernel/security/lockdown"
    path.parent.mkdir(parents=True)
    path.write_text("none [integrity] confidentiality\n")
    assert set(find_scheduler_modules(machine).loadable) == {"bfq", "kyber"}


def test_modules_of_a_kernel_that_was_upgraded_meanwhile(machine: Path) -> None:
    for path in (machine / "lib/modules").rglob("*.ko.xz"):
        path.unlink()
    assert "is not in" in find_scheduler_modules(machine).refused["bfq"]


def test_modprobe_is_needed(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_modules, "find_program", lambda _: None)
    assert find_scheduler_modules(machine).refused["kyber"] == "modprobe is missing (apt install kmod)"


def test_the_error_says_the_truth_about_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def hint(modules: SchedulerModules, options: dict[str, str] | None) -> str:
        monkeypatch.setattr(schedulers, "find_scheduler_modules", lambda: modules)
        monkeypatch.setattr(schedulers, "kernel_options", lambda: options)
        error = schedulers.unavailable_scheduler("sda", "bfq", ["none"])
        assert isinstance(error, SchedulerUnavailableError)
        return str(error.hint)

    assert "built without CONFIG_IOSCHED_BFQ" in hint(SchedulerModules(), {"CONFIG_SMP": "y"})
    assert "as a module (CONFIG_IOSCHED_BFQ=m)" in hint(SchedulerModules(), {"CONFIG_IOSCHED_BFQ": "m"})
    assert "configuration is not on this machine" in hint(SchedulerModules(), None)
    assert "a module that is not loaded" in hint(SchedulerModules({"bfq": "bfq"}), None)
    assert hint(SchedulerModules({}, {"bfq": "it is forbidden"}), None).endswith("it is forbidden")


def test_the_error_about_a_weight_names_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SchedulerModules({"bfq": "bfq"})
    monkeypatch.setattr(cgroup_settings, "find_scheduler_modules", lambda: found)
    error = cgroup_settings.missing_attribute(2, "io.bfq.weight")
    assert "it appears once the module of bfq is loaded (modprobe bfq)" in str(error.hint)


def test_the_kernel_s_configuration(tmp_path: Path) -> None:
    assert kernel_options(tmp_path / "none") is None
    text = "CONFIG_BLK_WBT=y\n# CONFIG_BLK_CGROUP_IOLATENCY is not set\nCONFIG_IOSCHED_BFQ=m\n"
    boot = tmp_path / "a/boot" / f"config-{platform.release()}"
    boot.parent.mkdir(parents=True)
    boot.write_text(text)
    proc = tmp_path / "b/proc/config.gz"
    proc.parent.mkdir(parents=True)
    proc.write_bytes(gzip.compress(text.encode()))
    for root in (tmp_path / "a", tmp_path / "b"):
        options = kernel_options(root)
        assert options == {"CONFIG_BLK_WBT": "y", "CONFIG_IOSCHED_BFQ": "m"}
    assert about_option("CONFIG_BLK_CGROUP_IOLATENCY", options).startswith("this kernel was built without")
    cfq = about_option("CONFIG_IOSCHED_CFQ, until Linux 5.0", options)
    assert cfq == "kernels until Linux 5.0 have it (CONFIG_IOSCHED_CFQ)"


class LoadedModules:
    """Modules of a made-up kernel, for journals."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.loaded: set[str] = set()
        self.used: set[str] = set()
        for module in (journal_module, journal_modules):
            patch.setattr(module, "is_loaded", self.loaded.__contains__)
        patch.setattr(journal_modules, "unload_module", self._unload)

    def _unload(self, name: str) -> str | None:
        if name in self.used:
            return f"the module {name} stays loaded: it has 1 users"
        self.loaded.discard(name)
        return None


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BLKLAB_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_run_unloads_what_it_has_loaded(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = LoadedModules(monkeypatch)
    with Journal.create("run-1", "a test") as journal:
        assert journal.own_module("bfq") is not None
        modules.loaded.add("bfq")
    assert modules.loaded == set()


def test_what_was_loaded_before_or_is_used_stays(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = LoadedModules(monkeypatch)
    modules.loaded.add("bfq")
    with Journal.create("run-1", "a test") as journal:
        assert journal.own_module("bfq") is None
    assert modules.loaded == {"bfq"}
    modules.loaded.clear()
    modules.used.add("bfq")
    with Journal.create("run-2", "a test") as journal:
        journal.own_module("bfq")
        modules.loaded.add("bfq")
        assert journal.restore().notes == ["the module bfq stays loaded: it has 1 users"]
    assert modules.loaded == {"bfq"}


def test_the_last_run_that_uses_a_module_unloads_it(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = LoadedModules(monkeypatch)
    with Journal.create("run-2", "a test") as second:
        with Journal.create("run-1", "a test") as first:
            first.own_module("bfq")
            modules.loaded.add("bfq")
            assert second.own_module("bfq") is not None, "it takes over from the first"
        assert modules.loaded == {"bfq"}
    assert modules.loaded == set()


def test_a_killed_run_s_module_is_unloaded_by_recovery(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = LoadedModules(monkeypatch)
    modules.loaded.add("bfq")
    dead_journal(state, "run-1", [{"kind": "module", "module": "bfq", "run": "run-1"}])
    (report,) = recover(state)
    assert report.done == ["unloaded the module bfq"]
    assert modules.loaded == set()


def test_a_name_of_single_queue_days_is_answered_with_its_successor(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk("sdx", "8:0", Path("/sys/x"), Path("/dev/null"), "", "", "", 1, None)
    offered = iter([("none", ["none", "mq-deadline"]), ("mq-deadline", ["none", "mq-deadline"])])
    monkeypatch.setattr(schedulers, "available_schedulers", lambda disk: next(offered))
    monkeypatch.setattr(schedulers, "write_once", lambda path, text: None)
    with pytest.raises(SchedulerUnavailableError, match="kept mq-deadline") as caught:
        schedulers.set_scheduler(disk, "deadline")
    assert caught.value.hint == "name it mq-deadline, as this kernel does"
