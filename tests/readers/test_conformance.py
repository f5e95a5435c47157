"""Checks every reader on every file of its format, intact and damaged."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reader_cases import CASES, FILES, OF_READER, options_for, reading_of, source_of

from blklab.errors import BlklabError
from blklab.labs.reanalysis.readers import READERS, decoded, read_source
from blklab.labs.reanalysis.readers.protocol import ReaderOptions, Source


def test_every_reader_has_files_and_every_file_a_reader() -> None:
    assert set(OF_READER) == set(READERS)
    assert {name for _, name in CASES} | {"README.md"} == {path.name for path in FILES.iterdir()}
    page = (FILES / "README.md").read_text(encoding="utf-8")
    for _, name in CASES:
        stem = name.replace("fio-terse3", "fio-terse2").replace("fio-terse4", "fio-terse5")
        assert f"`{stem}`" in page, f"{name}: README.md does not say where it is from"


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_one_reader_alone_recognises_a_file(reader: str, name: str) -> None:
    source = source_of(name)
    recognising = [one for one in READERS if one != "csv" and READERS[one].recognises(source)]
    assert recognising == ([] if reader == "csv" else [reader])


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_values_stand_where_it_says(reader: str, name: str) -> None:
    source = source_of(name)
    chosen, reading = read_source(source, options_for(name))
    assert reader == chosen.NAME
    assert reading.measurements
    assert not reading.problems
    for one in reading.measurements:
        assert math.isfinite(one.value)
        assert one.location.file == name
        assert one.location.line is not None
        assert 1 <= one.location.line <= len(source.lines)
        assert any(character.isalnum() for character in source.lines[one.location.line - 1])
    named = {factor for one in reading.measurements for factor in one.factors}
    if reader != "csv":
        assert named <= reading.roles.keys() | {"version"}, "a tool's factor has no role"


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_reads_the_same_twice(reader: str, name: str) -> None:
    assert reading_of(name) == reading_of(name)


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_a_file_cut_off_anywhere_never_gives_other_values(reader: str, name: str) -> None:
    """A truncated file gives a prefix of the whole file's values; missing values are reported."""
    text = source_of(name).text
    whole = reading_of(name)
    values = [(one.metric, one.value) for one in whole.measurements]
    step = max(1, len(text) // 150)
    for end in range(1, len(text), step):
        reading = READERS[reader].read(Source(name, text[:end]), options_for(name))
        found = [(one.metric, one.value) for one in reading.measurements]
        # The last value may be a number cut in two where nothing after it tells (a column of a table).
        begun = found[:-1] if reader in ("csv", "iozone", "bonnie", "tiotest") else found
        if reader == "biolatency":
            # Nor does anything tell that a histogram lacks its last lines; it has three values.
            begun = found[:-3]
        for value in begun:
            assert value in values, f"{value} is not a value of the whole file (cut at {end})"


def _damaged(data: st.DataObject, text: str) -> str:
    draw = data.draw
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(text)))
        kind = draw(st.sampled_from(["cut", "insert", "delete", "double", "swap"]))
        other = draw(st.integers(0, len(text)))
        low, high = sorted((at, other))
        high = min(high, low + 400)
        if kind == "cut":
            text = text[:at] or text
        elif kind == "insert":
            text = text[:at] + draw(st.text(max_size=12)) + text[at:]
        elif kind == "delete":
            text = text[:low] + text[high:]
        elif kind == "double":
            text = text[:high] + text[low:high] + text[high:]
        else:
            text = text.replace(".", ",") if draw(st.booleans()) else text.replace("0", "nan", 3)
    return text


@pytest.mark.parametrize(("reader", "name"), CASES)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_damage_never_ends_in_an_exception(reader: str, name: str, data: st.DataObject) -> None:
    text = _damaged(data, source_of(name).text)
    source = Source(name, text)
    READERS[reader].recognises(source)
    reading = READERS[reader].read(source, options_for(name))
    assert all(math.isfinite(one.value) for one in reading.measurements)
    assert all(one.location.line is None or one.location.line >= 1 for one in reading.measurements)


@settings(max_examples=150)
@given(content=st.binary(max_size=400) | st.text(max_size=400).map(str.encode))
def test_any_content_is_read_or_refused(content: bytes) -> None:
    try:
        source, _ = decoded("anything", content)
        read_source(source, ReaderOptions())
    except BlklabError as error:
        assert "anything" in error.message


@settings(max_examples=60)
@given(text=st.text(max_size=300), reader=st.sampled_from(sorted(READERS)))
def test_a_reader_that_is_forced_on_any_text_gives_problems_at_most(text: str, reader: str) -> None:
    READERS[reader].read(Source("anything", text), ReaderOptions(value_columns=("a",)))
