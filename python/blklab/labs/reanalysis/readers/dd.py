"""The last line of GNU ``dd``, any number of runs in one file and in any language.

The line begins with the bytes and ends with the time and the rate, as in
``2147483648 bytes (2.1 GB, 2.0 GiB) copied, 4.17328 s, 515 MB/s`` of coreutils. Russian has its own word for
bytes, decimal commas and a Cyrillic letter for the second; Chinese has its own words and a wide comma. The
rate is computed from bytes and time, which are printed with more digits, and must agree with the printed
rate.
"""

from __future__ import annotations

import re

from blklab.labs.reanalysis.readers.numbers import NUMBER, NumberError, agrees, parse_number
from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Reading, Source
from blklab.labs.reanalysis.readers.scheduler_file import SCHEDULERS

NAME = "dd"
SUMMARY = "dd's last line in any locale (C, Russian, Chinese …), any number of runs"

_RUSSIAN_S, _RUSSIAN_B = "\u0441", "\u0431"
_SECOND = rf"(?:seconds?|secs?|s|c|{_RUSSIAN_S}|сек|секунд\w*|秒)"
_BYTES = r"(?P<bytes>\d+)\s*(?:bytes?|байт\w*|字节)"
_LEAD = r"(?:скопировано\s+|已复制\s*)?"
_COMMA = "[,\uff0c\u3001]"
_SUMMARY_LINE = re.compile(
    rf"^\s*{_LEAD}{_BYTES}.*?{_COMMA}\s*(?P<seconds>{NUMBER}(?:[eE][+-]?\d+)?)\s*{_SECOND}"
    rf"\s*{_COMMA}\s*(?P<rate>{NUMBER}|Infinity)\s*(?P<unit>[kKMGTPE]?i?[BБ{_RUSSIAN_B}])/{_SECOND}\s*$"
)
_BEGINNING = re.compile(rf"^\s*{_LEAD}{_BYTES}")
_RECORDS = re.compile(r"\d+\+\d+")
_FACTORS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}


def recognises(source: Source) -> bool:
    """Whether the file has dd's record counts or its last line."""
    lines = source.lines
    return any(_SUMMARY_LINE.match(line) for line in lines) or (
        any(_BEGINNING.match(line) for line in lines) and any(_RECORDS.search(line) for line in lines)
    )


def read(source: Source, options: ReaderOptions) -> Reading:
    """Reads all runs, in the order of the file."""
    del options
    reading = Reading(chronological=True, roles={"scheduler": "level", "bytes": "condition"})
    factors: dict[str, str] = {}
    signs: dict[str, int] = {}
    open_records: int | None = None
    # dd overwrites its progress line after a carriage return.
    for number, line in enumerate(source.lines, start=1):
        last = line.rstrip("\r").rpartition("\r")[2]
        if match := _SUMMARY_LINE.match(last):
            _summary(reading, source, number, match, factors, signs)
            open_records = None
        elif _BEGINNING.match(last):
            reading.problem(
                source.at(number), "dd's last line is truncated or damaged: no rate could be read"
            )
            open_records = None
        elif _RECORDS.search(last):
            open_records = number
        elif schedulers := SCHEDULERS.match(last.strip()):
            factors["scheduler"] = schedulers["active"]
        elif last.strip():
            reading.skipped_lines.append(number)
    if open_records is not None:
        reading.problem(source.at(open_records), "dd's last line is missing after its record counts")
    if len(signs) > 1:
        locations = " and ".join(f"{sign!r} (line {line})" for sign, line in signs.items())
        reading.notes.append(
            f"{source.name}: written under several locales (decimal signs {locations}); each line is read "
            "under its own"
        )
    return reading


def _summary(
    reading: Reading,
    source: Source,
    number: int,
    match: re.Match[str],
    factors: dict[str, str],
    signs: dict[str, int],
) -> None:
    location = source.at(number)
    try:
        copied, seconds = parse_number(match["bytes"]), parse_number(match["seconds"])
        printed = parse_number(match["rate"])
    except NumberError as error:
        reading.problem(location, str(error))
        return
    unit = match["unit"]
    binary = "i" in unit
    factor = 1024.0 ** " KMGTPE".index(unit[0]) if binary else _FACTORS[unit[:-1]]
    for sign in {mark for mark in ".," if mark in match["seconds"]}:
        signs.setdefault(sign, number)
    if copied <= 0 or seconds <= 0:
        reading.problem(location, "zero bytes or zero seconds: there is no rate")
        return
    rate = copied / seconds
    # dd prints two significant digits below ten, and no decimals above.
    if not agrees(rate, printed * factor, 0.06):
        reading.problem(location, f"{copied:.0f} bytes in {seconds:g} s is not {match['rate']} {unit}/s")
        return
    reading.add("throughput", rate / 1e6, "MB/s", "higher", {**factors, "bytes": match["bytes"]}, location)
