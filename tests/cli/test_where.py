"""`blklab where` and `blklab convert` on other programs' traces."""

from __future__ import annotations

import html
import io
from pathlib import Path

import pytest

from blklab.cli import run
from blklab.errors import ExitCode
from blklab.recordings.facts import CgroupFacts, DeviceFacts
from blklab.recordings.trace import UNKNOWN_IOPRIO
from blklab.recordings.waits import Waits, analyse_waits
from blklab.report.terminal import Terminal
from blklab.report.text.printer import Printer
from blklab.report.waits.document import where_document
from blklab.report.waits.html import where_html
from blklab.report.waits.priorities import priority_findings, priority_text
from blklab.report.waits.short import MOST_ROWS, render_short_where
from blklab.report.waits.text import finding_lines, render_where
from chromium import Page
from command_runs import json_of
from page_checks import open_text

BLKPARSE = """\
  8,0    0        1     0.000000000   700  Q   W 8 + 8 [writer]
  8,0    0        2     0.000100000   700  D   W 8 + 8 [writer]
  8,0    0        3     0.000200000   800  Q   R 800 + 8 [<b>reader]
  8,0    0        4     0.001100000     0  C   W 8 + 8 [0]
  8,0    0        5     0.001300000   800  D   R 800 + 8 [<b>reader]
  8,0    0        6     0.001400000     0  C   R 800 + 8 [0]
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "sda.txt"
    path.write_text(BLKPARSE)
    return path


def test_waits_and_holders_in_all_forms(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    document = json_of(capsys, "where", str(trace), "--html", str(page))
    assert document["schema"] == "blklab.where/1"
    reader, writer = sorted(document["waits"]["tasks"], key=lambda task: str(task["command"]))
    assert (writer["command"], writer["tgid"]) == ("writer", 700)
    assert reader["queue_ns"]["sum"] == 1_100_000
    assert reader["device_ns"]["max"] == 100_000
    place = document["waits"]["tasks"].index(writer)
    # 0.2 to 1.1 ms behind the writer, then 0.2 ms before an idle device.
    assert reader["held_in_queue"]["tasks"] == [[place, pytest.approx(900_000)]]
    assert reader["held_in_queue"]["idle_ns"] == pytest.approx(200_000)
    shown = page.read_text()
    assert "&lt;b&gt;reader" in shown
    assert "<b>reader" not in shown
    assert 'data-chart="heat-map"' in shown


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_text_fits_the_terminal(
    width: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(width))
    long_name = BLKPARSE.replace("[<b>reader]", f"[{'r' * 90}]")
    (tmp_path / "sda.txt").write_text(long_name)
    assert run(["where", "sda.txt"]) == ExitCode.OK
    short = capsys.readouterr().out.splitlines()
    assert max(map(len, short)) <= width
    assert run(["where", "sda.txt", "-v"]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert len(short) < len(lines)
    assert max(map(len, lines)) <= width
    assert any(line.startswith("no room for: ") for line in lines) == (width < 200)
    assert any(line.startswith("TASK") for line in lines)


def test_the_answer_comes_first_and_names_who_held_the_device(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = (
        "A scheduler matters here: 52 % of the waiting was in the queue. Most of it was held by writer[700]."
    )
    for options in ([], ["-v"]):
        assert run(["where", str(trace), *options]) == ExitCode.OK
        printed = " ".join(capsys.readouterr().out.split())
        assert printed.startswith(answer)
    assert "<b>reader[800]: waiting in the queue 1.10 ms, held by writer[700] 82 %" in printed
    assert "nobody (the device was idle) 18 %" in printed


def _idle_afterwards(trace: Path, seconds: int) -> None:
    """Lets the trace go on with a single I/O of a millisecond after a pause."""
    late = "".join(
        f"  8,0 0 1 {seconds + us / 1e6:.9f} 800 {kind} R 96 + 8 [<b>reader]\n"
        for kind, us in (("Q", 0), ("D", 1), ("C", 1_000))
    )
    trace.write_text(BLKPARSE + late)


def test_for_a_disk_that_is_idle_most_of_the_time_a_scheduler_has_little_to_do(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _idle_afterwards(trace, 1)
    answer = (
        "The disk was idle over 99 % of the time: a scheduler has little to do. 36 % of the waiting was in"
        " the queue. Most of it was held by writer[700]."
    )
    for options in ([], ["-v"]):
        assert run(["where", str(trace), *options]) == ExitCode.OK
        printed = " ".join(capsys.readouterr().out.split())
        assert printed.startswith(answer)
    assert "<h1" in (page := where_html(where_document("sda", analyse_waits(trace))))
    assert "a scheduler has little to do.</h1>" in page


def test_a_disk_at_work_for_a_tenth_of_the_time_is_not_idle(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _idle_afterwards(trace, 0)
    assert run(["where", str(trace)]) == ExitCode.OK
    assert "idle" not in capsys.readouterr().out.splitlines()[0]


def test_what_waits_before_an_idle_disk_is_held_back_by_a_scheduler(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Idling, or a limit, leaves the disk idle while I/Os wait: there is much to do better."""
    trace.write_text(
        "".join(
            f"  8,0 0 1 {number / 10 + us / 1e6:.9f} 700 {kind} R {800 * number} + 8 [held]\n"
            for number in range(10)
            for kind, us in (("Q", 0), ("D", 80_000), ("C", 81_000))
        )
    )
    assert run(["where", str(trace)]) == ExitCode.OK
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith("A scheduler matters here: 99 % of the waiting was in the queue.")
    assert "For most of it the device was idle" in printed


