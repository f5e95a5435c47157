"""Files for the readers' tests, with their readers."""

from __future__ import annotations

from pathlib import Path

from blklab.labs.reanalysis.readers import decoded, read_source
from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Reading, Source

FILES = Path(__file__).parent / "files"

OF_READER: dict[str, tuple[str, ...]] = {
    "hdparm": ("hdparm.log",),
    "fio-json": ("fio.json", "fio-plus.json", "fio-mixed.txt", "fio-clients.json"),
    "fio-terse": ("fio-terse2.txt", "fio-terse3.txt", "fio-terse4.txt", "fio-terse5.txt"),
    "fio-normal": ("fio-normal3.txt", "fio-normal2.txt", "fio-clients.txt"),
    "iozone": (
        "iozone-subset.txt",
        "iozone-R.txt",
        "iozone-report.txt",
        "iozone-auto-report.txt",
        "iozone-throughput.txt",
        "iozone-auto.xls",
        "iozone-throughput.xls",
    ),
    "tiotest": ("tiotest.txt", "tiotest-terse.txt"),
    "tiobench": ("tiobench.txt",),
    "dd": ("dd-c.log", "dd-ru.log", "dd-zh.log", "dd-progress.log", "dd-older.log"),
    "iotop": ("iotop-python.log", "iotop-c.log"),
    "bonnie": ("bonnie-1.03.csv", "bonnie-1.97.csv", "bonnie-2.00.csv"),
    "sysbench": ("sysbench.txt",),
    "ioping": ("ioping.txt",),
    "elbencho": ("elbencho.txt", "elbencho-old.txt"),
    "elbencho-csv": ("elbencho.csv",),
    "diskspd": ("diskspd.txt", "diskspd-old.txt"),
    "diskspd-xml": ("diskspd.xml",),
    "kdiskmark": ("kdiskmark.txt",),
    "biolatency": ("biolatency.txt", "biolatency-bpftrace.txt"),
    "phoronix": ("phoronix.xml",),
    "csv": ("table.csv", "table-semicolon.csv"),
}
"""Every reader has at least one; a reader without one fails the conformance test."""

CASES = [(reader, name) for reader, names in OF_READER.items() for name in names]

OPTIONS = ReaderOptions(value_columns=("rate_MBps",))
SEMICOLON_OPTIONS = ReaderOptions(value_columns=("Скорость",), unit="MB/s")


def options_for(name: str) -> ReaderOptions:
    """The options that a user must give for a file."""
    if name == "table-semicolon.csv":
        return SEMICOLON_OPTIONS
    return OPTIONS if name == "table.csv" else ReaderOptions()


def source_of(name: str) -> Source:
    """A file of the tests."""
    return decoded(name, (FILES / name).read_bytes())[0]


def reading_of(name: str) -> Reading:
    """A file of the tests as its reader understands it."""
    return read_source(source_of(name), options_for(name))[1]


def read_text(text: str, name: str = "log") -> Reading:
    """Text as the reader that recognises it parses it."""
    return read_source(Source(name, text), ReaderOptions())[1]
