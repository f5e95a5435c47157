"""Runs tests again and again on a busy machine; their outcome must not depend on the load.

Until the tests end, these run beside them:

* busy loops on every processor, and a program that writes, syncs and reads files on the disk of /var/tmp;
* as root, programs that create loop devices of their own, switch their schedulers, change their queues,
  run fio on them and remove them; one that creates and removes control groups; one that empties the page
  cache.

Usage: scripts/stress-tests.py [--rounds N] [--nice N] [-- ARGUMENTS OF PYTEST]. Without arguments, each round
runs the whole suite except slow tests: the two parts of ``make test``, side by side. The exit code is 1 if a
round failed.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

SCRATCH = Path("/var/tmp")  # noqa: S108 - a disk, which /tmp may not be
WHOLE_SUITE = [
    ["-n", "2", "--dist", "loadfile", "-m", "not root and not vm and not slow"],
    ["-m", "root and not slow"],
]
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
LOOP_CTL_REMOVE = 0x4C81
CGROUPS = Path("/sys/fs/cgroup")
FILE_BYTES = 64 << 20
CHUNK_BYTES = 1 << 20


def keep_a_processor_busy(_folder: Path) -> None:
    """Hashes."""
    block = bytes(CHUNK_BYTES)
    while needed():
        hashlib.sha512(block).digest()


def keep_the_disk_busy(folder: Path) -> None:
    """Writes a file, syncs it, and reads parts of it past the page cache."""
    path = folder / f"load-{os.getpid()}"
    block = os.urandom(CHUNK_BYTES)
    while needed():
        with path.open("wb") as file:
            for _ in range(FILE_BYTES // CHUNK_BYTES):
                file.write(block)
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with path.open("rb") as file:
            for _ in range(16):
                file.seek(random.randrange(FILE_BYTES // CHUNK_BYTES) * CHUNK_BYTES)  # noqa: S311
                file.read(CHUNK_BYTES)


def use_other_loop_devices(folder: Path) -> None:
    """Creates loop devices, switches their schedulers under fio, and removes them."""
    image = folder / f"image-{os.getpid()}"
    with image.open("wb") as file:
        file.truncate(32 << 20)
    while needed():
        made = subprocess.run(
            ["losetup", "--find", "--show", image], check=False, capture_output=True, text=True
        )
        if made.returncode:
            continue  # Another program was faster.
        device = Path(made.stdout.strip())
        try:
            _change_queue_under_fio(device)
        finally:
            subprocess.run(["losetup", "--detach", device], check=False, capture_output=True)
            with contextlib.suppress(OSError), Path("/dev/loop-control").open("rb") as control:
                fcntl.ioctl(control, LOOP_CTL_REMOVE, int(device.name.removeprefix("loop")))


def _change_queue_under_fio(device: Path) -> None:
    queue = Path("/sys/block") / device.name / "queue"
    job = ["--name=other", f"--filename={device}", "--rw=randrw", "--time_based", "--runtime=2"]
    fio = subprocess.Popen(["fio", *job], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while fio.poll() is None and needed():
            for name, values in (
                ("scheduler", SCHEDULERS),
                ("nr_requests", ("32", "64")),
                ("read_ahead_kb", ("64", "256")),
            ):
                with contextlib.suppress(OSError):
                    (queue / name).write_text(random.choice(values))  # noqa: S311
            time.sleep(0.02)
    finally:
        fio.kill()
        fio.wait()


def use_other_control_groups(_folder: Path) -> None:
    """Creates control groups and removes them, wherever the I/O controller is."""
    roots = [path for path in (CGROUPS / "blkio", CGROUPS) if (path / "cgroup.procs").exists()]
    while needed() and roots:
        group = roots[0] / f"other-{os.getpid()}"
        group.mkdir()
        time.sleep(0.05)
        group.rmdir()


def empty_the_page_cache(_folder: Path) -> None:
    """Does so once a minute: more often, programs would do little but read themselves from the disk again."""
    while not _told_to_end.wait(60) and needed():
        Path("/proc/sys/vm/drop_caches").write_text("1")


_told_to_end = multiprocessing.Event()


def needed() -> bool:
    """Whether the tests still run, and the program that started this process is still there."""
    parent = multiprocessing.parent_process()
    return not _told_to_end.is_set() and parent is not None and os.getppid() == parent.pid


@contextlib.contextmanager
def beside(*works: Callable[[Path], None]) -> Iterator[None]:
    """Runs each function in a separate process; ends these and all their children."""
    with tempfile.TemporaryDirectory(prefix="blklab-stress-", dir=SCRATCH) as folder:
        processes = [multiprocessing.Process(target=_alone, args=(work, Path(folder))) for work in works]
        for process in processes:
            process.start()
        try:
            yield
        finally:
            # Not by a signal, which could come between the creation of a device and its removal.
            _told_to_end.set()
            for process in processes:
                process.join()


def _alone(work: Callable[[Path], None], folder: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    work(folder)


def main() -> int:
    """Runs the rounds; returns 1 if any failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10, help="how often the tests run (default: 10)")
    parser.add_argument("--stop", action="store_true", help="end after the first round that fails")
    parser.add_argument(
        "--nice",
        type=int,
        default=0,
        help="nice value of the tests beside that of the load; at -5 a round is shorter (as root)",
    )
    parser.add_argument("pytest", nargs="*", metavar="ARGUMENT", help="arguments of pytest, after --")
    options = parser.parse_args()
    # In place of dying at once, which would leave loop devices and files behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    processors = os.cpu_count() or 1
    load = [keep_a_processor_busy] * processors + [keep_the_disk_busy]
    if os.geteuid() == 0:
        load += [use_other_loop_devices] * 2 + [use_other_control_groups, empty_the_page_cache]
    runs = [options.pytest] if options.pytest else WHOLE_SUITE
    closing: list[str] = []
    with beside(*load):
        for number in range(1, options.rounds + 1):
            started = time.monotonic()
            codes = _run_tests(runs, options.nice)
            # 5: pytest found no test to run.
            passed = all(code in (0, 5) for code in codes)
            outcome = "passed" if passed else f"FAILED (exit codes of pytest: {codes})"
            closing.append(f"round {number}: {outcome} after {time.monotonic() - started:.0f} s")
            sys.stdout.write(f"{closing[-1]}\n")
            sys.stdout.flush()
            if not passed and options.stop:
                break
    failed = sum("FAILED" in line for line in closing)
    lines = [*closing, f"{len(closing) - failed} of {options.rounds} rounds passed"]
    sys.stdout.write("\n".join(["", *lines, ""]))
    return int(len(closing) - failed < options.rounds)


def _run_tests(runs: list[list[str]], nice: int) -> list[int]:
    """Starts pytest once for each list of arguments, all side by side; returns the exit codes."""
    command = ["nice", "-n", str(nice), sys.executable, "-m", "pytest", "-q"]
    with contextlib.ExitStack() as stack:
        outputs = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in runs]
        processes = [
            subprocess.Popen([*command, *arguments], stdout=output, stderr=subprocess.STDOUT)
            for arguments, output in zip(runs, outputs, strict=True)
        ]
        try:
            return [process.wait() for process in processes]
        except BaseException:
            # Not killed: the tests take down their devices and mounts.
            for process in processes:
                process.send_signal(signal.SIGINT)
            for process in processes:
                process.wait()
            raise
        finally:
            for output in outputs:
                output.seek(0)
                shutil.copyfileobj(output, sys.stdout)
            sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
