"""Signals at any moment: an interruption with its exit code, never a defect or a traceback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from blklab.errors import ExitCode
from real_devices import LoopMaker

_REPEATER = Path(__file__).with_name("interrupted_command.py")
_OFTEN = pytest.param(300, marks=pytest.mark.slow)


def _interrupted(seed: int, times: int, *arguments: str) -> list[dict[str, Any]]:
    """The rounds of a command that is interrupted, in which the signal came before the end."""
    command = [sys.executable, str(_REPEATER), str(seed), str(times), *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    rounds = [json.loads(line) for line in answer.stdout.splitlines()]
    assert len(rounds) == times
    return [one for one in rounds if one["code"] != ExitCode.OK]


def _assert_interrupted(rounds: list[dict[str, Any]]) -> None:
    assert rounds, "no signal came before the end, so this test shows nothing"
    for one in rounds:
        assert one["code"] == 128 + one["signal"], one
        assert f"interrupted by {signal.Signals(one['signal']).name}" in one["said"], one
        assert "defect" not in one["said"], one
        assert "Traceback" not in one["said"], one


@pytest.mark.parametrize("times", [40, _OFTEN])
def test_a_comparison(tmp_path: Path, seed: int, times: int) -> None:
    job = tmp_path / "few.fio"
    job.write_text("[few]\nrw=randread\nbs=4k\nsize=1m\nnumber_ios=50\n")
    arguments = ["compare", "sim:nvme-tlc", "-w", str(job), "-s", "none,bfq", "-n", "1", "-q", "--json", "-"]
    _assert_interrupted(_interrupted(seed, times, *arguments))


@pytest.mark.root
@pytest.mark.parametrize("times", [40, _OFTEN])
def test_a_scheduler_that_is_set(make_loop: LoopMaker, state: Path, seed: int, times: int) -> None:
    disk = make_loop(16)
    arguments = ["apply", "bfq:slice_idle=0", "--device", str(disk.dev_path), "--now-only"]
    _assert_interrupted(_interrupted(seed, times, *arguments))
    assert not list(state.glob("journal/*.journal"))
    assert "[bfq]" in (disk.sys_path / "queue" / "scheduler").read_text(), "it was set before the rounds"


_AT_AN_IMPORT = """
import os, runpy, signal, sys

class Finder:
    left = int(sys.argv.pop(1))

    def find_spec(self, name, path=None, target=None):
        if "blklab.__main__" in sys.modules or "blklab.cli" in sys.modules or name.startswith("blklab.cli"):
            self.left -= 1
            if self.left == 0:
                signal.raise_signal(signal.SIGINT)
        return None

sys.meta_path.insert(0, Finder())
sys.argv[0] = "blklab"
from blklab.__main__ import main
main()
"""


@pytest.mark.parametrize("nth", [1, 2, 3, 10, 30, 60])
def test_ctrl_c_while_the_command_line_is_loaded(nth: int) -> None:
    command = [sys.executable, "-c", _AT_AN_IMPORT, str(nth), "compare", "--help"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.stderr == "error: interrupted by SIGINT\n"
    assert answer.returncode == 128 + signal.SIGINT


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    program = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{_AT_AN_IMPORT}"
    command = [sys.executable, "-c", program, "3", "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (0, "")


_WHILE_MODELS_ARE_BUILT = """
import signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "blklab.spec.experiment" and not sys.modules.get("told"):
            sys.modules["told"] = signal
            signal.raise_signal(signal.SIGTERM)
        return None

sys.meta_path.insert(0, Finder())
from blklab.cli import run
code = run(["compare", "--help"])
print(code, "told" in sys.modules, hasattr(sys.modules.get("blklab.cli.compare"), "command"))
"""


def test_a_signal_waits_until_a_commands_models_are_built() -> None:
    """An exception within pydantic-core's building of a model makes it panic, with a message of its own."""
    answer = subprocess.run(
        [sys.executable, "-c", _WHILE_MODELS_ARE_BUILT], capture_output=True, text=True, check=False
    )
    assert answer.stdout.splitlines()[-1] == f"{128 + signal.SIGTERM} True True"
    assert answer.stderr == "error: interrupted by SIGTERM\n"
