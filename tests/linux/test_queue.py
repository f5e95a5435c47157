"""Queue settings of real loop devices: reading, writing with read-back, restoring."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from blklab.errors import (
    BlklabError,
    DeviceVanishedError,
    NotRootError,
    RestoreError,
    SchedulerUnavailableError,
    TunableError,
    UnknownNameError,
)
from blklab.linux.disks.disk import Disk
from blklab.linux.queue.attributes import read_attribute, tunables, write_attribute
from blklab.linux.queue.schedulers import available_schedulers, set_scheduler
from blklab.linux.queue.settings import QueueSettings
from blklab.linux.queue.snapshot import differences, restore_snapshot, snapshot
from blklab.spec.schedulers import parse_scheduler_choices
from real_devices import LoopMaker, changed, queue_of, remove_disk

pytestmark = pytest.mark.root


@pytest.fixture
def disk(make_loop: LoopMaker) -> Disk:
    made = make_loop(32)
    _, offered = available_schedulers(made)
    missing = {"none", "mq-deadline", "bfq"} - set(offered)
    if missing:
        pytest.skip(f"this kernel lacks the schedulers {', '.join(sorted(missing))}")
    return made


def test_available_schedulers(disk: Disk) -> None:
    set_scheduler(disk, "none")
    assert available_schedulers(disk)[0] == "none"
    set_scheduler(disk, "mq-deadline")
    active, offered = available_schedulers(disk)
    assert active == "mq-deadline"
    assert {"none", "mq-deadline"} <= set(offered)
    assert read_attribute(disk, "scheduler") == "mq-deadline"


def test_snapshot_covers_what_can_be_written_and_nothing_else(disk: Disk) -> None:
    set_scheduler(disk, "bfq")
    taken = snapshot(disk)
    queue = disk.sys_path / "queue"
    assert taken.scheduler == "bfq"
    assert {"nr_requests", "read_ahead_kb", "iosched/slice_idle"} <= taken.attributes.keys()
    assert "logical_block_size" not in taken.attributes
    for name, value in taken.attributes.items():
        assert (queue / name).read_text() == f"{value}\n"


def test_restoring_brings_back_every_byte(disk: Disk) -> None:
    set_scheduler(disk, "bfq")
    for name, value in (("iosched/slice_idle_us", "8500"), ("nr_requests", "100"), ("max_sectors_kb", "512")):
        write_attribute(disk, name, value)
    write_attribute(disk, "rotational", "1")
    write_attribute(disk, "read_ahead_kb", "48")
    before, taken = queue_of(disk), snapshot(disk)
    assert taken.attributes["iosched/slice_idle"] == "8", "one setting, two names of different resolution"
    set_scheduler(disk, "mq-deadline")
    for name, value in (
        ("rotational", "0"),
        ("max_sectors_kb", "64"),
        ("nr_requests", "8"),
        ("nomerges", "2"),
    ):
        write_attribute(disk, name, value)
    assert changed(before, queue_of(disk))
    written = restore_snapshot(disk, taken)
    assert not changed(before, queue_of(disk))
    assert f"{disk.name}: scheduler = bfq" in written
    assert restore_snapshot(disk, taken) == [], "a second time there is nothing to do"


def test_restoring_tunables_under_the_same_scheduler(disk: Disk) -> None:
    set_scheduler(disk, "mq-deadline")
    before, taken = queue_of(disk), snapshot(disk)
    write_attribute(disk, "iosched/fifo_batch", "3")
    assert differences(disk, taken) == {"iosched/fifo_batch": ("16", "3")}
    assert restore_snapshot(disk, taken) == [f"{disk.name}: iosched/fifo_batch = 16"]
    assert not changed(before, queue_of(disk))


def test_what_cannot_be_restored_is_named(disk: Disk) -> None:
    taken = snapshot(disk)
    impossible = dataclasses.replace(taken, attributes={**taken.attributes, "nr_requests": "99999999"})
    with pytest.raises(RestoreError, match=r"nr_requests is .*, was 99999999 .*invalid argument"):
        restore_snapshot(disk, impossible)
    with pytest.raises(RestoreError, match="scheduler"):
        restore_snapshot(disk, dataclasses.replace(taken, scheduler="cfq"))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("nr_requests", "1", "kept 4"),
        ("nr_requests", "99999999", "refused nr_requests"),
        ("nr_requests", "many", "refused nr_requests"),
        ("nomerges", "5", "kept 1"),
        ("read_ahead_kb", "3", "kept 0"),
        ("iosched/low_latency", "7", "kept 1"),
        ("logical_block_size", "4096", "is read-only"),
        ("write_cache", "sideways", "refused write_cache"),
        ("../../../etc/passwd", "x", "not the name of a queue attribute"),
        ("iosched/../nr_requests", "8", "not the name of a queue attribute"),
    ],
)
def test_a_value_that_the_kernel_does_not_take(disk: Disk, name: str, value: str, words: str) -> None:
    set_scheduler(disk, "bfq")
    with pytest.raises(TunableError, match=words):
        write_attribute(disk, name, value)


def test_unknown_names_are_answered_with_close_ones(disk: Disk) -> None:
    set_scheduler(disk, "bfq")
    with pytest.raises(TunableError, match="bfq has no tunable 'slice_idel'") as caught:
        write_attribute(disk, "iosched/slice_idel", "0")
    assert "did you mean slice_idle" in str(caught.value.hint)
    with pytest.raises(TunableError, match="no attribute 'nr_request'") as caught:
        read_attribute(disk, "nr_request")
    assert "nr_requests" in str(caught.value.hint)
    set_scheduler(disk, "none")
    with pytest.raises(TunableError, match="none has no tunable 'slice_idle'") as caught:
        write_attribute(disk, "iosched/slice_idle", "0")
    assert caught.value.hint == "it has none"


def test_a_request_for_the_default_is_met_by_any_value(disk: Disk) -> None:
    set_scheduler(disk, "mq-deadline")
    write_attribute(disk, "wbt_lat_usec", "-1")
    assert int(read_attribute(disk, "wbt_lat_usec")) > 0


def test_unknown_and_former_schedulers(disk: Disk) -> None:
    before = queue_of(disk)
    with pytest.raises(UnknownNameError, match="no scheduler 'bqf'") as caught:
        set_scheduler(disk, "bqf")
    assert "did you mean bfq?" in str(caught.value.hint)
    with pytest.raises(SchedulerUnavailableError, match="does not offer the scheduler cfq"):
        set_scheduler(disk, "cfq")
    assert not changed(before, queue_of(disk))


def test_tunables_by_bare_name(disk: Disk) -> None:
    set_scheduler(disk, "mq-deadline")
    assert tunables(disk)["fifo_batch"] == "16"
    set_scheduler(disk, "none")
    assert tunables(disk) == {}


def test_a_vanished_disk(disk: Disk) -> None:
    taken = snapshot(disk)
    remove_disk(disk)
    attempts: list[Callable[[], object]] = [
        lambda: available_schedulers(disk),
        lambda: snapshot(disk),
        lambda: read_attribute(disk, "nr_requests"),
        lambda: read_attribute(disk, "iosched/slice_idle"),
        lambda: write_attribute(disk, "nr_requests", "8"),
        lambda: set_scheduler(disk, "bfq"),
        lambda: restore_snapshot(disk, taken),
    ]
    for attempt in attempts:
        with pytest.raises(DeviceVanishedError, match=rf"{disk.name} .*is gone"):
            attempt()


def test_without_root(disk: Disk) -> None:
    """In a child process with another user's rights: one message and no traceback."""
    child = os.fork()
    if child == 0:  # pragma: no cover - its coverage would not come back
        code = 9
        try:
            os.setuid(65534)
            set_scheduler(disk, "bfq")
        except NotRootError:
            code = 0
        except BlklabError:
            code = 8
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_read_only_sysfs_is_named(disk: Disk) -> None:
    """As in a container: a separate mount namespace has /sys read-only."""
    program = (
        "from blklab.linux.disks.resolution import resolve\n"
        "from blklab.linux.queue.schedulers import set_scheduler\n"
        f"set_scheduler(resolve('{disk.dev_path}').leaves[0], 'bfq')"
    )
    script = 'mount -o remount,ro,bind /sys && exec "$0" -c "$1"'
    answer = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, sys.executable, program],
        capture_output=True,
        text=True,
        check=False,
    )
    if "Operation not permitted" in answer.stderr and "NotRootError" not in answer.stderr:
        pytest.skip("mount namespaces are not allowed here")
    assert "NotRootError" in answer.stderr
    assert "read-only" in answer.stderr


