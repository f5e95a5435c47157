"""fio's histogram logs."""

from __future__ import annotations

import numpy as np
import pytest

from blklab.linux.load.fio_histograms import BIN_VALUES_NS, read_histogram_log, total_ios


def _log(*rows: tuple[int, int, dict[int, int]]) -> bytes:
    """Rows of time (ms), direction and I/Os by bin."""
    lines = []
    for time_ms, direction, bins in rows:
        counts = [bins.get(index, 0) for index in range(len(BIN_VALUES_NS))]
        lines.append(", ".join(map(str, [time_ms, direction, 4096, *counts])))
    return ("\n".join(lines) + "\n").encode()


def test_bins_are_those_of_fio() -> None:
    # From reports of fio 3.33: json+ names bins by these values.
    assert {125_440, 129_536, 130_560, 134_144} <= set(BIN_VALUES_NS.tolist())
    assert BIN_VALUES_NS[:4].tolist() == [0, 1, 2, 3]
    assert np.all(np.diff(BIN_VALUES_NS) > 0)


def test_windows_by_direction() -> None:
    text = _log((1000, 0, {5: 1}), (1000, 1, {7: 2}), (1025, 0, {5: 3}), (1050, 0, {5: 1, 6: 1}))
    (reads,) = read_histogram_log(text)
    assert reads.direction == "read"
    assert reads.ends_ns.tolist() == [1_000_000_000, 1_025_000_000, 1_050_000_000]
    assert reads.counts.sum(axis=1).tolist() == [1, 3, 2]


def test_ios_between_moments_are_linear_within_a_window() -> None:
    (reads,) = read_histogram_log(_log((0, 0, {5: 9}), (100, 0, {5: 10}), (200, 0, {5: 30})))
    edges = np.array([0, 50, 100, 150, 200]) * 1_000_000
    assert total_ios([reads], edges).tolist() == [5, 5, 15, 15]
    assert total_ios([reads, reads], edges).tolist() == [10, 10, 30, 30]
    assert total_ios([], edges).tolist() == [0, 0, 0, 0]


def test_latencies_come_from_windows_whose_middle_is_inside() -> None:
    (reads,) = read_histogram_log(
        _log((0, 0, {5: 9}), (100, 0, {5: 10}), (200, 0, {6: 30, 8: 1}), (300, 0, {7: 2}))
    )
    found = reads.latency_between(100_000_000, 240_000_000)
    assert found.bins == {6: 30, 8: 1}
    assert (found.count, found.min_ns, found.max_ns, found.sum_ns) == (31, 6, 8, 188)
    assert reads.latency_between(400_000_000, 500_000_000).count == 0


@pytest.mark.parametrize("text", [b"", b"\n", b"1000, 0, 4096, 1\n", _log((1000, 0, {5: 1}))])
def test_logs_without_two_whole_windows(text: bytes) -> None:
    assert read_histogram_log(text) == []


def test_a_line_cut_short_is_left_out() -> None:
    text = _log((1000, 0, {5: 1}), (1025, 0, {5: 3}), (1050, 0, {5: 2}))
    (reads,) = read_histogram_log(text[:-40])
    assert reads.counts.sum(axis=1).tolist() == [1, 3]
