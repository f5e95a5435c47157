"""Sessions run whatever load they are given: only the loads themselves look at what a workload is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import blklab
from blklab.backends import BACKENDS
from blklab.spec.loads import Load
from blklab.spec.permits import COLUMNS, rule_for

BACKEND_FILES = Path(blklab.__file__).parent / "backends"
ASKS = re.compile(r"\.command\b(?!\()|\.tool\b|\.replays\b|\.beside\b|replayed_ios|isinstance\([^)]*Load\)")


@pytest.mark.parametrize("name", ["host_session.py", "uml_session.py", "sim.py"])
def test_a_session_does_not_ask_which_load_it_has(name: str) -> None:
    text = (BACKEND_FILES / name).read_text(encoding="utf-8")
    assert ASKS.findall(text) == []
    assert len(text.splitlines()) < 400


@pytest.mark.parametrize("name", ["host", "sim", "uml"])
def test_backends_say_of_commands_what_the_table_says(name: str) -> None:
    assert name in COLUMNS
    assert (rule_for(Load.COMMAND, name) is None) == BACKENDS[name].COMMANDS
