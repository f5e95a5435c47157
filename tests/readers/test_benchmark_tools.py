"""Formats of elbencho, DISKSPD, KDiskMark and biolatency: figures, factors, and what is missing."""

from __future__ import annotations

import pytest
from reader_cases import read_text, reading_of, source_of

from blklab.labs.reanalysis.readers.protocol import Reading


def _figures(reading: Reading, metric: str, **factors: str) -> list[tuple[float, str]]:
    return [
        (one.value, one.unit)
        for one in reading.measurements
        if one.metric == metric and factors.items() <= one.factors.items()
    ]


def test_elbencho_has_both_ends_latencies_and_mixed_phases() -> None:
    reading = reading_of("elbencho.txt")
    reads = {"operation": "READ", "threads": "4", "block": "4k", "io_depth": "8", "random": "rand"}
    assert _figures(reading, "IOPS", **reads) == [(25903, "IO/s"), (25600, "IO/s")]
    assert _figures(reading, "IOPS, first done", **reads) == [(26104, "IO/s"), (26080, "IO/s")]
    assert _figures(reading, "throughput", **reads) == [(101, "MiB/s"), (100, "MiB/s")]
    assert _figures(reading, "IO mean latency", **reads) == [(1230, "us"), (1250, "us")]
    assert _figures(reading, "IO maximum latency") == [(15_800, "us"), (18_100, "us")]
    assert _figures(reading, "IO latency p99, at most") == [(4096, "us"), (5793, "us")]
    mixed = [_figures(reading, "IOPS", operation="RWMIX30", direction=d) for d in ("read", "write", "total")]
    assert mixed == [[(5120, "IO/s")], [(11950, "IO/s")], [(17070, "IO/s")]]
    old = reading_of("elbencho-old.txt")
    assert _figures(old, "IO mean latency") == [(7310, "us")]
    assert _figures(old, "Files/s") == [(121, "")]


def test_elbencho_whose_last_number_may_be_cut_is_not_used() -> None:
    text = source_of("elbencho-old.txt").text
    end = text.index("Throughput MiB/s :        127        121") + len(
        "Throughput MiB/s :        127        12"
    )
    reading = read_text(text[:end])
    assert [problem.location.line for problem in reading.problems] == [5, 3]
    assert not _figures(reading, "throughput")
    scheduled = read_text(f"none [bfq] kyber\n{text}")
    assert scheduled.measurements[0].factors["scheduler"] == "bfq"


def test_elbencho_csv_has_labels_and_the_reads_of_a_mixed_phase() -> None:
    reading = reading_of("elbencho.csv")
    assert _figures(reading, "IOPS", label="bfq", operation="READ") == [(20804, "IO/s"), (20811, "IO/s")]
    assert _figures(reading, "IO mean latency", label="bfq") == [(1530, "us"), (1528, "us")]
    assert _figures(reading, "throughput", operation="RWMIX30", direction="read") == [(20, "MiB/s")]
    assert _figures(reading, "throughput", operation="RWMIX30", direction="write") == [(46, "MiB/s")]
    assert "direction" not in reading.measurements[0].factors
    heading, row = source_of("elbencho.csv").lines[:2]
    cut = read_text(f"{heading}\n{row}\n{row[:90]}")
    assert "fields under" in cut.problems[0].message
    assert {one.location.line for one in cut.measurements} == {2}


def test_diskspd_has_totals_and_percentiles_of_each_direction() -> None:
    reading = reading_of("diskspd.txt")
    assert _figures(reading, "IOPS", direction="total") == [(4033.08, "IO/s"), (3984.51, "IO/s")]
    assert _figures(reading, "throughput", direction="read") == [(11.82, "MiB/s"), (11.67, "MiB/s")]
    assert _figures(reading, "mean latency", direction="write") == [(1.981, "ms"), (2.006, "ms")]
    assert _figures(reading, "latency p99", direction="write") == [(9.502, "ms")] * 2
    assert _figures(reading, "maximum latency", direction="read") == [(21.007, "ms")] * 2
    assert reading.measurements[0].factors == {
        "block": "4KiB",
        "cache": "software cache disabled",
        "depth": "8",
        "direction": "total",
        "mix": "mix test (read/write ratio: 75/25)",
        "offsets": "random",
        "path": "D:\\io.dat",
        "threads": "2",
    }
    old = reading_of("diskspd-old.txt")
    assert not _figures(old, "mean latency")
    assert not _figures(old, "IOPS", direction="write"), "no write was made"


def test_diskspd_says_what_is_cut_off() -> None:
    text = source_of("diskspd.txt").text
    first = text[: text.index("Command Line", 10)]
    reading = read_text(first[: first.index("Write IO")])
    assert "a table of its totals is missing" in reading.problems[0].message
    total = first.index("total:")
    in_the_total = read_text(first[: first.index("\n", total) - 2])
    assert [problem.message for problem in in_the_total.problems][:1] == [
        "this run does not end: a table of its totals is missing"
    ]
    in_a_figure = read_text(first.replace("4033.08 ", "4033.0 ", 1))
    assert "IOPS of total I/O is truncated" in in_a_figure.problems[0].message
    twice = read_text(
        first + first[first.index("Results for timespan 1") :].replace("timespan 1", "timespan 2")
    )
    assert len(_figures(twice, "IOPS", direction="total", block="4KiB")) == 2


