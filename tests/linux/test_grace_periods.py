"""Shorter RCU grace periods hold for a stretch only, whatever ends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.linux.journal.journal import Journal
from blklab.linux.queue import grace_periods
from blklab.linux.queue.grace_periods import GracePeriods


@pytest.fixture
def setting(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for the kernel's file, which is the whole machine's."""
    path = tmp_path / "rcu_expedited"
    path.write_text("0\n")
    monkeypatch.setattr(grace_periods, "RCU_EXPEDITED", path)
    return path


def test_they_are_short_within_and_as_before_afterwards(setting: Path) -> None:
    periods = GracePeriods()
    with Journal.create("a-test", "tests") as journal:
        for _ in range(2):
            with periods.shortened(journal):
                assert setting.read_text() == "1\n"
            assert setting.read_text() == "0\n"
        with pytest.raises(KeyError), periods.shortened(journal):
            raise KeyError
        assert setting.read_text() == "0\n"


def test_the_journal_restores_what_a_killed_comparison_left(setting: Path) -> None:
    with Journal.create("a-test", "tests") as journal, GracePeriods().shortened(journal):
        assert setting.read_text() == "1\n"
        assert journal.restore().done == [f"{setting} = '0'"]
        assert setting.read_text() == "0\n"


def test_a_setting_that_is_on_already_stays_on(setting: Path) -> None:
    setting.write_text("1\n")
    with Journal.create("a-test", "tests") as journal, GracePeriods().shortened(journal):
        assert setting.read_text() == "1\n"
    assert setting.read_text() == "1\n"


def test_kernels_without_the_setting_are_left_alone(setting: Path) -> None:
    setting.unlink()
    with Journal.create("a-test", "tests") as journal, GracePeriods().shortened(journal):
        pass
    assert not setting.exists()