def test_attributes_that_a_choice_brings_are_taken_back_with_it(disk: Disk) -> None:
    choices = parse_scheduler_choices("none,none:read_ahead_kb=64:nomerges=2,bfq:nr_requests=32,bfq")
    settings = QueueSettings([disk], {"rq_affinity": "2"})
    settings.learn(choices)
    usual = {choice.label: settings.apply(choice) for choice in choices}
    of_disk = {
        label: {name.removeprefix(f"{disk.name}/"): value for name, value in found.items()}
        for label, found in usual.items()
    }
    plain, brought, short, bfq = of_disk.values()
    assert (brought["read_ahead_kb"], brought["nomerges"]) == ("64", "2")
    assert short["nr_requests"] == "32"
    assert {one["rq_affinity"] for one in of_disk.values()} == {"2"}
    assert plain["read_ahead_kb"] == short["read_ahead_kb"] == bfq["read_ahead_kb"] != "64"
    assert plain["nomerges"] == short["nomerges"] == bfq["nomerges"] != "2"
    assert bfq["nr_requests"] != "32"
    # In another order, each choice has the same settings again; `apply` raises if not.
    for choice in (choices[1], choices[3], choices[0], choices[2], choices[1], choices[0]):
        assert settings.apply(choice) == usual[choice.label]


def test_the_commands_of_a_choice_set_what_it_brings(disk: Disk) -> None:
    (choice,) = parse_scheduler_choices("bfq:slice_idle=0:nr_requests=32")
    lines = QueueSettings([disk], {}).commands(choice, ["none", "bfq"])
    queue = disk.sys_path / "queue"
    assert lines == [
        f"echo none > {queue}/scheduler",
        f"echo bfq > {queue}/scheduler",
        f"echo 32 > {queue}/nr_requests",
        f"echo 0 > {queue}/iosched/slice_idle",
    ]
