"""Runs a command with a device that does not drift: each I/O takes the same time.

``python benches/steady_device.py [--filesystem] COMMAND…``, as root. ``{}`` in COMMAND stands for the device,
or with ``--filesystem`` for a directory on it. It is a loop device over nbdkit's memory disk with its delay
filter, brought in by nbdfuse (Debian: nbdkit, libnbd-bin). ``--realtime`` gives these programs, and the
kernel's workers that serve the loop device, realtime priority meanwhile: otherwise a program that computes on
all processors makes its disk slower.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

from blklab.linux.processes.signals import signals_as_exceptions

_PRIORITY = 10
_WAIT_S = 10.0
_THREADS = 256
"""Of nbdkit, each of which sleeps for one I/O."""


def main() -> int:
    """Runs the command, and takes the device away again."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--delay", default="1ms", help="of each I/O, as nbdkit takes it")
    parser.add_argument("--size", default="8G", help="as nbdkit takes it; its memory is used as it fills up")
    parser.add_argument(
        "--realtime", action="store_true", help="let COMMAND's computing not delay the device"
    )
    parser.add_argument("--filesystem", action="store_true", help="give COMMAND a directory, on ext4")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("there is no command")
    with signals_as_exceptions(), ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        place = stack.enter_context(_device(folder, options))
        if options.filesystem:
            place = stack.enter_context(_filesystem(place, folder / "ext4"))
        return _run([word.replace("{}", place) for word in options.command])


def _run(words: list[str]) -> int:
    """Runs the command to its end, also if a signal asks for that: it restores what it has changed."""
    command = subprocess.Popen(words)
    try:
        return command.wait()
    finally:
        command.terminate()
        command.wait()


@contextmanager
def _device(folder: Path, options: argparse.Namespace) -> Iterator[str]:
    socket, disk = folder / "socket", folder / "nbd" / "disk"
    disk.parent.mkdir()
    delays = [f"delay-{way}={options.delay}" for way in ("read", "write")]
    memory = ["--filter=delay", "memory", options.size, *delays]
    server = subprocess.Popen(["nbdkit", "--foreground", "-U", str(socket), "-t", str(_THREADS), *memory])
    mount: subprocess.Popen[bytes] | None = None
    try:
        _wait(socket.exists, server)
        disk.touch()
        mount = subprocess.Popen(["nbdfuse", str(disk), "--unix", str(socket)])
        _wait(lambda: disk.stat().st_size > 0, mount)
        loop = _output("losetup", "--direct-io=on", "--show", "--find", str(disk))
        try:
            with _realtime([server.pid, mount.pid, *_workers()]) if options.realtime else nullcontext():
                yield loop
        finally:
            subprocess.run(["losetup", "--detach", loop], check=True)
    finally:
        if mount is not None:
            subprocess.run(["fusermount3", "-u", "-z", str(disk)], check=False)
            mount.wait()
        server.terminate()
        server.wait()


@contextmanager
def _filesystem(device: str, folder: Path) -> Iterator[str]:
    subprocess.run(["mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0", device], check=True)
    folder.mkdir()
    subprocess.run(["mount", device, str(folder)], check=True)
    try:
        yield str(folder)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _workers() -> list[int]:
    """The kernel's workers of no certain processor, on which loop devices run."""
    names = {int(path.parent.name): path.read_text() for path in Path("/proc").glob("[0-9]*/comm")}
    return [pid for pid, name in names.items() if name.startswith("kworker/u")]


@contextmanager
def _realtime(processes: list[int]) -> Iterator[None]:
    """Gives all threads of processes realtime priority; workers get theirs back, as other work follows.

    Their I/O stays of the best-effort class. bfq would take it for realtime (``bfq_set_next_ioprio_data`` in
    block/bfq-iosched.c, Linux 6.18), though not that of workers which come later.
    """
    threads = [int(path.name) for pid in processes for path in Path(f"/proc/{pid}/task").glob("*")]
    for thread in threads:
        _schedule(thread, os.SCHED_RR, _PRIORITY)
    _io_class(threads, "best-effort")
    try:
        yield
    finally:
        for thread in threads:
            _schedule(thread, os.SCHED_OTHER, 0)
        _io_class(threads, "none")


def _io_class(threads: Sequence[int], name: str) -> None:
    # Threads may have ended.
    words = ["ionice", "--ignore", "--class", name, "--pid", *map(str, threads)]
    subprocess.run(words, check=False, stderr=subprocess.DEVNULL)


def _schedule(thread: int, policy: int, priority: int) -> None:
    with suppress(ProcessLookupError):  # it has ended
        os.sched_setscheduler(thread, policy, os.sched_param(priority))


def _wait(is_there: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Waits for what a process brings."""
    until = time.monotonic() + _WAIT_S
    while not is_there():
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit(f"{process.args!r} does not start")
        time.sleep(0.05)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