def test_a_task_that_waits_for_itself_has_nobody_to_be_preferred_to(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eight reads of one task at once: most of the time in the queue, behind its own."""
    events = sorted(
        (us / 1e6, f"{kind} R {8000 * number + 8} + 8 [dd]")
        for number in range(8)
        for kind, us in (("Q", number), ("D", 1000 * number + 10), ("C", 1000 * number + 1000))
    )
    trace.write_text("".join(f"  8,0 0 1 {at:.9f} 700 {what}\n" for at, what in events))
    assert run(["where", str(trace)]) == ExitCode.OK
    printed = " ".join(capsys.readouterr().out.split())
    assert "A scheduler matters" not in printed
    assert "of that behind the same task's I/O: a scheduler can put it in order" in printed


def test_bursts_on_an_idle_disk_are_told(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = sorted(
        (burst + us / 1e6, f"{kind} R {8000 * number + 8} + 8 [reader]")
        for burst in range(3)
        for number in range(9)
        for kind, us in (("Q", 0), ("D", 1000 * number + 1), ("C", 1000 * number + 1000))
    )
    trace.write_text("".join(f"  8,0 0 1 {at:.9f} 700 {what}\n" for at, what in events))
    assert run(["where", str(trace)]) == ExitCode.OK
    printed = " ".join(capsys.readouterr().out.split())
    assert "idle 99 % of the time: a scheduler has little to do but in bursts, in which 4.0 I/Os" in printed


def test_traces_that_know_little_begin_with_it(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for event, answer in (
        (
            " Q ",
            "Queue or device, the trace does not tell: it begins with issues. In the device I/Os took 550 µs",
        ),
        (" D ", "Queue or device, the trace does not tell: it has no issues. I/Os took 1"),
    ):
        trace.write_text("".join(line for line in BLKPARSE.splitlines(keepends=True) if event not in line))
        assert run(["where", str(trace)]) == ExitCode.OK
        assert capsys.readouterr().out.startswith(answer)
        assert run(["where", str(trace), "-v"]) == ExitCode.OK
        # Once, in the answer.
        assert capsys.readouterr().out.lower().count("the trace") == 1


def test_many_tasks_fit_24_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "sda.txt"
    path.write_text(
        "".join(
            f"  8,0 0 1 {(2000 * number + us) / 1e6:.9f} {700 + number} {kind} W"
            f" {800 * number} + 8 [writer{number}]\n"
            for number in range(60)
            for kind, us in (("Q", 0), ("D", 100), ("C", 900))
        )
    )
    page = tmp_path / "w.html"
    assert run(["where", str(path), "--html", str(page)]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 24
    assert sum(line.startswith("writer") for line in lines) == 5
    assert any(line.startswith("55 more tasks: --tasks 60") for line in lines)
    assert run(["where", str(path), "--tasks", "60"]) == ExitCode.OK
    assert sum(line.startswith("writer") for line in capsys.readouterr().out.splitlines()) == 60


def test_reasons_beyond_the_rows_are_left_to_verbose(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    document = where_document(str(trace), _recorded(trace, scheduler="kyber"))
    reason = document.priorities[0].model_copy(update={"text": "a reason " * 12, "remedy": "a remedy"})
    out = io.StringIO()
    full = document.model_copy(update={"priorities": [reason] * 20})
    render_short_where(full, Printer(Terminal(file=out, width=80)))
    lines = out.getvalue().splitlines()
    assert len(lines) <= MOST_ROWS
    assert sum(line.startswith("* a reason") for line in lines) >= 3
    assert lines[-1].endswith(" -v")


def test_findings_are_the_same_in_every_form(trace: Path) -> None:
    document = where_document(str(trace), _recorded(trace, scheduler="bfq"))
    lines = finding_lines(document)
    assert any(one.remedy is None for one in document.priorities)
    assert len(lines) == len(document.priorities)
    short, full = io.StringIO(), io.StringIO()
    render_short_where(document, Printer(Terminal(file=short, width=200)))
    render_where(document, Terminal(file=full, width=200))
    page = html.unescape(where_html(document))
    for line in lines:
        assert f"* {line}\n" in short.getvalue()
        assert f"* {line}\n" in full.getvalue()
        assert f'<p class="finding">{line}.</p>' in page


def test_findings_without_room_are_counted(trace: Path) -> None:
    document = where_document(str(trace), _recorded(trace, scheduler="kyber"))
    reason = document.priorities[0].model_copy(update={"text": "a reason " * 12, "remedy": None})
    out = io.StringIO()
    full = document.model_copy(update={"priorities": [reason] * 20})
    render_short_where(full, Printer(Terminal(file=out, width=80)))
    lines = out.getvalue().splitlines()
    assert len(lines) <= MOST_ROWS
    shown = sum(line.startswith("* a reason") for line in lines)
    assert lines[-1].startswith(f"All tasks, times and findings ({20 - shown} more): blklab where ")


@pytest.mark.browser
@pytest.mark.parametrize("width", [1024, 1280])
def test_tables_of_tasks_in_deep_control_groups_fit_the_page(
    trace: Path, tmp_path: Path, page: Page, width: int
) -> None:
    waits = _recorded(trace, scheduler="bfq")
    group = "/system.slice/system-postgresql.slice/postgresql@15-main.service"
    tasks = [task.model_copy(update={"cgroup": group}) for task in waits.tasks]
    document = where_document(str(trace), waits.model_copy(update={"tasks": tasks}))
    page.emulate(width=width)
    open_text(page, tmp_path / "where.html", where_html(document))
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    hidden = "[...document.querySelectorAll('.scroll')].map((one) => one.scrollWidth - one.clientWidth)"
    assert page.evaluate(hidden) == [0] * 4


def test_traces_without_completions_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    path.write_text("fio version 3 iolog\n5 f read 0 4096\n9 f read 4096 4096\n")
    assert run(["where", str(path)]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert "no completions" in printed
    assert "QUEUE MEAN" not in printed


def test_a_part_that_is_skipped_shows_in_the_exit_code(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace.write_text(BLKPARSE + "nonsense\n")
    assert run(["where", str(trace)]) == ExitCode.PARTIAL
    assert "\nwarning: " in capsys.readouterr().out
    assert run(["where", str(trace), "-v"]) == ExitCode.PARTIAL
    assert f"warning: {trace}:7: no event of blkparse" in capsys.readouterr().out


def test_bad_input_ends_with_a_typed_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["where", str(tmp_path / "Missing")]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "/Missing: no such file or directory" in " ".join(said.split())
    assert "hint: blklab record DIRECTORY -o FILE records one" in said
    (tmp_path / "empty").touch()
    assert run(["where", str(tmp_path / "empty")]) == ExitCode.DATA
    assert run(["convert", str(tmp_path / "empty"), str(tmp_path / "x.npz")]) == ExitCode.DATA
    assert "Traceback" not in capsys.readouterr().err


def test_convert_counts(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", str(trace), str(tmp_path / "x.npz")]) == ExitCode.OK
    assert capsys.readouterr().out.endswith("x.npz: 2 I/Os\n")


def _recorded(trace: Path, *, scheduler: str, **changes: object) -> Waits:
    """The trace as if blklab had recorded it."""
    waits = analyse_waits(trace)
    device = DeviceFacts(number=8 << 20, name="sda", scheduler=scheduler)
    facts = waits.facts.model_copy(update={"capture": "bpf", "devices": [device], "cgroup_version": 2})
    return waits.model_copy(update={"facts": facts, **changes})


def test_the_chain_from_a_weight_to_the_device(trace: Path) -> None:
    texts = [found.text for found in priority_findings(_recorded(trace, scheduler="kyber"))]
    assert texts[0] == "sda ran kyber, which honours no priorities, and no weights of control groups"
    bfq = priority_findings(_recorded(trace, scheduler="bfq"))
    assert "weights of control groups (bfq.weight)" in bfq[0].text
    assert bfq[0].remedy is None


def test_writeback_is_named(trace: Path) -> None:
    waits = _recorded(trace, scheduler="bfq")
    tasks = [
        task.model_copy(update={"command": "kworker/u4:2"}) if task.command == "writer" else task
        for task in waits.tasks
    ]
    found = priority_findings(waits.model_copy(update={"tasks": tasks}))
    (text,) = [finding.text for finding in found if finding.subject == "submitter"]
    assert "kernel threads submitted 100 %" in text
    assert "really submitted by kworker/u4:2 (" in text


def _chain(
    trace: Path, scheduler: str, *groups: CgroupFacts, version: int = 2, **changes: object
) -> dict[str, list[tuple[str, str | None]]]:
    """Findings by subject, with the writer in /a/w and the reader in /b."""
    waits = _recorded(trace, scheduler=scheduler, **changes)
    places = {"writer": "/a/w", "<b>reader": "/b"}
    tasks = [task.model_copy(update={"cgroup": places[task.command]}) for task in waits.tasks]
    facts = waits.facts.model_copy(update={"cgroups": list(groups), "cgroup_version": version})
    found: dict[str, list[tuple[str, str | None]]] = {}
    for finding in priority_findings(waits.model_copy(update={"facts": facts, "tasks": tasks})):
        found.setdefault(finding.subject, []).append((finding.text, finding.remedy))
    return found


def _group(path: str, **settings: str) -> CgroupFacts:
    kept = {name.replace("_", "."): text for name, text in settings.items()}
    return CgroupFacts(path=path, settings={"cgroup.controllers": "io memory", **kept})


def test_a_weight_of_a_policy_that_is_not_active(trace: Path) -> None:
    groups = [_group("/"), _group("/a", io_weight="default 500"), _group("/a/w"), _group("/b")]
    ((text, remedy),) = _chain(trace, "mq-deadline", *groups)["policy"]
    assert text == (
        "io.weight was set (/a 500), but it belongs to io.cost, which was not active on sda;"
        " no policy read weights there"
    )
    assert remedy == "write '8:0 enable=1' to io.cost.qos of the root group"
    ((text, remedy),) = _chain(trace, "bfq", *groups)["policy"]
    assert text.endswith("not active on sda; there bfq reads io.bfq.weight")
    assert remedy == "set io.bfq.weight instead"
    groups[0] = _group("/", io_cost_qos="8:0 enable=1 ctrl=user rpct=0.00")
    assert "policy" not in _chain(trace, "mq-deadline", *groups)
    groups[0] = _group("/", io_cost_qos="8:16 enable=1")
    assert "policy" in _chain(trace, "mq-deadline", *groups)


def test_weights_count_among_siblings(trace: Path) -> None:
    def chain(first: str, second: str) -> dict[str, list[tuple[str, str | None]]]:
        groups = [_group("/a", io_bfq_weight=first), _group("/a/w", io_bfq_weight="default 900")]
        return _chain(trace, "bfq", _group("/"), *groups, _group("/b", io_bfq_weight=second))

    ((text, remedy),) = chain("default 100", "default 100")["weights"]
    assert text == "below /, all groups that did I/O had the same io.bfq.weight on sda (100): /a and /b"
    assert "raise io.bfq.weight" in str(remedy)
    ((text, remedy),) = chain("default 100\n8:0 300\n8:16 7", "default 200")["weights"]
    assert text == "below /, bfq divided sda by io.bfq.weight: a 300 and b 200"
    assert remedy is None


def test_weights_of_version_1(trace: Path) -> None:
    a = CgroupFacts(path="/a", settings={"blkio.bfq.weight": "100", "blkio.bfq.weight_device": "8:0 700"})
    b = CgroupFacts(path="/b", settings={"blkio.bfq.weight": "250"})
    groups = [CgroupFacts(path="/"), a, CgroupFacts(path="/a/w", settings={"blkio.bfq.weight": "100"}), b]
    found = _chain(trace, "bfq", *groups, version=1)
    assert found["weights"][0][0] == "below /, bfq divided sda by blkio.bfq.weight: a 700 and b 250"
    assert "controller" not in found
    ((text, remedy),) = _chain(trace, "none", *groups, version=1)["policy"]
    assert "blkio.bfq.weight was set (/a 700 and /b 250)" in text
    assert remedy == "select bfq for sda"


def test_a_group_without_the_controller(trace: Path) -> None:
    bare = CgroupFacts(path="/a/w", settings={"cgroup.controllers": "memory"})
    ((text, remedy),) = _chain(trace, "bfq", _group("/"), _group("/a"), bare, _group("/b"))["controller"]
    assert "not enabled for /a/w" in text
    assert "cgroup.subtree_control of /a " in str(remedy)


def test_classes_of_groups_and_levels_that_count_for_nothing(trace: Path) -> None:
    groups = [_group("/"), _group("/a", io_prio_class="idle"), _group("/b", io_prio_class="no-change")]
    everything = analyse_waits(trace).all.model_copy(update={"ioprio": [(0x4000, 1), (0x4007, 1)]})
    for scheduler, ignored in (("mq-deadline", True), ("bfq", False), ("none", False)):
        texts = [text for text, _ in _chain(trace, scheduler, *groups, all=everything)["classes"]]
        assert any("io.prio.class changed" in text and "/a idle" in text for text in texts)
        assert any("be/0, be/7" in text and "reads classes only" in text for text in texts) == ignored


def test_priorities_are_shown_as_ionice_sets_them() -> None:
    assert [priority_text(number) for number in (0, 0x4004, 0x2000, 0x6007, UNKNOWN_IOPRIO)] == [
        "none",
        "be/4",
        "rt/0",
        "idle",
        "unknown",
    ]


def test_no_priorities_of_other_programs_traces(trace: Path) -> None:
    document = where_document("x", analyse_waits(trace))
    assert document.priorities == []
    assert "Priorities and weights" not in where_html(document)


def test_a_trace_of_issues_and_completions_has_an_unknown_queue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "issues.txt"
    path.write_text(
        "  8,0    1        1     0.000000000   100  D   R 2048 + 8 [app]\n"
        "  8,0    1        2     0.000100000   101  D   N 0 [udev]\n"
        "  8,0    1        3     0.000300000     0  C   R 2048 + 8 [0]\n"
    )
    assert run(["where", str(path), "-v"]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert "1 I/O, " in printed
    assert "the trace does not tell: it begins with issues" in printed
    row = next(line for line in printed.splitlines() if line.startswith("app[100]"))
    assert row.split() == ["app[100]", "1", *["300", "µs"] * 5]
    assert "QUEUE MEAN" not in printed
    waits = analyse_waits(path)
    assert (waits.queues_known, waits.devices[0].in_queue) == (False, None)
    assert waits.tally.unmatched == 0


def test_completions_alone_are_a_trace_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "completions.txt"
    path.write_text("  8,0    1        2     0.000300000     0  C   R 2048 + 8 [0]\n")
    assert run(["where", str(path)]) == ExitCode.PARTIAL
    printed = capsys.readouterr().out
    assert "none of its 1 completions has an I/O" in printed
    assert "has no completions" not in printed


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("alibaba", "1,R,4096,4096,1577808000000000\n1,W,8192,4096,1577808000000500\n"),
        ("msr", "128166372003061629,hm,1,Read,383496192,32768,50000\n"),
    ],
)
def test_what_a_trace_lacks_is_never_0(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{name}.csv"
    path.write_text(text)
    assert run(["where", str(path), "-v"]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert "-0.0" not in printed
    assert " 0 ns" not in printed
    assert "in the device 0" not in printed
    (device,) = analyse_waits(path).devices
    assert device.in_device is None
    assert (device.busy_ns is None) == (name == "alibaba")
    page = tmp_path / "page.html"
    assert run(["where", str(path), "--html", str(page)]) == ExitCode.OK
    if name == "msr":
        row = next(line for line in printed.splitlines() if line.startswith("unknown "))
        assert row.split() == ["unknown", "1", *["5.00", "ms"] * 3]
        assert "some under way" in printed


def test_the_page_is_named_and_opened_if_asked(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("blklab.cli.where.open_page", opened.append)
    page = tmp_path / "page.html"
    assert run(["where", str(trace), "--html", str(page)]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines()[-1] == f"page: {page}"
    assert not opened
    assert run(["where", str(trace), "--html", str(page), "--open"]) == ExitCode.OK
    assert opened == [str(page)]


def test_results_of_a_benchmark_are_named_with_the_command_that_reads_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "hdparm.txt"
    results.write_text(
        "/dev/sda:\n Timing buffered disk reads: 1500 MB in  3.00 seconds = 500.00 MB/sec\n", encoding="utf-8"
    )
    assert run(["where", str(results)]) == ExitCode.DATA
    shown = capsys.readouterr().err
    assert "results of a benchmark (hdparm), not a trace" in shown
    assert f"blklab analyse {results}" in shown


def test_a_run_of_a_replay_counts_its_properties_beneath_the_result(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", "sim:ssd-sata", f"trace:{trace}", "-q"]) == ExitCode.OK
    said = capsys.readouterr().err
    assert f"remarks on the load: blklab workloads trace:{trace}" in said.replace("\n", " ")
    assert "closed: an I/O waits" not in said
