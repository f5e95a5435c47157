"""Running the kernel's own build system in a folder of ours: configure, compile, count, end it cleanly."""

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
from blklab.guests.kernels.configuration import Option, check_configuration, read_configuration, render
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
"""Folders that every I/O of a guest runs through: compiled with the kernel's -O2. The rest is
compiled with -O1, which saves compile time and costs guests nothing (docs/appendix/measurements.md):
in virtual time its computing takes no guest time."""
_ENDS_WITH_US = 'trap "trap - TERM; kill -TERM 0" TERM; "$@" & wait $!'
"""A shell that is told when blklab dies without a chance to clear away, and ends all compilers then."""


class BuildObserver(Protocol):
    """Someone who watches a build."""

    def announce(self, line: str) -> None:
        """A stage begins."""

    def progressed(self, steps_done: int, steps_expected: int | None, remaining_ns: int | None) -> None:
        """A step of the compilation ended; nothing where no expectation can be had."""


class SilentBuildObserver:
    """Watches and says nothing."""

    def announce(self, line: str) -> None:
        """Says nothing."""

    def progressed(self, steps_done: int, steps_expected: int | None, remaining_ns: int | None) -> None:
        """Says nothing."""


def configure(tree: Path, options: Mapping[str, Option], jobs: int, log: TextIO) -> list[str]:
    """Configures a tree with what was asked for and nothing else, and reads the result back.

    Returns:
        Names of optional options that the source does not know.

    Raises:
        KernelLacksError: if an option was not granted.
        KernelBuildError: if the configuration program cannot be built or fails.
    """
    fragment = tree / ".blklab.config"
    fragment.write_text(render(options), encoding="utf-8")
    former = _bytes_of(tree / ".config")
    for _ in _make(tree, ["allnoconfig"], jobs, log, extra_environment={"KCONFIG_ALLCONFIG": str(fragment)}):
        pass
    missing = check_configuration(options, read_configuration(tree / ".config"), tree)
    if former is not None and former == _bytes_of(tree / ".config"):
        log.write("the configuration is that of the objects that are there\n")
    return missing


def compile_tree(
    tree: Path, jobs: int, log: TextIO, observer: BuildObserver, steps_expected: int | None
) -> tuple[int, int]:
    """Compiles a configured tree.

    Args:
        tree: The source, with the objects of a former build or without.
        jobs: Compilers at a time.
        log: Takes all output.
        observer: Told of every step.
        steps_expected: How many steps it takes, as far as one knows.

    Returns:
        Steps taken, and C files compiled among them.

    Raises:
        KernelBuildError: with the first complaint.
        SpaceError: if the disk became full.
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
        raise KernelBuildError("the build ended well but left no kernel", hint="is this source complete?")
    return steps, compiled


def _quick_flags() -> str:
    """A make variable that users may set for built-in code; make works it out in every folder (`obj`) anew.

    Source: Documentation/kbuild/makefiles.rst and scripts/Makefile.lib, Linux 6.1.
    """
    return f"CFLAGS_KERNEL=$(if $(filter {' '.join(_COMPILED_WELL)},$(obj)),,-O1)"


def _make(
    tree: Path,
    targets: list[str],
    jobs: int,
    log: TextIO,
    extra_environment: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Runs make and yields its lines; whatever ends us ends the whole group of its processes."""
    command = ["make", f"-j{jobs}", "ARCH=um", "SUBARCH=x86_64", *targets]
    log.write(f"$ {' '.join(command)}\n")
    if shutil.which("setpriv") is not None:
        command = ["setpriv", "--pdeathsig", "TERM", "--", "sh", "-c", _ENDS_WITH_US, "sh", *command]
    environment = {**build_environment(), **(extra_environment or {})}
    complaints: list[str] = []
    said = ""
    with _process_group(command, tree, environment) as process:
        assert process.stdout is not None  # noqa: S101 - it was asked for
        for line in process.stdout:
            log.write(line)
            if _COMPLAINT.search(line):
                if said and "***" in line and not complaints and _MISSING.search(line) is None:
                    # make's own message says less than what the program printed before it.
                    complaints.append(said)
                complaints.append(line.strip())
            said = line.strip()
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
    # Compilers that outlived their make have nobody to write for.
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _fail(complaints: list[str], code: int) -> None:
    if any("No space left on device" in line for line in complaints):
        raise SpaceError(
            "the disk became full while the kernel was built",
            hint="make room, or set XDG_CACHE_HOME to a place that has it",
        )
    first = complaints[0] if complaints else f"make ended with {code} and no message"
    missing = _MISSING.search(first)
    hint = None
    if missing is not None and not is_copied(missing[1]):
        hint = (
            "its sources are not taken along, since User-mode Linux has no such hardware; "
            "leave out the option that wants it"
        )
    raise KernelBuildError(f"the kernel could not be built: {first}", hint=hint)


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
