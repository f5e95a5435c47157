"""Settings that the kernel couples: restored in their order, read back, and left as they were by default."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from coupled_kernel import CoupledKernel, coupled_kernel

from blklab.backends.host_changes import HostChanges, change_commands
from blklab.errors import RestoreError
from blklab.linux.cgroups.cost_control import CostControl
from blklab.linux.journal import undo as undo_module
from blklab.linux.journal.journal import Journal
from blklab.linux.journal.undo import identity_of, undo_all
from blklab.linux.journal.unrestored import errors_beside_results
from blklab.linux.queue.attributes import read_attribute, write_attribute
from blklab.linux.queue.coupling import COUPLINGS, moved_by, restoring_rank
from blklab.linux.queue.settings import QueueSettings
from blklab.linux.queue.snapshot import differences, restore_snapshot, snapshot, write_order
from blklab.spec.changes import parse_changes
from blklab.spec.experiment import Conditions
from blklab.spec.schedulers import parse_scheduler_choices
from blklab.spec.workloads import load_workload

COST_ON = "8:0 enable=1"


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CoupledKernel]:
    with coupled_kernel(tmp_path / "machine") as made:
        monkeypatch.setattr(undo_module, "read_disk", lambda _: made.disk)
        yield made


def queue_entry(kernel: CoupledKernel, number: int) -> dict[str, Any]:
    taken = snapshot(kernel.disk)
    before = {"scheduler": taken.scheduler, "attributes": taken.attributes}
    return {"kind": "queue", "number": number, "disk": identity_of(kernel.disk), "snapshot": before}


def cost_entry(kernel: CoupledKernel, number: int) -> dict[str, Any]:
    return {
        "kind": "attribute",
        "number": number,
        "path": str(kernel.qos),
        "content": kernel.qos.read_text(),
        "undo": ["8:0 enable=0 ctrl=auto"],
    }


def test_causes_are_restored_before_their_effects() -> None:
    for coupling in COUPLINGS:
        assert restoring_rank(coupling.cause) < restoring_rank(coupling.effect), coupling
        assert coupling.source
    names = ["iosched/slice_idle", "read_ahead_kb", "async_depth", "nr_requests", "max_sectors_kb"]
    ordered = sorted(names, key=write_order)
    assert ordered == ["max_sectors_kb", "nr_requests", "read_ahead_kb", "async_depth", "iosched/slice_idle"]
    assert moved_by(["scheduler"]) >= {"wbt_lat_usec", "nr_requests", "async_depth"}
    assert moved_by(["io.cost.qos"]) == {"wbt_lat_usec"}
    assert moved_by(["io.max"]) == frozenset()


@pytest.mark.parametrize("numbers", [(1, 2), (2, 1)])
def test_io_cost_is_undone_before_the_queue_whatever_the_order_of_entries(
    kernel: CoupledKernel, numbers: tuple[int, int]
) -> None:
    entries = [queue_entry(kernel, numbers[0]), cost_entry(kernel, numbers[1])]
    kernel.write(kernel.qos, COST_ON)
    assert read_attribute(kernel.disk, "wbt_lat_usec") == "0"
    kernel.write(kernel.queue / "scheduler", "bfq")
    outcome = undo_all(entries, same_boot=True)
    assert outcome.failures == []
    assert read_attribute(kernel.disk, "wbt_lat_usec") == "2000"
    assert kernel.throttling == "on by default", "so that bfq and io.cost turn it off again later"
    assert not any(write.startswith("wbt_lat_usec") for write in kernel.writes)


def test_the_oldest_record_of_a_setting_is_what_remains(kernel: CoupledKernel) -> None:
    first = cost_entry(kernel, 1)
    kernel.write(kernel.qos, COST_ON)
    later = cost_entry(kernel, 2) | {"undo": [COST_ON]}
    outcome = undo_all([first, later], same_boot=True)
    assert outcome.failures == []
    assert not kernel.cost


def test_a_setting_that_comes_back_late_is_restored_in_another_round(
    kernel: CoupledKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [queue_entry(kernel, 1), cost_entry(kernel, 2)]
    kernel.write(kernel.qos, COST_ON)
    tries = iter([False, True])
    own = restore_snapshot

    def late(disk: Any, wanted: Any) -> list[str]:
        if next(tries, True):
            return own(disk, wanted)
        raise RestoreError("sda: not all settings could be restored")

    monkeypatch.setattr(undo_module, "restore_snapshot", late)
    assert undo_all(entries, same_boot=True).failures == []


def test_a_setting_that_never_comes_back_is_a_failure_once(
    kernel: CoupledKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def never(disk: Any, wanted: Any) -> list[str]:
        calls.append(disk)
        raise RestoreError("sda: not all settings could be restored")

    monkeypatch.setattr(undo_module, "restore_snapshot", never)
    outcome = undo_all([queue_entry(kernel, 1)], same_boot=True)
    assert outcome.failures == ["sda: not all settings could be restored"]
    assert len(calls) < 10


def test_what_io_cost_holds_is_not_written_while_it_is_on(kernel: CoupledKernel) -> None:
    before = snapshot(kernel.disk)
    kernel.write(kernel.qos, COST_ON)
    kernel.write(kernel.queue / "nr_requests", "8")
    settings = QueueSettings([kernel.disk], {})
    restore_snapshot(kernel.disk, before, held=settings.held(kernel.disk))
    assert set(differences(kernel.disk, before)) == {"wbt_lat_usec"}
    assert kernel.throttling == "off by default"
    kernel.write(kernel.qos, "8:0 enable=0")
    assert differences(kernel.disk, before) == {}


def test_a_run_under_io_cost_does_not_depend_on_the_scheduler_before(kernel: CoupledKernel) -> None:
    none, deadline, bfq = parse_scheduler_choices("none,mq-deadline,bfq")
    settings = QueueSettings([kernel.disk], {})
    kernel.write(kernel.qos, COST_ON)
    for choice in (none, deadline, bfq, none, bfq, deadline, none):
        assert settings.apply(choice)["sda/wbt_lat_usec"] == "0"
    assert kernel.throttling == "off by default"


@pytest.mark.parametrize("asked", [True, False])
def test_a_dry_run_prints_what_a_planned_switch_renews(kernel: CoupledKernel, asked: bool) -> None:
    """Leaving bfq turns throttling on beside io.cost, so the switch tells io.cost again that it is on."""
    planned = ["1s scheduler=bfq", "2s nr_requests=16", "3s scheduler=none"]
    conditions = Conditions(
        changes=parse_changes(planned),
        cgroups={"/": {"io.cost.qos": "enable=1"}} if asked else {},
    )
    settings = QueueSettings([kernel.disk], {})
    (choice,) = parse_scheduler_choices("mq-deadline")
    run = HostChanges(conditions, settings, choice, None, {})
    if asked:
        kernel.write(kernel.qos, COST_ON)
    settings.apply(choice)
    kernel.writes.clear()
    run.try_all()
    printed = change_commands(run, load_workload("many-readers"), ["none", "mq-deadline", "bfq"])
    lines = [re.fullmatch(r"echo '?([^']*)'? > .*/([\w.]+)", line) for line in printed]
    shown = [f"{line[2]}={line[1]}" for line in lines if line is not None]
    assert ("io.cost.qos=8:0 enable=1" in kernel.writes) is asked
    last = 3 if asked else 2
    assert kernel.writes[-last:] == shown[-last:]
    assert shown[-last] == "scheduler=none"
    # Whether a renewal is needed depends on the state, so it is printed after each switch.
    assert shown.count("io.cost.qos=8:0 enable=1") == (2 if asked else 0)


def test_a_dry_run_knows_that_a_change_turned_io_cost_on(kernel: CoupledKernel) -> None:
    """Or off; parameters alone leave it as it is."""
    on, params, off = "enable=1", "rpct=95", "enable=0"
    for words, printed in ([on], 1), ([on, params], 1), ([on, off], 0), ([params], 0):
        texts = [f"{at}s /: io.cost.qos={word}" for at, word in enumerate(words, 1)]
        changes = parse_changes([*texts, "9s scheduler=bfq"])
        groups = SimpleNamespace(writes=lambda _: [])
        (choice,) = parse_scheduler_choices("none")
        of_groups: dict[Any, Any] = {change: [] for change in changes[:-1]}
        run = HostChanges(
            Conditions(changes=changes),
            QueueSettings([kernel.disk], {}),
            choice,
            groups,  # type: ignore[arg-type]
            of_groups,
        )
        lines = change_commands(run, load_workload("many-readers"), ["none", "bfq"])
        assert sum("8:0 enable=1" in line for line in lines) == printed, words


def test_io_cost_that_was_on_before_holds_throttling_off_afterwards(kernel: CoupledKernel) -> None:
    kernel.write(kernel.qos, COST_ON)
    before = snapshot(kernel.disk)
    for name in ("bfq", "none"):
        kernel.write(kernel.queue / "scheduler", name)
    assert read_attribute(kernel.disk, "wbt_lat_usec") == "2000", "the kernel's doing"
    restore_snapshot(kernel.disk, before)
    assert differences(kernel.disk, before) == {}
    assert kernel.throttling == "off by default"


def test_choices_that_bring_throttling_beside_choices_under_io_cost(kernel: CoupledKernel) -> None:
    off, plain = parse_scheduler_choices("none:wbt_lat_usec=0,none")
    settings = QueueSettings([kernel.disk], {})
    settings.learn([off, plain])
    settings.apply(off)
    assert settings.apply(plain)["sda/wbt_lat_usec"] == "2000"
    kernel.write(kernel.qos, COST_ON)
    (under_cost,) = parse_scheduler_choices("none:/io.cost.qos.enable=1")
    assert settings.apply(under_cost)["sda/wbt_lat_usec"] == "0", "by hand now, so io.cost leaves it alone"


def test_throttling_by_hand_under_bfq(kernel: CoupledKernel) -> None:
    kernel.write(kernel.queue / "scheduler", "bfq")
    assert read_attribute(kernel.disk, "wbt_lat_usec") == "0"
    # The kernel has 2000 in memory and ignores a write of that value.
    write_attribute(kernel.disk, "wbt_lat_usec", "2000")
    assert read_attribute(kernel.disk, "wbt_lat_usec") == "2000"
    before = snapshot(kernel.disk)
    kernel.write(kernel.queue / "wbt_lat_usec", "0")
    restore_snapshot(kernel.disk, before)
    assert read_attribute(kernel.disk, "wbt_lat_usec") == "2000"


def test_without_io_cost_nothing_is_held(kernel: CoupledKernel, tmp_path: Path) -> None:
    assert CostControl().held(kernel.disk) == {}
    assert not CostControl().renew(kernel.disk)
    assert CostControl(tmp_path).held(kernel.disk) == {}


def test_errors_of_restoring_stand_beside_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLKLAB_STATE_DIR", str(tmp_path / "state"))
    file = tmp_path / "kept"

    def run() -> str:
        with Journal.create("run-1", "a test") as journal:
            journal.own_file(file).mkdir()  # cannot be removed as a file
            return "a result"

    with errors_beside_results() as found:
        assert run() == "a result"
    assert "could not be undone" in found[0].message
    for path in (tmp_path / "state" / "journal").glob("*.journal"):
        path.unlink()
    file.rmdir()
    with pytest.raises(RestoreError):
        run()
