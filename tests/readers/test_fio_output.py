"""fio's normal output and the results of its clients: figures, settings and what is cut off."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path

import pytest
from reader_cases import read_text, reading_of, source_of

from blklab.errors import FormatError
from blklab.labs.reanalysis.readers import READERS
from blklab.labs.reanalysis.readers.protocol import Measurement, ReaderOptions, Reading, Source

HEADING = "n: (groupid=0, jobs=1): err= 0: pid=9: Sat Nov 28 10:54:09 2026\n"


def _values(reading: Reading, metric: str, **factors: str) -> list[float]:
    return [
        one.value
        for one in reading.measurements
        if one.metric == metric and factors.items() <= one.factors.items()
    ]


def _only(reading: Reading, metric: str) -> Measurement:
    (found,) = (one for one in reading.measurements if one.metric == metric)
    return found


def test_normal_output_of_version_3() -> None:
    reading = reading_of("fio-normal3.txt")
    assert _values(reading, "bandwidth", job="reader") == [79.7]
    assert _values(reading, "IOPS", job="reader") == [20400]
    assert _values(reading, "mean latency", job="reader") == [390.05]
    assert _values(reading, "completion latency p50", job="mixed", direction="read") == [
        pytest.approx(4.704)
    ], "nanoseconds"
    assert _values(reading, "completion latency p99", job="mixed", direction="write") == [49]
    assert _values(reading, "mean sync latency", job="mixed") == [2667.12]
    assert _values(reading, "sync latency p99", job="mixed") == [6521]
    assert not reading.skipped_lines


def test_normal_output_says_how_a_job_was_run() -> None:
    reading = reading_of("fio-normal3.txt")
    first = next(one for one in reading.measurements if one.factors["job"] == "reader")
    settings = {name: first.factors[name] for name in ("rw", "bs", "ioengine", "iodepth", "numjobs")}
    assert settings == {
        "rw": "randread",
        "bs": "4096B",
        "ioengine": "libaio",
        "iodepth": "8",
        "numjobs": "1",
    }
    mixed = next(one for one in reading.measurements if one.factors["job"] == "mixed")
    assert "16.0KiB" in mixed.factors["bs"], "sizes that differ stand as printed"
    assert mixed.factors["numjobs"] == "2"


def test_normal_output_of_version_2() -> None:
    reading = reading_of("fio-normal2.txt")
    assert _values(reading, "bandwidth", job="reader", scheduler="deadline") == [100745 / 1024]
    assert _values(reading, "bandwidth", job="writer", direction="read") == [pytest.approx(41097 / 2**20)]
    assert _values(reading, "mean latency", job="writer", direction="read") == [96210]
    assert _values(reading, "completion latency p99", job="writer", direction="write") == [692224]
    assert {one.factors["bs"] for one in reading.measurements if one.factors["job"] == "reader"} == {"4K"}


def test_normal_output_of_version_1() -> None:
    reading = read_text(
        HEADING.partition(": Sat")[0] + "\n"
        "  write: io=255624KB, bw=19933KB/s, iops=2491 , runt= 12824msec\n"
        "    clat (usec): min=7 , max=9411.7K, avg=1443.28, stdev=33091.95\n"
        "     lat (usec): min=7 , max=9411.7K, avg=1443.38, stdev=33091.95\n"
        "     issued r/w/d: total=0/31953/0, short=0/0/0\n"
    )
    assert _only(reading, "bandwidth").value == 19933 / 1024
    assert _only(reading, "mean latency").value == 1443.38
    assert not reading.notes


@pytest.mark.parametrize(
    ("printed", "mebibytes"),
    [
        ("1333MiB/s (1398MB/s)", 1333.0),
        ("2.5GiB/s (2684MB/s)", 2560.0),
        ("512KiB/s (524kB/s)", 0.5),
        ("512B/s (512B/s)", 512 / 2**20),
        ("500MB/s (477MiB/s)", 500e6 / 2**20),
        ("800Mbit/s (763Mibit/s)", 100e6 / 2**20),
        ("621Mi (651M)", 621.0),
    ],
)
def test_bandwidth_is_the_one_that_fio_prints_first(printed: str, mebibytes: float) -> None:
    reading = read_text(f"{HEADING}  read: IOPS=21.3k, BW={printed}(4096KiB/3msec)\n")
    assert _only(reading, "bandwidth").value == pytest.approx(mebibytes, rel=1e-12)
    assert _only(reading, "IOPS").value == 21300


def test_a_failed_job_and_one_that_is_cut_off() -> None:
    text = source_of("fio-normal3.txt").text
    failed = read_text(text.replace("err= 0", "err= 5 (file:io_u.c:1803, error=I/O error)", 1))
    assert "fio reports error 5" in failed.problems[0].message
    assert not _values(failed, "bandwidth", job="reader")
    lines = text.split("\n")
    end = next(number for number, line in enumerate(lines) if "percentiles" in line)
    cut = read_text("\n".join(lines[: end + 3]) + "\n")
    assert "percentiles are cut off" in cut.problems[0].message
    whole = read_text("\n".join(lines[:end]) + "\n")
    assert "before the line of issued I/Os: it is cut off" in whole.problems[0].message
    assert "fio started 3 jobs here, and the log has figures of 1" in whole.problems[1].message
    first = next(number for number, line in enumerate(lines) if "groupid=0" in line)
    excerpt = read_text("\n".join(lines[first:end]) + "\n")
    assert not excerpt.problems
    assert "an excerpt, or cut off" in excerpt.notes[0]
    assert "no figures follow" in read_text(HEADING).problems[0].message


def test_a_log_that_is_cut_between_two_jobs_says_how_many_are_missing() -> None:
    text = source_of("fio-normal3.txt").text
    assert not read_text(text).problems
    second = text.index("\n", text.index("issued rwts"))
    cut = read_text(text[: second + 1])
    assert [problem.message for problem in cut.problems] == [
        "fio started 3 jobs here, and the log has figures of 1: it is cut off"
    ]
    again = read_text(text[: second + 1] + text)
    assert len(again.problems) == 1


def test_a_summary_alone_gives_the_groups_and_beside_its_jobs_does_not_count_again() -> None:
    text = source_of("fio-normal3.txt").text
    summary = text[text.index("Run status group 0") :]
    reading = read_text(summary)
    assert _values(reading, "bandwidth", job="group 1", direction="write") == [101]
    assert len(reading.measurements) == 3
    assert not any(one.factors["job"].startswith("group") for one in read_text(text).measurements)


def test_several_runs_in_one_log_are_repetitions_and_clones_are_not() -> None:
    text = source_of("fio-normal3.txt").text
    twice = read_text(text + "none mq-deadline [bfq]\n" + text)
    assert len(_values(twice, "IOPS", job="reader")) == 2
    assert len(_values(twice, "IOPS", job="reader", scheduler="bfq")) == 1
    assert not twice.notes
    job = text[text.index("reader: (groupid") : text.index("mixed: (groupid")]
    cloned = read_text(text.replace(job, job + job))
    assert any("2 results in one run of fio" in note for note in cloned.notes)


def test_a_progress_line_before_a_job_is_overwritten() -> None:
    text = source_of("fio-normal3.txt").text
    progress = "Jobs: 1 (f=1): [r(1)][100.0%][r=79.7MiB/s][r=20.4k IOPS][eta 00m:00s]\r"
    assert len(
        read_text(text.replace("\nreader: (groupid", f"\n{progress}reader: (groupid")).measurements
    ) == len(reading_of("fio-normal3.txt").measurements)


@pytest.mark.parametrize(("name", "factor"), [("fio-clients.json", "host"), ("fio-clients.txt", "client")])
def test_clients_have_their_own_results_and_a_sum(name: str, factor: str) -> None:
    reading = reading_of(name)
    levels = [one.factors[factor] for one in reading.measurements if one.metric == "IOPS"]
    assert levels.count("all") == 2
    assert len(levels) == 6
    assert not any("clones" in note for note in reading.notes)


def test_json_gives_the_settings_and_the_scheduler() -> None:
    text = json.dumps(
        {
            "global options": {"ioscheduler": "bfq", "iodepth": "128", "blocksize": "4KiB", "filename": "/x"},
            "jobs": [
                {
                    "jobname": "a",
                    "job options": {"readwrite": "randread", "iodepth": "4"},
                    "read": {"io_bytes": 1, "bw_bytes": 2**20, "iops": 256.0, "runtime": 1000},
                    "sync": {"total_ios": 3, "lat_ns": {"mean": 2e6, "percentile": {"99.000000": 9e6}}},
                }
            ],
        },
        indent=1,
    )
    reading = read_text("[none] bfq\n" + text + "\nnone [bfq]\n" + text + "\n")
    first, second = (one for one in reading.measurements if one.metric == "bandwidth")
    assert first.factors == {
        "scheduler": "none",
        "job": "a",
        "direction": "read",
        "ioscheduler": "bfq",
        "iodepth": "4",
        "bs": "4k",
        "rw": "randread",
    }
    assert second.factors["scheduler"] == "bfq"
    assert _values(reading, "mean sync latency") == [2000, 2000]
    assert _values(reading, "sync latency p99") == [9000, 9000]


@pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
def test_normal_output_agrees_with_the_json_of_the_same_run(tmp_path: Path) -> None:
    first = "[a]\nrw=randrw\nbs=4k\nsize=1m\nfilename=data\n"
    job = f"{first}[b]\nstonewall\nrw=write\nbs=64k\nsize=1m\nfilename=data\n"
    (tmp_path / "jobs.fio").write_text(job, encoding="utf-8")
    command = ["fio", "--output-format=normal,json", "jobs.fio"]
    printed = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    begin = printed.index("\n{") + 1
    end = printed.rindex("\n}") + 2
    normal = READERS["fio-normal"].read(Source("n", printed[:begin] + printed[end:]), ReaderOptions())
    exact = READERS["fio-json"].read(Source("j", printed[begin:end]), ReaderOptions())
    assert len(normal.measurements) >= 15
    for one in normal.measurements:
        (same,) = _values(exact, one.metric, job=one.factors["job"], direction=one.factors["direction"])
        # Percentiles in µs are rounded down to whole numbers. fio writes 10,154 IO/s as 10.2k: three digits.
        last_digit = 10.0 ** (math.floor(math.log10(one.value)) - 2) if one.metric == "IOPS" else 0.0
        assert one.value == pytest.approx(same, rel=2e-3, abs=max(1.0, last_digit / 2)), one


def test_a_shortened_log_of_sysbench_names_the_line_that_is_missing() -> None:
    text = source_of("sysbench.txt").text
    shortened = read_text(text[text.index("File operations:") : text.index("Threads fairness:")])
    assert _values(shortened, "reads")[0] == 13404.96
    assert 'without the line "Doing … test"' in shortened.problems[0].message


def test_sysbench_rates_and_latencies() -> None:
    reading = reading_of("sysbench.txt")
    assert _values(reading, "reads", test="random r/w", threads="2", block="16KiB") == [13404.96]
    assert _values(reading, "written") == [139.64]
    assert _values(reading, "latency p95") == [0.01]
    assert {one.unit for one in reading.measurements} == {"IO/s", "MiB/s", "ms"}
    cut = read_text(source_of("sysbench.txt").text.partition("Threads fairness")[0])
    assert "does not end" in cut.problems[0].message
    older = read_text(
        "sysbench 0.4.12:  multi-threaded system evaluation benchmark\n\nNumber of threads: 16\n"
        "Doing random read test\nOperations performed:  100 Read, 0 Write, 0 Other = 100 Total\n"
        "Read 1.5625Mb  Written 0b  Total transferred 1.5625Mb  (1.5Mb/sec)\n  100.00 Requests/sec executed\n"
        "         approx.  95 percentile:               5.60ms\n"
        "    execution time (avg/stddev):   0.9932/0.00\n"
    )
    assert _values(older, "requests", threads="16") == [100]
    assert _values(older, "transferred") == [1.5]
    assert _values(older, "latency p95") == [5.6]


def test_a_result_of_fio_without_jobs_says_why() -> None:
    with pytest.raises(FormatError, match="without any job: fio was ended before a job began"):
        read_text('{"fio version": "fio-3.33", "jobs": []}')


def test_ioping_statistics() -> None:
    reading = reading_of("ioping.txt")
    assert _values(reading, "IOPS") == [366, 3550]
    assert _values(reading, "mean latency", direction="read", target=".") == [2730, 281.5]
    assert _values(reading, "throughput") == [1.43, 13.9]
    older = read_text(
        "--- . (simfs /dev/simfs) ioping statistics ---\n"
        "10 requests completed in 9009.6 ms, 2626 iops, 10.3 mb/s\nmin/avg/max/mdev = 0.1/0.4/0.7/0.2 ms\n"
    )
    assert _values(older, "maximum latency") == [pytest.approx(700)]
    assert _values(older, "throughput") == [pytest.approx(10.3)]


def test_a_document_after_a_shells_mark_is_read_and_a_file_without_one_is_reported() -> None:
    text = source_of("fio.json").text
    assert len(read_text(f">{text}").measurements) == len(read_text(text).measurements)
    nowhere = read_text(text.replace("{", "(", 1))
    assert "no JSON document" in nowhere.problems[0].message
    within = read_text(f'log: {text.splitlines()[0]} "jobname" "jobs"')
    assert "no JSON document" in within.problems[0].message


def test_a_document_that_stands_twice_counts_once() -> None:
    text = source_of("fio.json").text
    twice = read_text(f"{text}\n{text}")
    assert len(twice.measurements) == len(read_text(text).measurements)
    assert "counts once" in twice.problems[0].message