def test_diskspd_xml_agrees_with_its_text() -> None:
    text, xml = reading_of("diskspd.txt"), reading_of("diskspd.xml")
    for direction in ("read", "write", "total"):
        for metric, digits in (("IOPS", 2), ("throughput", 2)):
            (value, unit), (printed, same) = (
                _figures(one, metric, direction=direction)[0] for one in (xml, text)
            )
            assert unit == same
            assert value == pytest.approx(printed, abs=1.1 * 10**-digits)
    assert _figures(xml, "latency p99", direction="total") == [(9.204, "ms")]
    assert _figures(xml, "maximum latency", direction="read") == [(25.108, "ms")]
    broken = source_of("diskspd.xml").text.replace("<TestTimeSeconds>20.01", "<TestTimeSeconds>0")
    assert "no TestTimeSeconds" in read_text(broken).problems[0].message
    error = "<TimeSpan>\n<Error>It was interrupted.</Error>\n</TimeSpan>"
    interrupted = f"<Results>\n<System>\n</System>\n{error}\n</Results>"
    assert read_text(interrupted).problems[0].message == "It was interrupted."
    entities = f'<!DOCTYPE a [<!ENTITY b "c">]>\n{source_of("diskspd.xml").text}'
    assert "document type" in read_text(entities).problems[0].message


def test_kdiskmark_has_three_figures_a_test_and_the_conditions_below() -> None:
    reading = reading_of("kdiskmark.txt")
    test = {"pattern": "random", "block": "4KiB", "depth": "32", "threads": "1", "direction": "read"}
    assert _figures(reading, "throughput", target="/mnt/a", **test) == [(411.305, "MB/s")]
    assert _figures(reading, "IOPS", target="/mnt/a", **test) == [(100416.3, "IO/s")]
    assert _figures(reading, "mean latency", target="/mnt/a", **test) == [(316.87, "us")]
    assert len(_figures(reading, "IOPS", target="/mnt/b", test_size="1 GiB", profile="Default")) == 8
    line = "  SEQ    1MiB (Q=  8, T= 1):  3456.789 MB/s [   3296.7 IOPS] <  2425.33 us>"
    crystal = read_text(f"CrystalDiskMark 8.0.4 x64\n\n[Read]\n{line}\n{line[:-6]}\n")
    assert _figures(crystal, "throughput", pattern="sequential") == [(3456.789, "MB/s")]
    assert [problem.location.line for problem in crystal.problems] == [5]


def test_biolatency_gives_counts_and_bounds() -> None:
    reading = reading_of("biolatency.txt")
    assert _figures(reading, "I/Os") == [(770, ""), (1584, "")]
    assert _figures(reading, "latency p50, at most", disk="loop8") == [(511, "us")]
    assert _figures(reading, "latency p99, at most", disk="loop7") == [(2047, "us")]
    of_bpftrace = reading_of("biolatency-bpftrace.txt")
    assert _figures(of_bpftrace, "I/Os") == [(349, "")]
    assert _figures(of_bpftrace, "latency p50, at most") == [(511, "us")]
    title = "     msecs               : count     distribution\n"
    two = read_text(
        f"{title}         0 -> 1          : 3        |***|\n\n{title}         2 -> 3          : 9  \n"
    )
    assert _figures(two, "latency p99, at most") == [(1000, "us")]
    assert [problem.location.line for problem in two.problems] == [5]


def _cut_at(name: str, last: str) -> Reading:
    """A log of which nothing is left behind the first line that begins so."""
    lines = source_of(name).lines
    end = next(number for number, line in enumerate(lines) if line.strip().startswith(last))
    return read_text("\n".join(lines[: end + 1]) + "\n")


def test_logs_that_end_between_two_lines_say_so() -> None:
    operation = _cut_at("elbencho.txt", "Throughput MiB/s")
    assert "the figures of READ do not end with ---" in operation.problems[0].message
    percentiles = _cut_at("diskspd.txt", "90th |")
    assert "its percentiles are cut off" in percentiles.problems[0].message
    tests = _cut_at("kdiskmark.txt", "[Write]")
    assert "the lines below these tests (Profile, Test) are missing" in tests.notes[0]
    assert not tests.problems
    for name in ("elbencho.txt", "elbencho-old.txt", "diskspd.txt", "diskspd-old.txt", "kdiskmark.txt"):
        assert not reading_of(name).problems, name
        assert not any("missing" in note for note in reading_of(name).notes), name


def test_logs_that_end_between_complete_blocks_are_told_by_what_was_asked_for() -> None:
    text = source_of("elbencho.txt").text.replace('"-r"', '"-rw"', 1)
    (cut,) = read_text(text).problems
    assert (cut.location.line, cut.message) == (
        2,
        "the command asks for WRITE, whose figures are missing: the log is cut off",
    )
    assert not read_text(text.replace("READ  ", "WRITE ", 1).replace('"-rw"', '"--write"', 1)).problems
    requests = "".join(f"4 KiB <<< . (ext4 /dev/vda 252 GiB): request={n} time=3.94 ms\n" for n in (1, 2))
    whole = source_of("ioping.txt").text
    (cut,) = read_text(f"{whole}\n{requests}").problems
    assert cut.location.line == len(whole.splitlines()) + 2
    assert "no statistics follow these requests" in cut.message
    assert len(read_text(f"{requests}{requests}{whole}").problems) == 2


def test_rates_and_times_below_zero_are_damage() -> None:
    reading = read_text(source_of("diskspd.xml").text.replace(">1.783<", ">-1.783<", 1))
    assert "-1.783 ms is below 0" in reading.problems[0].message
    assert all(one.value >= 0 for one in reading.measurements)
