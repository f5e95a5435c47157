"""Settings of writeback of this machine: in force during their runs only."""

from __future__ import annotations

import pytest

from blklab.linux.machine.writeback import FOLDER, writeback_in_force
from blklab.linux.scratch import page_cache
from blklab.spec.schedulers import parse_scheduler_choices
from host.conftest import READ, LoopDevice, cell, opened, work

pytestmark = pytest.mark.root

FILES = ("dirty_bytes", "dirty_ratio", "dirty_expire_centisecs")


def in_force() -> dict[str, str]:
    return {name: (FOLDER / name).read_text().strip() for name in FILES}


def test_each_run_has_its_own_and_the_machine_its_own_again(raw: LoopDevice) -> None:
    before = in_force()
    changed = "none:vm.dirty_bytes=50331648:vm.dirty_expire_centisecs=1234"
    load = work(READ)
    with opened(raw.device) as session:
        session.check(parse_scheduler_choices(f"none,{changed}"), [load])
        assert in_force() == before
        under = session.run(cell(changed, load))
        assert under.status == "ok", under.error
        assert under.settings["vm.dirty_bytes"] == "50331648"
        assert under.settings["vm.dirty_expire_centisecs"] == "1234"
        assert in_force()["dirty_bytes"] == "50331648"
        plain = session.run(cell("none", load))
        assert plain.status == "ok", plain.error
        assert plain.settings["vm.dirty_bytes"] == before["dirty_bytes"]
        assert in_force() == before
        session.run(cell(changed, load))
    assert in_force() == before


def test_a_program_that_changes_one_meanwhile_spoils_the_run(
    raw: LoopDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting is the machine's, so two experiments may want it at a time."""
    changed = "none:vm.dirty_expire_centisecs=1234"
    load = work(READ)
    with opened(raw.device) as session:
        session.check(parse_scheduler_choices(changed), [load])
        drop = page_cache.drop_page_cache

        def disturbed() -> None:
            """Comes when the settings have been made, just before the load."""
            drop()
            (FOLDER / "dirty_expire_centisecs").write_text("1235")

        monkeypatch.setattr(page_cache, "drop_page_cache", disturbed)
        sample = session.run(cell(changed, load))
    assert sample.status == "failed"
    assert "vm.dirty_expire_centisecs" in str(sample.error)
    assert writeback_in_force()["vm.dirty_expire_centisecs"] not in ("1234", "1235")


def test_a_dry_run_shows_the_writes(raw: LoopDevice) -> None:
    with opened(raw.device) as session:
        lines = session.commands(cell("none:vm.dirty_ratio=5", work(READ)))
    assert "echo 5 > /proc/sys/vm/dirty_ratio" in lines
