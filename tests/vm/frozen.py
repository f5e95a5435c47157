"""Machines frozen at a point, so that each file of tests starts from it within seconds.

The system boots once for an image, which takes minutes on an emulated processor, and blklab's package is
installed once for a run of the tests. Both are frozen: the root's disk, which nothing changes from then on,
and the memory.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from vm.accelerator import PROGRAM, Accelerator
from vm.hardware import hardware_arguments
from vm.image import Image
from vm.machine import Machine

_WAIT_UNTIL_BOOTED = "systemctl is-system-running --wait || systemctl --failed; udevadm settle; sync"
_INSTALL_IN_BOOKWORM = """
mkdir /opt/blklab && python3 -m zipfile --extract /root/{name} /opt/blklab
python3 -m compileall -q /opt/blklab
printf '#!/bin/sh\\nPYTHONPATH=/opt/blklab:/opt/requirements exec python3 -m blklab "$@"\\n' > /usr/bin/blklab
chmod 755 /usr/bin/blklab
chmod -R go=rX /opt
"""


@dataclass(frozen=True)
class FrozenMachine:
    """The state of a frozen machine: a root that is no longer written to, and the memory."""

    root: Path
    memory: Path


def booted_machine(image: Image, accelerator: Accelerator) -> FrozenMachine:
    """The system just after its boot, kept beside the image."""
    version = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
    hardware = (version, accelerator, hardware_arguments(Path()))
    folder = image.folder / f"booted-{hashlib.sha256(repr(hardware).encode()).hexdigest()[:12]}"

    def boot(machine: Machine, root: Path) -> None:
        machine.boot(root, snapshot=False)
        machine.run(_WAIT_UNTIL_BOOTED)

    frozen = _frozen(folder, image, accelerator, image.root, boot)
    for other in image.folder.glob("booted-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    return frozen


def installed_machine(image: Image, accelerator: Accelerator) -> FrozenMachine:
    """The same with blklab's package, for this run of the tests."""
    booted = booted_machine(image, accelerator)

    def install(machine: Machine, root: Path) -> None:
        machine.thaw(root, booted.memory, snapshot=False)
        product, command = installation(image)
        machine.copy(product, f"/root/{product.name}")
        machine.run(command)

    return _frozen(image.session / "installed", image, accelerator, booted.root, install)


def installation(image: Image) -> tuple[Path, str]:
    """The file to install blklab from, and the command for it, with that file in ``/root``."""
    if image.release == "bookworm":
        return image.wheel, _INSTALL_IN_BOOKWORM.format(name=image.wheel.name)
    # Without the wait for the disk after each file, which an emulated one makes long.
    return image.package, f"dpkg --force-unsafe-io --install /root/{image.package.name}"


def _frozen(
    folder: Path,
    image: Image,
    accelerator: Accelerator,
    backing: Path,
    prepare: Callable[[Machine, Path], None],
) -> FrozenMachine:
    frozen = FrozenMachine(folder / "root.qcow2", folder / "memory")
    folder.mkdir(exist_ok=True)
    with _locked(folder / "lock"):
        if not frozen.memory.exists():
            form = "raw" if backing.suffix == ".img" else "qcow2"
            create = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(backing), "-F", form]
            subprocess.run([*create, str(frozen.root)], check=True)
            unfinished = folder / "memory.unfinished"
            with Machine(image, accelerator) as machine:
                prepare(machine, frozen.root)
                machine.freeze(unfinished)
            unfinished.rename(frozen.memory)
    return frozen


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Only one worker prepares, the other waits."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
