"""The supervisor of a guest: starts it, holds its processes together, and cleans up if blklab dies.

It is a separate program, run with ``python -I -S``. It imports no module of blklab, so that it starts in a
few milliseconds::

    supervisor.py PARENT PROCESSOR KERNEL ARGUMENT…

It starts the kernel in the current directory, on one processor (a kernel and its children switch to each
other all the time), in a process group of its own: without capabilities, with fixed addresses, with one
environment variable and without random numbers from this machine. It exits with the kernel's exit code, or
128 plus a signal's number. On SIGUSR1 it kills the guest. On SIGTERM, which it gets when blklab (process
PARENT) dies, it kills the guest and removes the scratch directory.

User-mode Linux runs every address space of the guest in its own process, which the kernel's process stops and
resumes through ptrace. If the kernel's process dies alone (killed by the OOM killer, say), its children are
detached and keep running *as processes of this machine*. We saw that with 6.1; since Linux 6.12 they are
killed. So the supervisor kills the whole group as soon as the kernel's process is gone, and waits for all of
them.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import struct
import sys
from contextlib import suppress
from typing import NoReturn

CANNOT_START = 125
"""Exit code if this machine refuses something that a guest needs; standard error has the reason."""

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_PR_SET_SECCOMP = 22
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_ADDR_NO_RANDOMIZE = 0x0040000
_MOST_CAPABILITIES = 64

_ENVIRONMENT = {"TMPDIR": "."}

# User-mode Linux seeds its random numbers from this machine's (arch/um/kernel/um_arch.c, asm/archrandom.h).
# Without getrandom(2) they depend only on the boot. The filter does not affect the guest's own programs,
# whose system calls the guest's kernel handles.
_X86_64 = 0xC000003E
_NR_GETRANDOM = 318
_ENOSYS = 38
_FILTER = (
    (0x20, 0, 0, 4),  # load the architecture
    (0x15, 0, 2, _X86_64),  # another architecture: allow
    (0x20, 0, 0, 0),  # load the system call number
    (0x15, 1, 0, _NR_GETRANDOM),
    (0x06, 0, 0, 0x7FFF0000),  # allow
    (0x06, 0, 0, 0x00050000 | _ENOSYS),
)

_libc = ctypes.CDLL(None, use_errno=True)


class _SockFprog(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _prctl(what: str, option: int, *arguments: int) -> int:
    words = [ctypes.c_ulong(argument) for argument in (*arguments, 0, 0, 0, 0)[:4]]
    result: int = _libc.prctl(option, *words)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def _confine() -> None:
    """Restricts the guest's processes."""
    _prctl("death signal", _PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if os.geteuid() == 0:
        for capability in range(_MOST_CAPABILITIES):
            with suppress(OSError):  # this kernel has fewer capabilities
                if _prctl("capabilities", _PR_CAPBSET_READ, capability):
                    _prctl("capabilities", _PR_CAPBSET_DROP, capability)
    _prctl("no new privileges", _PR_SET_NO_NEW_PRIVS, 1)
    if _libc.personality(ctypes.c_ulong(_ADDR_NO_RANDOMIZE)) < 0:
        raise OSError(ctypes.get_errno(), "addresses cannot be fixed (personality): not permitted")
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in _FILTER)
    program = _SockFprog(len(_FILTER), code)
    _prctl("filter of system calls", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program))


def _become_kernel(command: list[str], signals: set[signal.Signals]) -> NoReturn:
    try:
        os.setsid()
        _confine()
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            with suppress(OSError, ValueError):  # undoes what we or our ancestors ignored
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        os.execve(command[0], command, _ENVIRONMENT)  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(2, f"{error.strerror or error}\n".encode())
        os._exit(CANNOT_START)


def _wait_for_all() -> None:
    """Waits for all children; as a subreaper we also get the guest's orphans."""
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _kill_group(kernel: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(kernel, signal.SIGKILL)


def _remove_scratch() -> None:
    """Removes the guest's directory, and the session's if no other guest uses it."""
    folder = os.getcwd()  # noqa: PTH109 - pathlib is slow to import
    session = os.path.dirname(folder)  # noqa: PTH120
    os.chdir("/")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(os.path.join(session, "shared"), ignore_errors=True)  # noqa: PTH118
    with suppress(OSError):
        os.unlink(os.path.join(session, "lock"))  # noqa: PTH108, PTH118
    with suppress(OSError):
        os.rmdir(session)  # noqa: PTH106


def main(arguments: list[str]) -> int:
    """Supervises one guest; see the module's docstring."""
    parent, processor, *command = arguments
    signals = {signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    _prctl("death signal", _PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl("subreaper", _PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != int(parent):
        return CANNOT_START  # blklab died before the death signal was set
    with suppress(OSError):  # the processor was taken away: run on any
        os.sched_setaffinity(0, {int(processor)})
    kernel = os.fork()
    if kernel == 0:
        _become_kernel(command, signals)
    while True:
        number = signal.sigwait(signals)
        if number == signal.SIGCHLD:
            ended, status = os.waitpid(kernel, os.WNOHANG)
            if not ended:
                continue  # an orphan of the guest
            _kill_group(kernel)
            _wait_for_all()
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        _kill_group(kernel)
        # Until the child has called setsid, the group does not exist yet, so kill the child itself.
        with suppress(ProcessLookupError):
            os.kill(kernel, signal.SIGKILL)
        _wait_for_all()
        if number == signal.SIGTERM:
            _remove_scratch()
        return 128 + signal.SIGKILL


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
