"""Which accelerator of QEMU runs Debian's kernel here: KVM where it really does, else emulation.

That /dev/kvm answers says little: within virtual machines it may refuse a processor's model, or stop at the
first instruction that it cannot emulate. So the kernel itself is started, until it panics for want of a disk.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PROGRAM = "qemu-system-x86_64"
_PROBE_SECONDS = 40
_PANIC = b"Kernel panic - not syncing: VFS"
_CANNOT = b"KVM internal error"
_PROCESSORS = ("host", "host,-arch-capabilities")


@dataclass(frozen=True)
class Accelerator:
    """How QEMU runs a processor, and what its kernel must be told."""

    arguments: tuple[str, ...]
    kernel: str
    command_line: str


EMULATION = Accelerator(
    # Threads of their own for processors are faster, but a kernel that patches itself has crashed under them.
    arguments=("-accel", "tcg,thread=single,tb-size=512", "-cpu", "max,-svm"),
    kernel="vmlinux",
    # A busy host makes timers late, over which the kernel would panic or complain. With norandmaps code has
    # the same addresses in each process, so that it is translated once, and not at each start of Python.
    command_line="no_timer_check lpj=10000000 mitigations=off nokaslr norandmaps nowatchdog audit=0",
)


def find_accelerator(image: Path) -> Accelerator:
    """The fastest that works; what was found is kept beside the image."""
    known = image / f"accelerator-{os.uname().release}"
    if not known.exists():
        known.write_text(next((cpu for cpu in _PROCESSORS if _kernel_starts(image, cpu)), ""), "ascii")
    processor = known.read_text("ascii")
    return _kvm(processor) if processor else EMULATION


def _kvm(processor: str) -> Accelerator:
    return Accelerator(("-accel", "kvm", "-cpu", processor), "kernel", "audit=0")


def _kernel_starts(image: Path, processor: str) -> bool:
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    accelerator = _kvm(processor)
    command = [
        *(PROGRAM, "-machine", "q35", *accelerator.arguments, "-m", "512", "-nodefaults", "-display", "none"),
        *("-no-reboot", "-serial", "stdio", "-kernel", str(image / accelerator.kernel)),
        *("-append", "console=ttyS0 earlyprintk=ttyS0 panic=-1"),
    ]
    with tempfile.TemporaryFile() as console:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console, stderr=console)
        deadline = time.monotonic() + _PROBE_SECONDS
        try:
            while time.monotonic() < deadline:
                ended = process.poll() is not None
                printed = os.pread(console.fileno(), 1 << 20, 0)
                if _PANIC in printed or _CANNOT in printed or ended:
                    return _PANIC in printed
                time.sleep(0.1)
            return False
        finally:
            process.kill()
            process.wait()
