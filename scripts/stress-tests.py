"""Runs tests beside a busy machine, again and again: their outcome must not depend on it.

Beside the tests run, until they end:

* busy loops on every processor, and programs that write, sync and read files in the folder for scratch data;
* as root, programs that do what strangers do with disks: create loop devices of their own, switch their
  schedulers, change their queues, run fio on them and remove them.

Usage: scripts/stress-tests.py [--rounds N] [-- ARGUMENTS OF PYTEST]. Without arguments each round runs the
whole suite but for the slow tests, in the two parts that ``make test`` runs. The exit code is 1 if a round
failed.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

SCRATCH = Path("/var/tmp")  # noqa: S108 - a disk, which /tmp may not be
WHOLE_SUITE = [
    ["-n", "2", "--dist", "loadfile", "-m", "not root and not slow"],
    ["-m", "root and not slow"],
]
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
LOOP_CTL_REMOVE = 0x4C81
FILE_BYTES = 64 << 20
CHUNK_BYTES = 1 << 20


def keep_a_processor_busy(_folder: Path) -> None:
    """Hashes for ever."""
    block = bytes(CHUNK_BYTES)
    while True:
        hashlib.sha512(block).digest()


def keep_the_disk_busy(folder: Path) -> None:
    """Writes a file, syncs it, and reads parts of it past the page cache, for ever."""
    path = folder / f"load-{os.getpid()}"
    block = os.urandom(CHUNK_BYTES)
    while True:
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
    """Creates loop devices, switches their schedulers under fio, and removes them, for ever."""
    image = folder / f"image-{os.getpid()}"
    with image.open("wb") as file:
        file.truncate(32 << 20)
    while True:
        made = subprocess.run(
            ["losetup", "--find", "--show", image], check=False, capture_output=True, text=True
        )
        if made.returncode:
            continue  # Another program was faster.
        device = Path(made.stdout.strip())
        try:
            _use(device, Path("/sys/block") / device.name / "queue")
        finally:
            subprocess.run(["losetup", "--detach", device], check=False, capture_output=True)
            with contextlib.suppress(OSError), Path("/dev/loop-control").open("rb") as control:
                fcntl.ioctl(control, LOOP_CTL_REMOVE, int(device.name.removeprefix("loop")))


def _use(device: Path, queue: Path) -> None:
    job = ["--name=other", f"--filename={device}", "--rw=randrw", "--time_based", "--runtime=2"]
    fio = subprocess.Popen(["fio", *job], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while fio.poll() is None:
        for name, values in (
            ("scheduler", SCHEDULERS),
            ("nr_requests", ("32", "64")),
            ("read_ahead_kb", ("64", "256")),
        ):
            with contextlib.suppress(OSError):
                (queue / name).write_text(random.choice(values))  # noqa: S311
        time.sleep(0.02)


@contextlib.contextmanager
def beside(*works: Callable[[Path], None]) -> Iterator[None]:
    """Runs functions in processes of their own, and ends these and all that they started."""
    with tempfile.TemporaryDirectory(prefix="blklab-stress-", dir=SCRATCH) as folder:
        processes = [multiprocessing.Process(target=_alone, args=(work, Path(folder))) for work in works]
        for process in processes:
            process.start()
        try:
            yield
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.join()


def _alone(work: Callable[[Path], None], folder: Path) -> None:
    # An exception, so that what is between `try` and `finally` is taken down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    work(folder)


def main() -> int:
    """Carries out the rounds; 1 if any failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10, help="how often the tests run (default: 10)")
    parser.add_argument("--stop", action="store_true", help="end after the first round that fails")
    parser.add_argument("pytest", nargs="*", metavar="ARGUMENT", help="arguments of pytest, after --")
    options = parser.parse_args()
    processors = os.cpu_count() or 1
    load = [keep_a_processor_busy] * processors + [keep_the_disk_busy] * 2
    if os.geteuid() == 0:
        load += [use_other_loop_devices] * 2
    runs = [options.pytest] if options.pytest else WHOLE_SUITE
    closing: list[str] = []
    with beside(*load):
        for number in range(1, options.rounds + 1):
            started = time.monotonic()
            codes = [_run_tests(arguments) for arguments in runs]
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


def _run_tests(arguments: list[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
