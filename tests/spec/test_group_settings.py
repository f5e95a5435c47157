"""Settings of control groups in the grammar of schedulers."""

from __future__ import annotations

import pytest

from blklab.errors import SpecError, UsageError
from blklab.spec.changes import parse_change
from blklab.spec.group_settings import GroupSetting, parse_group_setting, with_group_settings
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.sweeps import parse_sweep

WHOLE = "bfq:low_latency=0:nr_requests=32:batch/io.bfq.weight=50:/io.cost.qos.enable=1:/io.cost.qos.min=50"


def test_a_choice_tells_its_settings_apart_and_reads_its_own_text() -> None:
    choice = parse_scheduler_choice(WHOLE)
    assert choice.canonical == WHOLE
    assert parse_scheduler_choice(choice.canonical) == choice
    assert choice.iosched == {"low_latency": "0"}
    assert choice.queue == {"nr_requests": "32"}
    assert list(choice.of_groups) == ["batch/io.bfq.weight", "/io.cost.qos.enable", "/io.cost.qos.min"]


def test_a_label_and_a_group_setting_go_together() -> None:
    choice = parse_scheduler_choice("calm=none:batch/io.max.rbps=1048576")
    assert (choice.label, choice.of_groups) == ("calm", {"batch/io.max.rbps": "1048576"})


def test_what_belongs_to_the_disk_is_left_for_it() -> None:
    choice = parse_scheduler_choice(WHOLE)
    for_disk = choice.for_disk
    assert "batch/io.bfq.weight" not in for_disk.tunables
    assert for_disk.of_groups == {"/io.cost.qos.enable": "1", "/io.cost.qos.min": "50"}
    assert for_disk.label == for_disk.without_label
    plain = parse_scheduler_choice("mine=bfq:slice_idle=0")
    assert plain.for_disk is plain


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("batch/io.weight", GroupSetting("batch", "io.weight", None)),
        ("a/b/io.max.riops", GroupSetting("a/b", "io.max", "riops")),
        ("/io.cost.qos.rlat", GroupSetting("/", "io.cost.qos", "rlat")),
        ("x/blkio.throttle.read_bps_device", GroupSetting("x", "blkio.throttle.read_bps_device", None)),
    ],
)
def test_a_name_is_a_path_with_its_word(name: str, place: GroupSetting) -> None:
    assert parse_group_setting(name) == place
    assert place.name == name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bfq:batch/io.max=5", "batch/io.max has several values"),
        ("bfq:batch/io.cost.qos.min=5", "io.cost.qos belongs to the root group"),
        ("bfq:batch/memory.max=5", "is not TUNABLE=VALUE"),
        ("bfq:batch/io.weight=5:batch/io.weight=6", "sets batch/io.weight twice"),
        ("bfq:batch/io.max.rbps=8:0", "is not TUNABLE=VALUE"),
    ],
)
def test_what_is_no_setting_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_scheduler_choice(text)


def test_words_go_into_the_line_that_is_there() -> None:
    given = {"/": {"io.cost.qos": "8:16 enable=1 min=25.00"}, "batch": {"io.weight": "50"}}
    settings = {
        "/io.cost.qos.min": "75",
        "/io.cost.qos.max": "100",
        "other/io.weight": "200",
        "fifo_batch": "1",
    }
    found = with_group_settings(given, settings)
    assert found == {
        "/": {"io.cost.qos": "8:16 enable=1 min=75 max=100"},
        "batch": {"io.weight": "50"},
        "other": {"io.weight": "200"},
    }
    assert given["/"]["io.cost.qos"] == "8:16 enable=1 min=25.00"


def test_changes_and_sweeps_refer_to_their_own_ways() -> None:
    with pytest.raises(UsageError, match=r"batch/io\.max\.rbps belongs to a control group") as change:
        parse_change("10s scheduler=bfq:batch/io.max.rbps=1000")
    assert str(change.value.hint).endswith("'10s batch: io.max=rbps=1000'")
    parse_change("10s batch: io.max=rbps=1000")
    with pytest.raises(SpecError, match=r"batch/io\.weight belongs to a control group") as sweep:
        parse_sweep("bfq:batch/io.weight=10,20")
    assert "blklab tune --vary batch/io.weight" in str(sweep.value.hint)
