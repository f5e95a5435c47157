"""`blklab compare --why` of a guest: the simulator's run of the same model."""

from __future__ import annotations

import pytest

from blklab.cli import run
from blklab.errors import ExitCode

ASKED = ("compare", "uml:hdd-7200", "-w", "many-readers", "-s", "bfq,mq-deadline", "--blocks", "4")
SHORT = ("--runtime", "500ms", "-q")


@pytest.mark.usefixtures("kernel")
def test_a_guest_has_the_cause_of_its_model_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ASKED, *SHORT, "--why"]) == ExitCode.OK
    assert "Why (in the simulator): bfq serves " in capsys.readouterr().out
    assert run([*ASKED, *SHORT]) == ExitCode.OK
    assert "Why" not in capsys.readouterr().out
