"""Measures how fast each format of traces is read, in processor time for each I/O.

Every format gets the same I/Os, one each 100 µs, as lines or records of its own::

    python benches/trace_reading_speed.py [--ios N] [--rounds N] [FORMAT…]
"""

from __future__ import annotations

import argparse
import statistics
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from blklab.recordings.trace import read_trace

STEP_S = 1e-4
WAIT_S = 5e-5
SECTORS = 8
SPREAD = 1_000_003
"""Places jump by so many sectors, so that no I/O is merged."""


def _sector(number: int) -> int:
    return number * SPREAD % (1 << 31) // SECTORS * SECTORS


def _blkparse(number: int) -> str:
    at, sector = number * STEP_S, _sector(number)
    lines = (
        f"  8,0 {number % 4:4} {number * 3 + step:8} {at + step * WAIT_S / 2:14.9f}  697  {action}   R "
        f"{sector} + {SECTORS} [{command}]\n"
        for step, (action, command) in enumerate((("Q", "dd"), ("D", "dd"), ("C", "0")))
    )
    return "".join(lines)


def _perf(number: int) -> str:
    at, sector = number * STEP_S, _sector(number)
    head = f"dd  697 [{number % 4:03}]"
    return (
        f"{head} {at:.9f}: block:block_bio_queue: 8,0 R {sector} + {SECTORS} [dd]\n"
        f"{head} {at + WAIT_S / 2:.9f}: block:block_rq_issue: 8,0 R 4096 () {sector} + {SECTORS} [dd]\n"
        f"{head} {at + WAIT_S:.9f}: block:block_rq_complete: 8,0 R () {sector} + {SECTORS} [0]\n"
    )


def _biosnoop(number: int) -> str:
    at = number * STEP_S
    return f"{at:<11.6f} dd             697    sda       R {_sector(number):<10} 4096      0.01    0.05\n"


def _iosnoop(number: int) -> str:
    at = 5982800 + number * STEP_S
    return (
        f"{at:<14.6f} {at + WAIT_S:.6f} dd           697    R    8,0      {_sector(number):<12} 4096"
        "         0.05\n"
    )


def _cloudphysics(number: int) -> bytes:
    read, version = 0x28, 2 << 8
    at_us = number * 100
    return struct.pack("<HHIIIQQQ", read, version, number, 4096, 1, _sector(number), at_us, 50)


def _blktrace(number: int) -> bytes:
    """The events of beginning, issue and completion, with the bits of ``blktrace_api.h``."""
    at_ns, read, disk = round(number * STEP_S * 1e9), 1 << 16, 8 << 20
    steps = ((1, 1 << 22, 0.0), (7, 1 << 25, 0.5), (8, 1 << 27, 1.0))
    return b"".join(
        struct.pack(
            "<IIQQIIIIIHH", 0x65617407, number * 3 + step, at_ns + round(share * WAIT_S * 1e9),
            _sector(number), SECTORS * 512, action | category | read, 697, disk, 0, 0, 0,
        )
        for step, (action, category, share) in enumerate(steps)
    )  # fmt: skip


def _msr(number: int) -> str:
    return f"{128166372003061629 + number * 1000},usr,0,Read,{_sector(number) * 512},4096,500\n"


def _alibaba(number: int) -> str:
    return f"3,R,{_sector(number) * 512},4096,{1577808000000000 + number * 100}\n"


def _tencent(number: int) -> str:
    return f"{1538323200 + number // 10000},{_sector(number)},{SECTORS},0,1283\n"


def _systor(number: int) -> str:
    return f"{1455592800 + number * STEP_S:.9f},0.000050000,R,0,{_sector(number) * 512},4096\n"


def _spc(number: int) -> str:
    return f"0,{_sector(number)},4096,R,{number * STEP_S:.6f}\n"


def _iolog(number: int) -> str:
    return f"{number * 100} /dev/sda read {_sector(number) * 512} 4096\n"


def _blkreplay(number: int) -> str:
    return f"{number * STEP_S:17.9f} ; {_sector(number):12} ; {SECTORS:4} ; R ; 0.0 ; 0.00005\n"


def _thesios(number: int) -> str:
    at = 1704067200 + number * STEP_S
    return (
        f"aa,{_sector(number) * 512},app,1,WARM,REPLICATED,READ,OTHER,0,0,4096,4096,4096,{at:.6f},0.00005,"
        f"{at:.6f},0.00005\n"
    )


_THESIOS_HEADING = (
    "filename,file_offset,application,c_time,io_zone,redundancy_type,op_type,service_class,from_flash_cache,"
    "cache_hit,request_io_size_bytes,disk_io_size_bytes,response_io_size_bytes,start_time,disk_time,"
    "simulated_disk_start_time,simulated_latency\n"
)
FORMATS: dict[str, tuple[str, Callable[[int], str | bytes]]] = {
    "blkparse": ("", _blkparse),
    "perf": ("", _perf),
    "biosnoop": (
        "TIME(s)     COMM           PID    DISK      T SECTOR     BYTES  QUE(ms) LAT(ms)\n",
        _biosnoop,
    ),
    "blktrace": ("", _blktrace),
    "cloudphysics": ("", _cloudphysics),
    "iosnoop": (
        "STARTs          ENDs            COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n",
        _iosnoop,
    ),
    "msr": ("", _msr),
    "alibaba": ("", _alibaba),
    "tencent": ("", _tencent),
    "systor": ("Timestamp,Response,IOType,LUN,Offset,Size\n", _systor),
    "spc": ("", _spc),
    "fio-iolog-3": ("fio version 3 iolog\n0 /dev/sda add\n0 /dev/sda open\n", _iolog),
    "blkreplay": ("start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n", _blkreplay),
    "thesios": (_THESIOS_HEADING, _thesios),
}
"""Heading and lines of each format."""


def nanoseconds(path: Path, name: str, nr_ios: int, rounds: int) -> float:
    """Processor time for an I/O: the median of some rounds."""
    taken = []
    for _ in range(rounds):
        begin = time.process_time_ns()
        trace = read_trace(path, name)
        taken.append((time.process_time_ns() - begin) / nr_ios)
        if len(trace.ios["sector"]) != nr_ios:
            raise SystemExit(f"{name}: {len(trace.ios['sector'])} of {nr_ios} I/Os were read")
    return statistics.median(taken)


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ios", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", default=sorted(FORMATS))
    arguments = parser.parse_args()
    rows: list[tuple[str, float, float]] = []
    with tempfile.TemporaryDirectory(prefix="blklab-traces-") as folder:
        for name in arguments.formats or sorted(FORMATS):
            heading, line = FORMATS[name]
            path = Path(folder) / name
            with path.open("wb") as file:
                file.write(heading.encode())
                for one in map(line, range(arguments.ios)):
                    file.write(one.encode() if isinstance(one, str) else one)
            each_ns = nanoseconds(path, name, arguments.ios, arguments.rounds)
            rows.append((name, each_ns, path.stat().st_size / arguments.ios / each_ns * 1e3))
    fastest = min(each_ns for _, each_ns, _ in rows)
    print("| Format | ns for an I/O | times the fastest | MB/s |")  # noqa: T201
    print("| --- | --- | --- | --- |")  # noqa: T201
    for name, each_ns, speed in sorted(rows, key=lambda row: row[1]):
        print(f"| `{name}` | {each_ns:.0f} | {each_ns / fastest:.2g} | {speed:.0f} |")  # noqa: T201


if __name__ == "__main__":
    main()
