"""Details of each format: units, factors, omitted values and messages."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from reader_cases import FILES, read_text, reading_of, source_of

from blklab.errors import FormatError, UnknownNameError
from blklab.labs.reanalysis.readers import READERS, decoded, load_source, read_source, reader_named
from blklab.labs.reanalysis.readers.numbers import NumberError, parse_number
from blklab.labs.reanalysis.readers.protocol import Measurement, ReaderOptions, Reading, Source
from blklab.labs.reanalysis.readers.units import converted, unit_of_column


def _values(reading: Reading, metric: str, **factors: str) -> list[float]:
    return [
        one.value
        for one in reading.measurements
        if one.metric == metric and factors.items() <= one.factors.items()
    ]


def _first(reading: Reading, metric: str) -> Measurement:
    return next(one for one in reading.measurements if one.metric == metric)


def test_hdparm_takes_the_scheduler_from_the_log() -> None:
    reading = reading_of("hdparm.log")
    assert len(_values(reading, "cached reads", scheduler="none")) == 4
    assert len(_values(reading, "buffered disk reads", scheduler="mq-deadline", device="/dev/loop0")) == 4
    first = _first(reading, "cached reads")
    assert (first.value, first.unit, first.better, first.location.line) == (27889.04, "MiB/s", "higher", 4)
    assert reading.chronological


def test_logs_that_end_too_soon_between_lines() -> None:
    lines = source_of("hdparm.log").lines
    named = read_text("\n".join(lines[:8]) + "\n")
    assert [(problem.location.line, "no value follows" in problem.message) for problem in named.problems] == [
        (8, True)
    ]
    half = read_text("\n".join(lines[:9]) + "\n")
    assert [problem.location.line for problem in half.problems] == [8]
    assert "buffered disk reads is missing" in half.problems[0].message
    table = source_of("tiotest.txt").lines
    assert "has no end" in read_text("\n".join(table[:7]) + "\n").problems[0].message
    tables = source_of("tiobench.txt").lines
    assert "random writes" in read_text("\n".join(tables[:34]) + "\n").problems[0].message


def test_hdparm_says_what_is_cut_off_or_does_not_add_up() -> None:
    reading = read_text(
        "/dev/sda:\n"
        "SG_IO: bad/missing sense data, sb[]:  70 00 05 00\n"
        " Timing cached reads:   11438 MB in  2.00 seconds = 5725.27 MB/sec\n"
        " Timing buffered disk reads: 3280 MB in  3.00 seconds = 92.66 MB/sec\n"
        "./test: line 6: echo: write error: Invalid argument\n"
        "$ some prompt\n"
        " Timing cached reads:   114"
    )
    assert _values(reading, "cached reads") == [5725.27]
    assert [(problem.location.line, "is not" in problem.message) for problem in reading.problems] == [
        (4, True),
        (7, False),
    ]
    assert reading.skipped_lines == [6]
    assert "log:5" in reading.notes[0]


def test_hdparm_settings_at_the_end_of_a_log_are_no_run_that_is_cut_off() -> None:
    timed = "/dev/sdx:\n Timing buffered disk reads: 300 MB in  3.00 seconds = 100.00 MB/sec\n\n"
    reading = read_text(f"{timed}/dev/sdx:\n readahead     = 256 (on)\n")
    assert not reading.problems
    assert reading.skipped_lines == [5]
    assert "no value follows" in read_text(f"{timed}/dev/sdx:\n").problems[0].message


def test_results_of_a_second_tool_are_named() -> None:
    both = source_of("hdparm.log").text + source_of("dd-c.log").text
    reading = read_text(both)
    assert len(reading.measurements) == len(reading_of("hdparm.log").measurements)
    (problem,) = reading.problems
    assert "--reader dd" in problem.message
    forced = read_source(Source("log", both), ReaderOptions(), "dd")[1]
    assert len(forced.measurements) == len(reading_of("dd-c.log").measurements)
    assert not forced.problems


@pytest.mark.parametrize("name", ["fio.json", "fio-plus.json", "fio-mixed.txt"])
def test_fio_json_gives_each_job_and_direction(name: str) -> None:
    reading = reading_of(name)
    assert len(_values(reading, "bandwidth", job="reader", direction="read")) == 1
    assert not _values(reading, "bandwidth", job="reader", direction="write")
    assert len(_values(reading, "IOPS", job="mixed", direction="write")) == 1
    assert len(_values(reading, "completion latency p99", job="mixed")) == 2
    line = _first(reading, "bandwidth").location.line
    assert '"jobname" : "reader"' in source_of(name).lines[(line or 1) - 1]


def test_fio_terse_versions_agree_with_their_own_fields() -> None:
    for version in (2, 3, 4, 5):
        name = f"fio-terse{version}.txt"
        fields = source_of(name).lines[0].split(";")
        start = 4 if version == 2 else 5
        reading = reading_of(name)
        assert _values(reading, "bandwidth", job="reader") == [float(fields[start + 1]) / 1024]
        assert _values(reading, "IOPS", job="reader") == [float(fields[start + 2])]
        assert len(_values(reading, "mean latency", job="mixed")) == 2


def test_fio_json_refuses_values_of_a_failed_job_and_says_where_it_breaks() -> None:
    text = source_of("fio.json").text
    failed = read_text(text.replace('"error" : 0', '"error" : 5', 1))
    assert "reports error" in failed.problems[0].message
    assert not _values(failed, "bandwidth", job="reader")
    cut = read_text(text[: len(text) // 2])
    assert len(cut.problems) == 1
    assert not cut.measurements


def test_iozone_tables_reports_and_throughput() -> None:
    subset = reading_of("iozone-subset.txt")
    assert _values(subset, "random write", record_kB="64") == [2589040]
    assert not _values(subset, "bkwd read")
    both = reading_of("iozone-R.txt")
    report = reading_of("iozone-report.txt")
    assert len(both.measurements) == len(report.measurements) == 9 * 13
    for one in report.measurements:
        size, record = one.factors["file_kB"], one.factors["record_kB"]
        assert _values(both, one.metric, file_kB=size, record_kB=record) == [one.value]
    assert any("does not count again" in note for note in both.notes)
    assert _values(reading_of("iozone-throughput.txt"), "readers", processes="2") == [8970168.0]


def test_iozone_report_of_automatic_mode_has_rows_that_end_at_the_size_of_the_file() -> None:
    report = reading_of("iozone-auto-report.txt")
    assert len(report.measurements) == 4 * (5 + 6 + 7)
    assert _values(report, "reread", file_kB="64", record_kB="64") == [12902017]
    text = source_of("iozone-auto-report.txt").text
    lost = read_text(text.replace(" 1310683  1828508", " 1310683", 1))
    assert len(lost.measurements) == len(report.measurements) - 5
    assert lost.problems[0].message == "write: 4 values for 13 record sizes"


def test_iozone_worksheet_holds_what_the_report_holds() -> None:
    report, sheet = reading_of("iozone-auto-report.txt"), reading_of("iozone-auto.xls")
    values = [
        [(one.metric, one.value, one.unit, one.factors) for one in reading.measurements]
        for reading in (report, sheet)
    ]
    assert values[0] == values[1]
    assert not sheet.skipped_lines
    assert [len(report.notes), len(sheet.notes)] == [1, 0], "a worksheet tells its unit"


def test_iozone_worksheet_of_the_throughput_mode() -> None:
    reading = reading_of("iozone-throughput.xls")
    assert _values(reading, "rewriters", processes="1") == [2533571]
    assert _values(reading, "rewriters", processes="2") == [1985448.375]
    assert {one.factors["record_kB"] for one in reading.measurements} == {"16"}
    text = source_of("iozone-throughput.xls").text
    without_command = read_text(text.partition("\n")[2])
    assert not without_command.measurements
    assert "2 values for unknown numbers of processes" in without_command.problems[0].message


@pytest.mark.parametrize(
    ("option", "unit", "better"),
    [("-O", "IO/s", "higher"), ("-N", "us", "lower"), ("-fO", "KiB/s", "higher")],
)
def test_iozone_command_line_tells_the_unit(option: str, unit: str, better: str) -> None:
    text = source_of("iozone-auto.xls").text
    reading = read_text(text.replace(" -R -b", f" {option} -R -b", 1))
    assert {(one.unit, one.better) for one in reading.measurements} == {(unit, better)}


def test_iozone_command_line_that_is_not_understood_leaves_the_unit_open() -> None:
    reading = read_text(source_of("iozone-auto.xls").text.replace(" -R -b", " -R -! -b", 1))
    assert not reading.measurements
    assert "cannot parse the command line" in reading.problems[0].message


def test_a_worksheet_that_is_cut_off_or_damaged_is_refused() -> None:
    whole = (FILES / "iozone-auto.xls").read_bytes()
    for end in range(8, len(whole), 97):
        with pytest.raises(FormatError, match="truncated or damaged"):
            decoded("out.xls", whole[:end])


@pytest.mark.parametrize("place", range(8, 4400, 131))
def test_a_damaged_worksheet_gives_text_or_is_refused(place: int) -> None:
    whole = (FILES / "iozone-auto.xls").read_bytes()
    with contextlib.suppress(FormatError):
        source, _ = decoded("out.xls", whole[:place] + b"\xff\xff\xff\xff" + whole[place + 4 :])
        assert "iozone" in source.text or place < 300


def test_iozone_tables_of_older_versions() -> None:
    text = (
        "\tOutput is in Kbytes/sec\n"
        "                                                            random  random\n"
        "              KB  reclen   write rewrite    read    reread    read   write\n"
        "           65536      64  101000  102000  201000   202000  150000   99000\n"
        "\niozone test complete.\n"
    )
    reading = read_text(text)
    assert [one.value for one in reading.measurements] == [101000, 102000, 201000, 202000, 150000, 99000]
    assert _values(reading, "random write", file_kB="65536", record_kB="64") == [99000]
    assert not reading.problems
    late = read_text(
        text.replace("  201000   202000  150000   99000", "                                       88000")
    )
    assert _values(late, "bkwd read") == [], "a value that ends in no column is not guessed"
    assert "columns cannot be determined" in late.problems[0].message


def test_iozone_row_with_blanks_that_were_lost_is_not_guessed() -> None:
    heading = "  kB  reclen    write  rewrite    read    reread\n"
    reading = read_text(f"{heading}2048 64 100 200 300\niozone test complete.\n")
    assert not reading.measurements
    assert "columns cannot be determined" in reading.problems[0].message
    whole = read_text(heading + "2048 64 " + " ".join(map(str, range(1, 14))) + "\niozone test complete.\n")
    assert _values(whole, "freread") == [13]


def test_tiotest_and_tiobench() -> None:
    reading = reading_of("tiotest.txt")
    assert _values(reading, "rate", phase="random read", threads="2") == [915.885]
    assert _values(reading, "maximum latency", phase="total") == [2.757]
    assert _values(reading_of("tiotest-terse.txt"), "rate", phase="write") == [pytest.approx(10 / 0.01582)]
    table = reading_of("tiobench.txt")
    assert _values(table, "rate", test="random writes", threads="2") == [154.31]
    assert not table.skipped_lines


def test_tiotest_row_broken_in_two_is_a_problem() -> None:
    text = source_of("tiotest.txt").text.replace("| Read           10 MBs", "| Read\n10 MBs")
    reading = read_text(text)
    assert not _values(reading, "rate", phase="read")
    assert [problem.location.line for problem in reading.problems] == [7]


@pytest.mark.parametrize(
    ("name", "count"), [("dd-c.log", 3), ("dd-ru.log", 3), ("dd-zh.log", 3), ("dd-older.log", 5)]
)
def test_dd_in_every_locale(name: str, count: int) -> None:
    reading = reading_of(name)
    assert len(reading.measurements) == count
    assert not reading.skipped_lines


def test_dd_computes_what_it_rounds_and_notices_mixed_locales() -> None:
    older = reading_of("dd-older.log")
    assert older.measurements[0].value == pytest.approx(2147483648 / 4.2 / 1e6)
    assert older.measurements[3].value == pytest.approx(0.524288)
    assert "several locales" in older.notes[0]
    wrong = read_text("1+0 records in\n1+0 records out\n1048576 bytes (1.0 MB) copied, 2.0 s, 9.9 MB/s\n")
    assert "is not" in wrong.problems[0].message
    assert not wrong.measurements
    cut = read_text("5+0 records in\n5+0 records out\n1048576 bytes (1.0 MB) cop")
    assert "truncated" in cut.problems[0].message
    ended = read_text(source_of("dd-c.log").text + "5+0 records in\n5+0 records out\n")
    assert "is missing after" in ended.problems[0].message


def test_iotop_processes_and_totals() -> None:
    reading = reading_of("iotop-python.log")
    assert _values(reading, "process disk write", priority="be/7", sample="2") == [828.12]
    assert _values(reading, "total disk read", sample="2") == [pytest.approx(47.66 / 1024)]
    one = next(m for m in reading.measurements if m.factors.get("priority") == "be/0")
    assert one.factors["command"] == "dd if=/dev/zero of=y0 bs=1M count=2500 oflag=direct"
    assert reading.roles["sample"] == "block"
    assert len(_values(reading_of("iotop-c.log"), "current disk write")) == 3


def test_iotop_with_clock_and_percentages() -> None:
    reading = read_text(
        "10:00:01 Total DISK READ :       0.00 B/s | Total DISK WRITE :     518.69 M/s\n"
        "10:00:01 Actual DISK READ:       0.00 B/s | Actual DISK WRITE:     518.69 M/s\n"
        "    TIME  TID  PRIO  USER     DISK READ  DISK WRITE  SWAPIN      IO    COMMAND\n"
        "b'10:00:01  1586 be/7 vagrant     0.00 B/s  518.69 M/s  0.00 % 54.18 % dd bs=1M'\n"
        "10:00:02 Total DISK READ :       0.00 B"
    )
    assert _values(reading, "process disk write", priority="be/7", tid="1586") == [518.69]
    assert [problem.location.line for problem in reading.problems] == [5]


def test_bonnie_of_three_generations() -> None:
    assert _values(reading_of("bonnie-1.03.csv"), "put_block", name="deadline-a") == [41200]
    assert _values(reading_of("bonnie-1.03.csv"), "ran_del") == [2500, 2450]
    middle = reading_of("bonnie-1.97.csv")
    assert _values(middle, "putc latency") == [16.5, 16.4]
    assert _values(middle, "rewrite latency") == [1000, 1000]
    assert _values(middle, "seeks") == [250.5, 249.0]
    latest = reading_of("bonnie-2.00.csv")
    assert _values(latest, "putc") == [1878, 919]
    assert _values(latest, "ran_del latency") == [4.198, 4.517]
    assert any("+++++" in note for note in latest.notes)
    assert not _values(latest, "put_block")


def test_phoronix_has_every_run() -> None:
    reading = reading_of("phoronix.xml")
    assert _values(reading, "Flexible IO Tester", system="bfq") == [170, 172, 171]
    compile_bench = _first(reading, "Compile Bench")
    assert (compile_bench.value, compile_bench.unit, compile_bench.better) == (12.5, "s", "lower")
    assert "only the mean" in reading.notes[0]
    cut = read_text(source_of("phoronix.xml").text[:1100])
    assert _values(cut, "Flexible IO Tester", system="none") == [200, 202, 201]
    assert "breaks here" in cut.problems[0].message
    bomb = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><PhoronixTestSuite>&a;</PhoronixTestSuite>'
    assert "document type" in read_text(bomb).problems[0].message


def test_tables_and_what_is_wrong_with_their_cells() -> None:
    assert [one.value for one in reading_of("table-semicolon.csv").measurements] == [101.5, 103, 90.1, 91.7]
    text = "a;rate_MBps\nx;1,5\nx;1.5\nx;\nx;nan\nx;1,234\nx;1.2.3\nx\nx;1e999\nx;7;8\n"
    options = ReaderOptions(value_columns=("rate_MBps",))
    reading = READERS["csv"].read(Source("t", text), options)
    assert [one.value for one in reading.measurements] == [1.5, 1.5]
    assert [problem.location.line for problem in reading.problems] == [4, 5, 6, 7, 8, 9, 10]
    comma = ReaderOptions(value_columns=("rate_MBps",), decimal=",")
    settled = READERS["csv"].read(Source("t", text), comma)
    assert [one.value for one in settled.measurements] == [1.5, 1.234]
    missing = READERS["csv"].read(Source("t", text), ReaderOptions(value_columns=("speed",)))
    assert "'a', 'rate_MBps'" in missing.problems[0].message


def test_unknown_formats_name_the_readers_that_were_tried() -> None:
    with pytest.raises(FormatError, match=r"tried: hdparm, fio-json, .*phoronix"):
        read_source(Source("x", "Lorem ipsum\n"), ReaderOptions())
    with pytest.raises(FormatError) as table:
        read_source(Source("x", "a,b\n1,2\n"), ReaderOptions())
    assert "--value" in (table.value.hint or "")
    with pytest.raises(UnknownNameError, match="no reader 'word'"):
        reader_named("word")


def test_files_that_are_not_text() -> None:
    for content in (b"", b" \n\t\n", b"\xd0\xcf\x11\xe0\x00"):
        with pytest.raises(FormatError, match=r"empty|binary"):
            decoded("x", content)
    source, notes = decoded("x", b"abc\xff\xfe def")
    assert "1" in notes[0] or "2" in notes[0]
    assert source.text.startswith("abc")
    text = (FILES / "dd-c.log").read_text(encoding="utf-8")
    assert decoded("x", text.encode("utf-16"))[0].text == text
    assert decoded("x", text.replace("\n", "\r\n").encode())[0].text == text
    with pytest.raises(FormatError, match="cannot be read"):
        load_source("/nowhere/at/all")
    with pytest.raises(FormatError, match="cannot be read"):
        load_source(str(FILES))


@pytest.mark.parametrize("text", ["nan", "-inf", "", "12a", "1 234", "1.234.567", "--1", "1e999"])
def test_what_is_not_a_number(text: str) -> None:
    with pytest.raises(NumberError):
        parse_number(text)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("iozone-subset.txt", "1050267"),
        ("iozone-report.txt", "4068701"),
        ("dd-c.log", "26214400"),
        ("bonnie-1.97.csv", "16500"),
        ("fio.json", "56888.888889"),
        ("phoronix.xml", "200"),
        ("tiotest.txt", "506.483"),
        ("hdparm.log", "27889.04"),
    ],
)
def test_absurd_numbers_are_problems(name: str, number: str) -> None:
    whole = source_of(name)
    assert number in whole.text
    reading = read_text(whole.text.replace(number, "9" * 5000, 1))
    assert reading.problems
    assert all(abs(one.value) < 1e30 for one in reading.measurements)


def test_units() -> None:
    assert converted(1, "MiB/s", "kB/s") == pytest.approx(1048.576)
    assert converted(1, "MB/s", "ms") is None
    assert converted(1, "parsec", "parsec") == 1
    assert unit_of_column("throughput_MBps") == "MB/s"
    assert unit_of_column("runs") is None


def test_a_trace_of_the_block_layer_is_told_as_such(tmp_path: Path) -> None:
    trace = tmp_path / "a trace.txt"
    lines = [
        f"  8,0    1 {number:8d}     0.00{number}000000   100  {action}   R {number // 2 * 8} + 8 [dd]"
        for number, action in enumerate("QDCQDC")
    ]
    trace.write_text("\n".join(lines) + "\n", encoding="utf-8")
    source, _ = load_source(str(trace))
    with pytest.raises(FormatError, match=r"a trace \(blkparse\)") as refused:
        read_source(source, ReaderOptions())
    assert refused.value.hint == f"blklab where '{trace}' shows where its I/Os waited"
