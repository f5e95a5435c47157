"""First process of a command's PID namespace: starts the command, measures it, ends what it leaves behind.

It is a program of its own, run by its path without blklab's modules, so that it starts quickly. Its
arguments are the time limit in seconds, and the program to run with its arguments. It prints one JSON object.

A namespace's first process adopts every orphan and ends only after all others. So its counters of children
(getrusage(2)) cover the whole tree, except for processes whose parent ignores SIGCHLD.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress

_KEPT_BYTES = 8192
"""Of standard error: enough for its last lines."""
_CHUNK_BYTES = 65536


def main() -> None:
    """Runs the command and reports."""
    limit_s, argv = float(sys.argv[1]), sys.argv[2:]
    reader, writer = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    start_ns = time.monotonic_ns()
    # Unlike fork it copies no page tables, which would take milliseconds of the command's time.
    child = os.posix_spawn(
        argv[0],
        argv,
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, *pair) for pair in ((nothing, 0), (nothing, 1), (writer, 2))],
        # Python ignores these, and ignored signals would stay so in the command.
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
    )
    os.close(writer)
    timed_out, kept = _wait(child, reader, start_ns + round(limit_s * 1e9))
    _, status = os.waitpid(child, 0)
    end_ns = time.monotonic_ns()
    _end_all_others()
    kept += _rest_of(reader)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = {
        "wall_ns": end_ns - start_ns,
        "exit_code": os.waitstatus_to_exitcode(status),
        "timed_out": timed_out,
        "user_ns": round(usage.ru_utime * 1e9),
        "system_ns": round(usage.ru_stime * 1e9),
        # Both in units of 512 bytes: task_io_get_inblock, include/linux/task_io_accounting_ops.h.
        "read_bytes": usage.ru_inblock * 512,
        "written_bytes": usage.ru_oublock * 512,
        "major_faults": usage.ru_majflt,
        "context_switches": usage.ru_nvcsw + usage.ru_nivcsw,
        "errors": kept[-_KEPT_BYTES:].decode(errors="replace"),
    }
    sys.stdout.write(json.dumps(report))


def _wait(child: int, reader: int, deadline_ns: int) -> tuple[bool, bytes]:
    """Waits until the child ends, and kills it at the deadline.

    Returns:
        Whether it was killed, and the last part of its errors so far.
    """
    ended = os.pidfd_open(child)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(reader, select.POLLIN)
    kept = b""
    timed_out = False
    while True:
        left_ms = max(0, (deadline_ns - time.monotonic_ns()) // 1_000_000)
        ready = {descriptor for descriptor, _ in poll.poll(None if timed_out else left_ms)}
        if ended in ready:
            return timed_out, kept
        if reader in ready:
            chunk = os.read(reader, _CHUNK_BYTES)
            if chunk:
                kept = (kept + chunk)[-_KEPT_BYTES:]
            else:
                poll.unregister(reader)
        elif not timed_out:
            timed_out = time.monotonic_ns() >= deadline_ns
            if timed_out:
                os.kill(child, signal.SIGKILL)


def _end_all_others() -> None:
    """Kills and reaps every other process of the namespace."""
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _rest_of(reader: int) -> bytes:
    """The errors that the pipe still holds; all writers are gone."""
    rest = b""
    while chunk := os.read(reader, _CHUNK_BYTES):
        rest = (rest + chunk)[-_KEPT_BYTES:]
    return rest


if __name__ == "__main__":
    main()
