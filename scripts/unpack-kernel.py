#!/usr/bin/env python3
"""Unpacks a bzImage: `unpack-kernel.py BZIMAGE VMLINUX`; exit code 1 if its compression is not known here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ELF = b"\x7fELF"
UNPACKERS = {
    b"\x28\xb5\x2f\xfd": ["zstd", "-dc"],
    b"\xfd7zXZ\x00": ["xz", "-dc"],
    b"\x1f\x8b\x08": ["gzip", "-dc"],
}


def unpack(image: bytes) -> bytes | None:
    """The ELF file within; that the unpacker complains of what follows its part does not matter."""
    for magic, command in UNPACKERS.items():
        start = image.find(magic)
        while start >= 0:
            try:
                done = subprocess.run(command, input=image[start:], capture_output=True, check=False)
            except FileNotFoundError:
                break
            if done.stdout.startswith(ELF):
                return done.stdout
            start = image.find(magic, start + 1)
    return None


def main() -> None:
    """Runs the command line."""
    source, target = sys.argv[1:]
    kernel = unpack(Path(source).read_bytes())
    if kernel is None:
        sys.exit(1)
    Path(target).write_bytes(kernel)


main()
