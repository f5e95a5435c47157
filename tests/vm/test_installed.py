"""The installed package: what it says of the machine, to root and to an ordinary user."""

from __future__ import annotations

import pytest

from vm.machine import Machine

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("as_before")]


def test_the_package_is_complete(machine: Machine) -> None:
    assert (
        machine.run("dpkg --verify blklab; dpkg-query --show --showformat='${db:Status-Status}' blklab").text
        == "installed"
    )
    assert machine.run("blklab --version").text.startswith("blklab, version ")
