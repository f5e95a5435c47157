"""Runs the kernel's build system in our own directory: configures, compiles, counts steps, stops cleanly."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TextIO

from blklab.errors import KernelBuildError, SpaceError
from blklab.guests.kernels.configuration import KernelOption, check_configuration, read_configuration, render
from blklab.guests.kernels.source_tree import is_copied
from blklab.guests.kernels.toolchain import build_environment

_STEP = re.compile(
    r"\s+(?:HOST)?(?:CC|AS|LD|AR|CPP|COPY|GEN|LEX|YACC|OBJCOPY|LDS|NM|KSYMS|LINK|UPD|HOSTLD)\s"
)
_COMPILED = re.compile(r"\s+CC\s")
_COMPLAINT = re.compile(
    r"(?:fatal )?error[: ]|undefined reference|\*\*\*|No space left on device|No rule to make"
)
_MISSING = re.compile(r"No rule to make target '([^']+)'")
_GRACE_SECONDS = 10.0
_COMPILED_WELL = (
    "arch/um/%",
    "arch/x86/um/%",
    "block",
    "drivers/block",
    "drivers/block/%",
    "io_uring",
    "kernel/sched",
    "kernel/time",
)
"""Directories with code that every I/O of a guest runs through: compiled with the kernel's -O2. The rest is
compiled with -O1, which saves compile time and costs guests nothing (docs/appendix/measurements.md):
in virtual time its computing takes no guest time."""
_ENDS_WITH_US = """\
trap 'trap "" TERM; kill -TERM 0; sleep 1; kill -KILL 0' TERM; "$@" & wait $!"""
"""A shell that gets SIGTERM when blklab is killed, and then ends all compilers. One that make starts at
that very moment may miss the first signal."""


class BuildObserver(Protocol):
    """Receives the progress of a build."""

    def announce(self, line: str) -> None:
        """Called when a stage begins."""

    def progressed(self, steps_done: int, steps_expected: int | None, remaining_ns: int | None) -> None:
        """Called after each step of the compilation; unknown expectations are None."""


class SilentBuildObserver:
    """Ignores all progress."""

    def announce(self, line: str) -> None:
        """Does nothing."""

    def progressed(self, steps_done: int, steps_expected: int | None, remaining_ns: int | None) -> None:
        """Does nothing."""


def configure(tree: Path, options: Mapping[str, KernelOption], jobs: int, log: TextIO) -> list[str]:
    """Configures a tree with exactly the requested options, and reads the result back.

    Returns:
        Names of optional options that the source does not know.

    Raises:
        KernelLacksError: if an option did not take effect.
        KernelBuildError: if the configuration program cannot be built or fails.
    """
    fragment = tree / ".blklab.config"
    fragment.write_text(render(options), encoding="utf-8")
    former = _bytes_of(tree / ".config")
    for _ in _make(tree, ["allnoconfig"], jobs, log, extra_environment={"KCONFIG_ALLCONFIG": str(fragment)}):
        pass
    missing = check_configuration(options, read_configuration(tree / ".config"), tree)
    if former is not None and former == _bytes_of(tree / ".config"):
        log.write("the configuration is the same as that of the existing objects\n")
    return missing


def compile_tree(
    tree: Path, jobs: int, log: TextIO, observer: BuildObserver, steps_expected: int | None
) -> tuple[int, int]:
    """Compiles a configured tree.

    Args:
        tree: The source, with or without the objects of an earlier build.
        jobs: Number of parallel compilers.
        log: Receives all output.
        observer: Receives every step.
        steps_expected: The expected number of steps, if known.

    Returns:
        The number of steps, and the number of C files compiled.

    Raises:
        KernelBuildError: with the first error message.
        SpaceError: if the disk is full.
    """
    begun_ns = time.monotonic_ns()
    steps = compiled = 0
    for line in _make(tree, ["linux", _quick_flags()], jobs, log):
        if not _STEP.match(line):
            continue
        steps += 1
        compiled += _COMPILED.match(line) is not None
        remaining_ns = None
        if steps_expected is not None:
            elapsed_ns = time.monotonic_ns() - begun_ns
            remaining_ns = elapsed_ns * max(steps_expected - steps, 0) // steps
        observer.progressed(steps, steps_expected, remaining_ns)
    if not (tree / "linux").is_file():
        raise KernelBuildError("the build succeeded but left no kernel", hint="is this source complete?")
    return steps, compiled


def _quick_flags() -> str:
    """The make variable for built-in code's compiler flags; make expands it in every directory (`obj`).

    Sources: Documentation/kbuild/makefiles.rst and scripts/Makefile.lib, Linux 6.1.
    """
    return f"CFLAGS_KERNEL=$(if $(filter {' '.join(_COMPILED_WELL)},$(obj)),,-O1)"


def _make(
    tree: Path,
    targets: list[str],
    jobs: int,
    log: TextIO,
    extra_environment: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Runs make and yields its lines; its whole process group ends when we end, whatever the cause."""
    # A vendor's tree may name a compiler for another machine in its makefile.
    command = ["make", f"-j{jobs}", "ARCH=um", "SUBARCH=x86_64", "CROSS_COMPILE=", *targets]
    log.write(f"$ {' '.join(command)}\n")
    if shutil.which("setpriv") is not None:
        command = ["setpriv", "--pdeathsig", "TERM", "--", "sh", "-c", _ENDS_WITH_US, "sh", *command]
    environment = {**build_environment(), **(extra_environment or {})}
    complaints: list[str] = []
    previous = ""
    with _process_group(command, tree, environment) as process:
        assert process.stdout is not None  # noqa: S101 - stdout=PIPE
        for line in process.stdout:
            log.write(line)
            if _COMPLAINT.search(line):
                if previous and "***" in line and not complaints and _MISSING.search(line) is None:
                    # make's own message says less than the program's output before it.
                    complaints.append(previous)
                complaints.append(line.strip())
            previous = line.strip()
            yield line
        code = process.wait()
    log.flush()
    if code:
        _fail(complaints, code)


@contextmanager
def _process_group(
    command: list[str], folder: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            _end_group(process)
        if process.stdout is not None:
            process.stdout.close()


def _end_group(process: subprocess.Popen[str]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    # Compilers may have outlived make.
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _fail(complaints: list[str], code: int) -> None:
    if any("No space left on device" in line for line in complaints):
        raise SpaceError(
            "the disk became full while building the kernel",
            hint="free some space, or set XDG_CACHE_HOME to a directory that has enough",
        )
    first = complaints[0] if complaints else f"make exited with {code} and no message"
    missing = _MISSING.search(first)
    hint = None
    if missing is not None and not is_copied(missing[1]):
        hint = (
            "blklab does not copy its source, because User-mode Linux has no such hardware; "
            "leave out the option that needs it"
        )
    raise KernelBuildError(f"the kernel could not be built: {first}", hint=hint)


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
