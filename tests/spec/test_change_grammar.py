"""The grammar of changes while the load runs: texts, tables of a description, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blklab.errors import BlklabError, SpecError, UsageError
from blklab.quantities.units import exact_duration
from blklab.report.summary.reproduce import repeat_command
from blklab.spec.changes import (
    GroupChange,
    PriorityChange,
    QueueChange,
    SchedulerChange,
    TunableChange,
    parse_change,
    parse_changes,
    phases_of,
)
from blklab.spec.request import SpecValues, build_specs, read_spec_file

TIMES = st.integers(1, 10**13)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("scheduler", "read_ahead_kb")
)
VALUES = st.from_regex(r"[A-Za-z0-9_.+-]{1,9}( [A-Za-z0-9_.+-]{1,9})?", fullmatch=True)
GROUP_VALUES = st.from_regex(r"[A-Za-z0-9=.:-]([A-Za-z0-9=.: -]{0,8}[A-Za-z0-9])?", fullmatch=True)
JOBS = st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S", "Zs")), min_size=1).filter(
    lambda name: name == name.strip()
)

CHANGES = st.one_of(
    st.builds(
        lambda at_ns, job, io_class, level: PriorityChange(
            at_ns=at_ns, job=job, io_class=io_class, level=4 if io_class == "idle" else level
        ),
        TIMES,
        JOBS,
        st.sampled_from(["rt", "be", "idle"]),
        st.integers(0, 7),
    ),
    st.builds(
        GroupChange,
        at_ns=TIMES,
        group=st.sampled_from(["/", "batch", "a/b", "A.1"]),
        attribute=st.sampled_from(["io.max", "io.bfq.weight", "blkio.weight", "ioband.min"]),
        value=GROUP_VALUES,
    ),
    st.builds(QueueChange, at_ns=TIMES, name=st.sampled_from(["nr_requests", "nomerges"]), value=VALUES),
    st.builds(TunableChange, at_ns=TIMES, name=NAMES, value=VALUES).filter(
        lambda change: parse_change(change.canonical).kind == "tunable"
    ),
    st.builds(
        SchedulerChange,
        at_ns=TIMES,
        scheduler=st.sampled_from(["none", "mq-deadline", "cfq-2.6.32"]),
        tunables=st.dictionaries(st.sampled_from(["slice_idle", "fifo_batch"]), st.just("0")),
    ),
)


@given(CHANGES)
def test_a_change_reads_back_as_itself(
    change: PriorityChange | GroupChange | QueueChange | TunableChange | SchedulerChange,
) -> None:
    assert parse_change(change.canonical) == change
    assert change.request()["at_ns"] == change.at_ns


@given(st.text())
def test_any_text_is_read_or_refused_with_a_reason(text: str) -> None:
    try:
        change = parse_change(text)
    except BlklabError as error:
        assert error.message
    else:
        assert parse_change(change.canonical) == change


def test_a_person_may_leave_out_what_goes_without_saying() -> None:
    assert parse_change("10 reader:ionice=rt") == parse_change("10s  reader: ionice=rt/4")
    assert parse_change("1m30s a: io.max=rbps=1m wbps=max").canonical == "90s a: io.max=rbps=1m wbps=max"
    assert parse_change("2s async_depth=7").kind == "tunable"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("reader: ionice=rt/4", "begin with its time"),
        ("0s nr_requests=3", "begin with its time"),
        ("10s", "nothing that can be changed"),
        ("10s faster", "nothing that can be changed"),
        ("10s nr_requests= ", "nothing that can be changed"),
        ("10s reader: ionice=rt/8", "no I/O priority"),
        ("10s reader: ionice=idle/3", "no I/O priority"),
        ("10s read_ahead_kb=128", "when it was opened"),
        ("10s scheduler=calm=bfq", "no label"),
        ("10s scheduler=kyber@patched", "no kernel"),
        ("10s scheduler=none:nr_requests=7", "belongs to the queue"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_change(text)


def test_changes_come_in_order_and_one_setting_once_at_a_time() -> None:
    texts = ["2s b: ionice=be/0", "1s nr_requests=9", "2s a: ionice=be/0"]
    assert [change.canonical for change in parse_changes(texts)] == [texts[1], texts[0], texts[2]]
    with pytest.raises(UsageError, match="twice at 2s"):
        parse_changes(["2s a: ionice=be/0", "2000ms a:ionice=idle"])


DESCRIPTION = """
target = "sim:hdd-7200"
workloads = ["reader-beside-writers"]
schedulers = ["bfq", "mq-deadline"]
runtime = "5s"

[[change]]
at = "2s"
ionice = { reader = "rt/4" }
cgroups.batch = { "io.weight" = 50 }

[[change]]
at = "1s"
scheduler = "bfq:slice_idle=0"
queue = { nr_requests = 32 }
tunables = { low_latency = 0 }
"""
TEXTS = [
    "1s scheduler=bfq:slice_idle=0",
    "1s nr_requests=32",
    "1s low_latency=0",
    "2s reader: ionice=rt/4",
    "2s batch: io.weight=50",
]


def test_tables_and_texts_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text(DESCRIPTION)
    (described,) = build_specs(read_spec_file(path))
    assert [change.canonical for change in described.changes] == TEXTS
    path.write_text(DESCRIPTION.partition("[[change]]")[0] + f"change = {TEXTS!r}\n")
    assert build_specs(read_spec_file(path)) == [described]
    assert "--change '2s reader: ionice=rt/4'" in repeat_command(described)
    assert type(described).model_validate_json(described.model_dump_json()) == described


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ('at = "2s"\n', "changes nothing"),
        ('at = "2s"\nionise = { a = "rt" }\n', "ionise"),
        ('ionice = { a = "rt" }\n', "at"),
        ('at = "2s"\nionice = { a = "first" }\n', "no I/O priority"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(tmp_path: Path, table: str, reason: str) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text(f'target = "sim:hdd-7200"\n[[change]]\n{table}')
    with pytest.raises((SpecError, UsageError), match=reason):
        build_specs(read_spec_file(path))


def test_schedulers_cannot_take_turns_while_settings_change() -> None:
    given_values = SpecValues(targets=["sim:hdd-7200"], change=["1s nr_requests=3"], design="switchback")
    with pytest.raises(SpecError, match="switchback"):
        build_specs(given_values)


def test_phases_lie_between_the_moments() -> None:
    changes = parse_changes(["2s a: ionice=rt", "2s nr_requests=7", "5s nr_requests=9", "9s nr_requests=3"])
    second = 1_000_000_000
    edges = phases_of(changes, begins_ns=1, ends_ns=8 * second)
    assert edges == [(1, 2 * second), (2 * second, 5 * second), (5 * second, 8 * second)]
    assert phases_of(changes, begins_ns=3 * second, ends_ns=4 * second) == [(3 * second, 4 * second)]
    assert phases_of(changes, begins_ns=4, ends_ns=4) == []


@given(TIMES)
def test_times_are_exact(at_ns: int) -> None:
    assert parse_change(f"{exact_duration(at_ns)} nr_requests=1").at_ns == at_ns
