from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blklab.errors import UnknownNameError, UsageError
from blklab.spec.schedulers import across_kernels, parse_scheduler_choice, parse_scheduler_choices
from blklab.spec.targets import LoopTarget, ModelTarget, PathTarget, Target, parse_target


def test_a_bare_scheduler_is_labelled_by_its_name() -> None:
    choice = parse_scheduler_choice("mq-deadline")
    assert (choice.name, choice.label, choice.tunables) == ("mq-deadline", "mq-deadline", {})


def test_tunables_make_the_label_unless_one_is_given() -> None:
    assert parse_scheduler_choice("bfq:slice_idle=0").label == "bfq:slice_idle=0"
    choice = parse_scheduler_choice("calm=bfq:slice_idle=0:low_latency=0")
    assert choice.label == "calm"
    assert choice.tunables == {"slice_idle": "0", "low_latency": "0"}
    assert choice.without_label == "bfq:slice_idle=0:low_latency=0"


@pytest.mark.parametrize("text", ["", "bfq:slice_idle", "bfq:=0", "Bfq", "bfq:a=1:a=2", "x=", "no ne"])
def test_malformed_choices_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_scheduler_choice(text)


def test_one_scheduler_twice_needs_labels() -> None:
    with pytest.raises(UsageError, match="listed twice") as caught:
        parse_scheduler_choices("none,none")
    assert caught.value.hint is not None
    assert "first=none" in caught.value.hint
    assert [choice.name for choice in parse_scheduler_choices("a=none,b=none")] == ["none", "none"]


def test_a_kernel_stands_behind_the_name() -> None:
    choice = parse_scheduler_choice("calm=bfq@6.1-mine:slice_idle=0")
    assert (choice.name, choice.kernel, choice.label) == ("bfq", "6.1-mine", "calm")
    assert choice.without_label == "bfq@6.1-mine:slice_idle=0"
    assert parse_scheduler_choice("kyber@patched").label == "kyber@patched"
    for text in ("kyber@", "@stock", "kyber@a@b", "kyber@a b"):
        with pytest.raises(UsageError):
            parse_scheduler_choice(text)


def test_choices_are_crossed_with_kernels() -> None:
    choices = parse_scheduler_choices("none,calm=bfq:slice_idle=0,kyber@old")
    crossed = across_kernels(choices, ["stock", "mine"])
    labels = ["none@stock", "calm@stock", "kyber@old", "none@mine", "calm@mine"]
    assert [choice.label for choice in crossed] == labels
    assert [choice.kernel for choice in crossed] == ["stock", "stock", "old", "mine", "mine"]
    assert across_kernels(choices, []) == choices
    assert across_kernels(crossed, ["stock", "mine"]) == crossed
    for choice in crossed:
        assert parse_scheduler_choice(choice.canonical) == choice


_NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
_TUNABLES = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True),
    st.from_regex(r"[0-9a-z.]{1,6}", fullmatch=True),
    max_size=3,
)
_LABELS = st.none() | st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,8}", fullmatch=True)


_KERNELS = st.none() | st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,8}", fullmatch=True)


@given(_NAMES, _TUNABLES, _LABELS, _KERNELS)
def test_the_canonical_form_reads_back(
    name: str, tunables: dict[str, str], label: str | None, kernel: str | None
) -> None:
    head = name if kernel is None else f"{name}@{kernel}"
    bare = ":".join([head, *(f"{key}={value}" for key, value in tunables.items())])
    choice = parse_scheduler_choice(bare if label is None else f"{label}={bare}")
    assert parse_scheduler_choice(choice.canonical) == choice


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (".", PathTarget(".")),
        ("/dev/sda", PathTarget("/dev/sda")),
        ("./sim:x", PathTarget("./sim:x")),
        ("loop:512m", LoopTarget(512 << 20, None)),
        ("loop:1g,dir=/var/tmp", LoopTarget(1 << 30, "/var/tmp")),
        ("loop:512m,btrfs=raid10", LoopTarget(512 << 20, None, "raid10", 4)),
        ("loop:1g,btrfs=raid1,members=2,dir=/tmp", LoopTarget(1 << 30, "/tmp", "raid1", 2)),
        ("sim:hdd-7200", ModelTarget("sim", "hdd-7200", ())),
        (
            "sim:fixed,latency=200us,depth=4",
            ModelTarget("sim", "fixed", (("latency", "200us"), ("depth", "4"))),
        ),
        ("uml:nvme-tlc", ModelTarget("uml", "nvme-tlc", ())),
    ],
)
def test_targets_are_read_and_written(text: str, target: Target) -> None:
    assert parse_target(text) == target
    assert parse_target(target.text) == target


@pytest.mark.parametrize(
    "text",
    [
        "",
        "loop:",
        "loop:0",
        "loop:1g,size=2",
        "loop:1g,members=4",
        "loop:1g,btrfs=raid7",
        "loop:1g,btrfs=raid10,members=3",
        "loop:1g,btrfs=raid0,members=many",
        "loop:16m,btrfs=raid0",
        "sim:",
        "sim:fixed,depth",
        "sim:fixed,a=1,a=2",
        "sim:fixed,raid=0,member.latency=1ms",
    ],
)
def test_malformed_targets_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_target(text)


def test_an_unknown_scheme_is_named() -> None:
    with pytest.raises(UnknownNameError, match="'qumu'"):
        parse_target("qumu:disk")
