"""The installed package: what it says of the machine, to root and to an ordinary user."""

from __future__ import annotations

import json

import pytest

from vm.commands import document
from vm.image import Image
from vm.machine import Machine

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("as_before")]

IN_A_FRESH_ENVIRONMENT = r"""
set -e
python3 -m venv --without-pip --system-site-packages /opt/fresh
python3 -m pip --quiet --python /opt/fresh/bin/python install \
    --ignore-installed --no-deps --no-index --no-compile /root/{name}
cd /
/opt/fresh/bin/python -m blklab compare sim:nvme-tlc -w random-read-4k-qd32 -s none,bfq --blocks 3 --quiet
/opt/fresh/bin/python -c 'import blklab, sys; print(blklab.__file__, "Python %d.%d" % sys.version_info[:2])'
"""


def test_the_package_is_complete(machine: Machine, image: Image) -> None:
    if image.release == "bookworm":
        pytest.skip("the package is for Debian 13 or later")
    assert machine.run("dpkg --verify blklab").text == ""
    assert machine.run("blklab --version").text.startswith("blklab, version ")


def test_doctor_finds_all_that_comparisons_need(machine: Machine) -> None:
    """Exit code 0 says so."""
    shown = machine.run("blklab doctor").text
    assert "blklab restore" not in shown


def test_targets_lists_disks_and_schedulers_that_are_modules(machine: Machine) -> None:
    found = {disk["serial"]: disk for disk in document(machine, "targets")["disks"]}
    assert found["sata0"]["rotational"]
    assert not found["sata1"]["rotational"]
    assert not found["scsi0"]["rotational"]
    for serial in ("sata0", "sata1", "scsi0", "blk0"):
        assert found[serial]["readable"]
        assert found[serial]["writable"]
        assert set(found[serial]["schedulers"]) >= {"none", "mq-deadline", "kyber", "bfq"}
    root = found["root"]
    # Services have mounts of their own, which concern nobody else.
    assert root["mount_points"] == ["/"]
    assert not root["writable"]


def test_an_ordinary_user_learns_what_takes_root(machine: Machine) -> None:
    disks = document(machine, "targets")["disks"]
    as_user = {
        disk["name"]: disk for disk in _document_of_alice(machine, "targets") if disk["serial"] != "root"
    }
    assert as_user.keys() == {disk["name"] for disk in disks if disk["serial"] != "root"}
    assert not any(disk["readable"] or disk["writable"] for disk in as_user.values())
    name = next(iter(as_user))
    refused = machine.run(f"blklab compare /dev/{name}", user="alice", check=False)
    assert refused.code == 3
    assert "root" in refused.errors
    refused = machine.run(f"blklab apply bfq --device /dev/{name}", user="alice", check=False)
    assert refused.code == 3
    assert "root" in refused.errors


def test_an_ordinary_user_simulates(machine: Machine) -> None:
    """Without a target blklab takes a modelled disk."""
    shown = machine.run("blklab compare -w random-read-4k-qd32 -s none,bfq --blocks 3 --quiet", user="alice")
    assert "sim:" in shown.text + shown.errors


def test_the_wheel_runs_in_a_fresh_environment(machine: Machine, image: Image) -> None:
    if image.release == "bookworm":
        pytest.skip("its packages of Python are older than the requirements")
    machine.copy(image.wheel, f"/root/{image.wheel.name}")
    shown = machine.run(IN_A_FRESH_ENVIRONMENT.format(name=image.wheel.name)).text
    assert "/opt/fresh/" in shown.splitlines()[-1]


def _document_of_alice(machine: Machine, command: str) -> list[dict[str, object]]:
    disks = json.loads(machine.run(f"blklab {command} --json -", user="alice").text)["disks"]
    assert isinstance(disks, list)
    return disks
