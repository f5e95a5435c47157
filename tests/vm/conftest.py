"""A machine with blklab for each file of tests, and a look at its settings around each test."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from vm.accelerator import Accelerator, find_accelerator
from vm.frozen import FrozenMachine, installed_machine
from vm.image import Image, prepared_image
from vm.machine import Machine
from vm.settings import differences, read_settings


def pytest_runtest_setup() -> None:
    """Where the time is limited, a test that would begin later is left out, with the reason."""
    if "BLKLAB_VM_BEGIN" not in os.environ:
        return
    minutes = float(os.environ["BLKLAB_VM_BEGIN"])
    if time.time() - float(os.environ["BLKLAB_VM_START"]) > 60 * minutes:
        pytest.skip(f"no test begins after {minutes:.0f} minutes (BLKLAB_VM_BEGIN)")


@pytest.fixture(scope="session")
def image() -> Image:
    """The image of the release that is tested."""
    return prepared_image()


@pytest.fixture(scope="session")
def accelerator(image: Image) -> Accelerator:
    """KVM where it runs Debian's kernel, else emulation."""
    return find_accelerator(image.folder)


@pytest.fixture(scope="session")
def installed(image: Image, accelerator: Accelerator) -> FrozenMachine:
    """The machine on which blklab's package has just been installed."""
    return installed_machine(image, accelerator)


@pytest.fixture(scope="module")
def machine(image: Image, accelerator: Accelerator, installed: FrozenMachine) -> Iterator[Machine]:
    """A machine of the file's own, with empty disks; NVMe is not plugged in yet."""
    with Machine(image, accelerator) as machine:
        machine.thaw(installed.root, installed.memory)
        yield machine


@pytest.fixture
def as_before(machine: Machine) -> Iterator[None]:
    """Each setting of the machine is as before when the test has ended."""
    before = read_settings(machine)
    yield
    assert not (changed := differences(before, read_settings(machine))), changed
