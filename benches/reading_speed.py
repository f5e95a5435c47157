"""Measures how fast each reader of `blklab analyse` reads, in processor time.

Every file of the readers' tests is repeated until it is as large as asked: as one log where the format has
any number of runs, otherwise read again and again. The speed stands beside that of loading the same bytes,
and beside that of a file four times as large, so that a time that grows faster than its file is seen::

    python benches/reading_speed.py [--bytes N] [--rounds N] [READER…]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "readers"))

from reader_cases import CASES, FILES, options_for

from blklab.labs.reanalysis.readers import READERS, load_source

GROWTH = 4
WHOLE = frozenset({"phoronix", "diskspd-xml", "elbencho-csv", "csv"})
"""Formats of which a file is one document."""


def grown(name: str, nr_bytes: int) -> str:
    """A file's text, again and again; documents of fio differ, since one that stands twice counts once."""
    text = (FILES / name).read_text(encoding="utf-8")
    copies = -(-nr_bytes // len(text.encode()))
    return "\n".join(text.replace('"fio version"', f'"copy" : {n},\n  "fio version"') for n in range(copies))


def seconds_of(path: Path, reader: str, name: str, times: int) -> tuple[float, float]:
    """Processor time of loading the file so many times, and of reading it as well."""
    begin = time.process_time()
    for _ in range(times):
        source, _ = load_source(str(path))
    loaded = time.process_time()
    for _ in range(times):
        READERS[reader].recognises(source)
        READERS[reader].read(source, options_for(name))
    return loaded - begin, time.process_time() - begin


def speed(folder: Path, reader: str, name: str, nr_bytes: int, rounds: int) -> tuple[float, float]:
    """MB/s of loading alone, and of loading and reading: medians."""
    path = folder / name
    whole = reader in WHOLE or name.endswith(".xls")
    if whole:
        path.write_bytes((FILES / name).read_bytes())
    else:
        path.write_text(grown(name, nr_bytes), encoding="utf-8")
    size = path.stat().st_size
    times = max(1, nr_bytes // size) if whole else 1
    taken = [seconds_of(path, reader, name, times) for _ in range(rounds)]
    loading, reading = (statistics.median(one) for one in zip(*taken, strict=True))
    return size * times / 1e6 / max(loading, 1e-9), size * times / 1e6 / reading


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bytes", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("readers", nargs="*", metavar="READER")
    arguments = parser.parse_args()
    print("| Reader | File | MB/s | loading alone, times as fast | four times as large, MB/s |")  # noqa: T201
    print("| --- | --- | --- | --- | --- |")  # noqa: T201
    with tempfile.TemporaryDirectory(prefix="blklab-reading-") as folder:
        for reader, name in CASES:
            if arguments.readers and reader not in arguments.readers:
                continue
            loading, reading = speed(Path(folder), reader, name, arguments.bytes, arguments.rounds)
            larger = "-"
            if reader not in WHOLE and not name.endswith(".xls"):
                _, fourfold = speed(Path(folder), reader, name, GROWTH * arguments.bytes, arguments.rounds)
                larger = f"{fourfold:.3g}"
            row = f"| {reader} | `{name}` | {reading:.3g} | {loading / reading:.3g} | {larger} |"
            print(row, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
