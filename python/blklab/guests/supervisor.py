"""The process above a guest: starts it, keeps its processes together, and outlives blklab by a moment.

A program of its own, run with ``python -I -S``; it imports nothing of blklab, so that it starts in a few
milliseconds::

    supervisor.py PARENT PROCESSOR KERNEL ARGUMENT…

It starts the kernel in the current folder, on one processor (a kernel and its children call each other all
the time), as a process group of its own: without capabilities, with fixed addresses, an environment of one
line and no random numbers from this machine. It ends with the kernel's exit code, or 128 plus a signal's
number. On USR1 it kills the guest. On TERM, which it gets when blklab (process PARENT) dies, it kills the
guest and removes the scratch folder.

User-mode Linux runs every address space of the guest in a process of its own, stopped and resumed through
ptrace by the kernel's process. If that one dies alone (killed for want of memory, say), its children are let
go and run on *as processes of this machine*: seen with 6.1; Linux 6.12 and later have them killed. So this
process kills the whole group as soon as the kernel's process is gone, and waits for all of them.
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
"""Exit code if this machine refuses something that a guest needs; the reason is on standard error."""

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

# User-mode Linux seeds its random numbers from this machine's (arch/um/kernel/um_arch.c,
# asm/archrandom.h): with getrandom(2) taken away they depend on the boot alone. Calls of the guest's own
# programs do not pass here, the guest's kernel carries them out.
_X86_64 = 0xC000003E
_NR_GETRANDOM = 318
_ENOSYS = 38
_FILTER = (
    (0x20, 0, 0, 4),  # load the architecture
    (0x15, 0, 2, _X86_64),  # another one: allow
    (0x20, 0, 0, 0),  # load the number of the call
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
    """What the guest's processes must not have or do."""
    _prctl("death signal", _PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if os.geteuid() == 0:
        for capability in range(_MOST_CAPABILITIES):
            with suppress(OSError):  # beyond the last one that this kernel knows
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
            with suppress(OSError, ValueError):  # what we or our ancestors ignored
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        os.execve(command[0], command, _ENVIRONMENT)  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(2, f"{error.strerror or error}\n".encode())
        os._exit(CANNOT_START)


def _wait_for_all() -> None:
    """Orphans of the guest are our children, too (subreaper)."""
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _kill_group(kernel: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(kernel, signal.SIGKILL)


def _remove_scratch() -> None:
    """The guest's folder, and the session's if no other guest lives there."""
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
    """Supervises one guest; see the module."""
    parent, processor, *command = arguments
    signals = {signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    _prctl("death signal", _PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl("subreaper", _PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != int(parent):
        return CANNOT_START  # blklab died before its death could be noticed
    with suppress(OSError):  # taken away meanwhile: then wherever there is room
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
        # Before the child has its group, only it itself can be meant.
        with suppress(ProcessLookupError):
            os.kill(kernel, signal.SIGKILL)
        _wait_for_all()
        if number == signal.SIGTERM:
            _remove_scratch()
        return 128 + signal.SIGKILL


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
