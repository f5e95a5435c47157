"""Commands that run in the machine's Debian, but on this machine's processor.

An emulated processor takes minutes to compile what a real one compiles in seconds. So modules are built in
a root of the machine's image, by the installed package, and their cache is put into the machine.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from pathlib import Path

import pytest

from vm.frozen import installation
from vm.image import Image
from vm.machine import Machine

TYPES = "/root/btf"
"""The kernel's type information, in the root; bytes as in ``/sys/kernel/btf/vmlinux``."""
_CACHE = ".cache/blklab"
_IN_A_ROOT = """
set -e
mkdir lower memory root
mount -o loop,ro,noload {image} lower
mount -t tmpfs tmpfs memory
mkdir memory/upper memory/work
mount -t overlay -o lowerdir=lower,upperdir=memory/upper,workdir=memory/work overlay root
for device in null urandom; do touch root/dev/$device; mount --bind /dev/$device root/dev/$device; done
mount -t proc proc root/proc
cp {package} root/root
cp {kernel} root/root/vmlinux
chroot root objcopy --dump-section .BTF={types} /root/vmlinux /root/vmlinux.copy
chroot root sh -ec {installation} >&2
chroot root env HOME=/root sh -ec {commands} >&2
tar -C root/root -cf {product} {cache}
"""


def build_natively(image: Image, machine: Machine, commands: str) -> None:
    """Runs commands in a root of the image, and gives the machine blklab's cache of them.

    Nothing is written to the image. What is mounted is gone with the namespace. Where the archive's source
    and kernel were of two versions when the image was made, nothing can be built, and the test is skipped.
    """
    with tempfile.TemporaryDirectory(dir=image.session, prefix="root-") as name:
        folder = Path(name)
        package, command = installation(image)
        product = folder / "cache.tar"
        script = _IN_A_ROOT.format(
            image=shlex.quote(str(image.root)),
            package=shlex.quote(str(package)),
            installation=shlex.quote(command),
            kernel=shlex.quote(str(image.folder / "vmlinux")),
            types=TYPES,
            commands=shlex.quote(commands),
            product=shlex.quote(str(product)),
            cache=_CACHE,
        )
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        missing = re.search("error: (the source of Linux .* is missing; .*)", done.stderr)
        if missing is not None:
            pytest.skip(f"Debian's archive has a newer source than kernel: {missing[1]}")
        assert done.returncode == 0, done.stderr
        machine.run("tar -C /root -xf -", stdin=product.read_bytes())
