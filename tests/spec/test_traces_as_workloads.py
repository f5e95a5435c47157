"""Recordings as workloads: the grammar, and what is said about a recording."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blklab.errors import BlklabError, FormatError, UnknownNameError, UsageError
from blklab.spec.replays import ReplayRequest, parse_replay
from blklab.spec.workloads import load_workload, parse_workload

TRACE = """\
  8,0    0        1     0.000000000   100  Q   R 8000 + 8 [reader]
  8,0    0        2     0.000100000   100  C   R 8000 + 8 [0]
  8,0    0        3     0.000300000   100  Q   R 80000 + 8 [reader]
  8,0    0        4     0.000350000   200  Q  WS 8008 + 16 [writer]
  8,0    0        5     0.000500000   100  C   R 80000 + 8 [0]
  8,0    0        6     0.000900000   200  C  WS 8008 + 16 [0]
"""
WITHOUT_COMPLETIONS = "\n".join(line for line in TRACE.splitlines() if " Q " in line) + "\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "build.txt"
    path.write_text(TRACE)
    return path


def test_options_follow_the_file() -> None:
    assert parse_replay("trace:/a/b.blkrecord") == ReplayRequest("/a/b.blkrecord")
    given = parse_replay("trace:a,b.txt,replay=open,speed=2.5,scale-to=64m,device=sda")
    assert given == ReplayRequest("a,b.txt", "open", 2.5, str(64 << 20), "sda")
    assert given.name == "a,b"
    assert parse_replay("trace:x,scale-to=recorded").scale_to == "recorded"


@pytest.mark.parametrize(
    "text",
    [
        "trace:", "trace:,replay=open", "trace:a,replay=both", "trace:a,replay=", "trace:a,speed=0",
        "trace:a,speed=nan", "trace:a,speed=x", "trace:a,scale-to=much", "trace:a,scale-to=-1",
        "trace:a,speed=2,speed=3", "trace:a,sped=2",
    ],
)  # fmt: skip
def test_mistakes_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_replay(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(UsageError):
        assert parse_replay(f"trace:{text}").path


def test_tasks_become_sections(trace: Path) -> None:
    workload = load_workload(f"trace:{trace}")
    assert (workload.name, workload.decide_by, workload.replays) == ("build", "makespan", True)
    assert [(job.name, job.rw, job.replayed_ios) for job in workload.jobs] == [
        ("reader", "randread", 2),
        ("writer", "randwrite", 1),
    ]
    said = [note.message for note in workload.notes]
    assert said[0].startswith("closed:")
    assert any("direct I/O of the task that submitted it" in note for note in said)
    assert any("gaps shrink alike" in note for note in said)
    # The text alone is the workload: a stored run repeats without the recording.
    again = parse_workload(workload.text, name="build", source="stored")
    assert [job.replayed_ios for job in again.jobs] == [2, 1]


def test_places_follow_the_choice(trace: Path) -> None:
    sizes = {
        choice: load_workload(f"trace:{trace}{choice}").jobs[0].size_bytes
        for choice in ("", ",scale-to=touched", ",scale-to=1m", ",scale-to=recorded")
    }
    touched = 32 * 512
    assert sizes[",scale-to=touched"] == touched
    assert sizes[",scale-to=recorded"] == 80_008 * 512
    assert touched < (sizes[""] or 0) <= 2 * touched
    assert (1 << 20) - 8192 < (sizes[",scale-to=1m"] or 0) <= 1 << 20
    with pytest.raises(UsageError, match="touch 16384 bytes"):
        load_workload(f"trace:{trace},scale-to=4k")


def test_without_completions_only_latencies_count(tmp_path: Path) -> None:
    path = tmp_path / "open.txt"
    path.write_text(WITHOUT_COMPLETIONS)
    workload = load_workload(f"trace:{path}")
    assert workload.decide_by == "latency_mean"
    assert "only latencies count" in workload.notes[0].message
    with pytest.raises(UsageError, match="no completions") as caught:
        load_workload(f"trace:{path},replay=closed")
    assert "leave out replay=closed" in (caught.value.hint or "")


def test_files_that_are_no_recordings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="no such file"):
        load_workload(f"trace:{tmp_path / 'missing'}")
    text = tmp_path / "letter.txt"
    text.write_text("Dear reader,\n\nthis is no trace.\n")
    with pytest.raises(FormatError, match="no reader knows"):
        load_workload(f"trace:{text}")
    with pytest.raises(BlklabError):
        load_workload(f"trace:{tmp_path}")
    with pytest.raises(BlklabError, match="NUL"):
        load_workload("trace:a\0b")


def test_a_damaged_plan_names_its_line(trace: Path) -> None:
    text = load_workload(f"trace:{trace}").text
    key = "replay_plan="
    number = next(n for n, line in enumerate(text.splitlines(), start=1) if line.startswith(key))
    for damaged in (text.replace(key, f"{key}AAAA"), text.replace(key, f"{key}%"), text + "numjobs=2\n"):
        with pytest.raises(BlklabError, match=r"^x:\d+: ") as caught:
            parse_workload(damaged, name="x", source="x")
        assert getattr(caught.value, "option", None) == key.rstrip("=")
        assert getattr(caught.value, "line", 0) >= number
