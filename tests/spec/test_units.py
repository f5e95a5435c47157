from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blklab.errors import UsageError
from blklab.quantities.units import (
    format_bytes,
    format_duration,
    format_si,
    parse_duration_ns,
    parse_fraction,
    parse_size_bytes,
)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("512", 512), ("64k", 65_536), ("1GiB", 1 << 30), ("1.5g", 3 << 29), ("2 MB", 2 << 20)],
)
def test_sizes_are_powers_of_1024_as_in_fio(text: str, size_bytes: int) -> None:
    assert parse_size_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "k", "-1k", "0", "1x", "1e3", "1k2"])
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_size_bytes(text)


@pytest.mark.parametrize(
    ("text", "duration_ns"),
    [
        ("90", 90_000_000_000),
        ("2m", 120_000_000_000),
        ("1.5s", 1_500_000_000),
        ("1m30s", 90_000_000_000),
        ("250us", 250_000),
        ("1h", 3_600_000_000_000),
    ],
)
def test_durations(text: str, duration_ns: int) -> None:
    assert parse_duration_ns(text) == duration_ns


@pytest.mark.parametrize("text", ["", "s", "0s", "-2s", "2 weeks", "1m30", "2mm"])
def test_what_is_not_a_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_duration_ns(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (1_610_612_736, "1.50 GiB"),
        (274_877_906_944, "256 GiB"),
    ],
)
def test_sizes_are_written_in_iec_units(value: int, text: str) -> None:
    assert format_bytes(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 IO/s"), (999.4, "999 IO/s"), (999.6, "1.00 kIO/s"), (1_234_567, "1.23 MIO/s")]
)
def test_rates_are_written_in_si_units(value: float, text: str) -> None:
    assert format_si(value, "IO/s") == text


@pytest.mark.parametrize(
    ("value_ns", "text"),
    [
        (850, "850 ns"),
        (1_500, "1.50 µs"),
        (2_000_000_000, "2.00 s"),
        (125e9, "2 min 05 s"),
        (7_260e9, "2 h 01 min"),
    ],
)
def test_durations_are_written_for_people(value_ns: float, text: str) -> None:
    assert format_duration(value_ns) == text


@given(st.integers(min_value=1, max_value=1 << 50))
def test_a_number_of_bytes_reads_back(size_bytes: int) -> None:
    assert parse_size_bytes(str(size_bytes)) == size_bytes


@pytest.mark.parametrize(
    ("written", "fraction"),
    [
        ("5%", 0.05),
        ("0.05", 0.05),
        (" 5 % ", 0.05),
        (".5", 0.5),
        ("2.5%", 0.025),
        ("1e-05", 1e-5),
        (0.2, 0.2),
    ],
)
def test_fractions(written: float | str, fraction: float) -> None:
    assert parse_fraction(written) == pytest.approx(fraction)


@pytest.mark.parametrize("written", ["", "five", "-5%", "5 per cent", "5%%", "e5", "nan"])
def test_no_fractions(written: str) -> None:
    with pytest.raises(UsageError, match="not a fraction"):
        parse_fraction(written)
