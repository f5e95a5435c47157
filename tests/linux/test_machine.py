"""The description of the machine."""

from __future__ import annotations

import os
import platform

from blklab.linux.machine.description import describe_machine


def test_this_machine() -> None:
    machine = describe_machine()
    assert machine.kernel == platform.release()
    assert machine.cpu
    assert 1 <= machine.cpus <= (os.cpu_count() or 1)
    assert machine.memory_bytes > 1 << 26
    assert machine.details["system"] == platform.system()
    assert all(machine.details.values()), "what is unknown is left out"
