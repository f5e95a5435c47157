"""Guest kernels for tests: the cached kernel, the guest program, and a guest that misbehaves on request."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from blklab.errors import BlklabError
from blklab.guests.boot import Boot
from blklab.guests.guest import GuestImage, Guests
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.guests.kernels.store import find
from blklab.guests.scratch import choose_scratch
from blklab.guests.watchdog import WatchdogLimits
from blklab.shipped import guest_program

MEMORY_BYTES = 128 << 20


@pytest.fixture(scope="session")
def kernel() -> KernelBuild:
    if sys.platform != "linux":
        pytest.skip("guest kernels need Linux")
    try:
        return find()
    except BlklabError as error:
        pytest.skip(f"no guest kernel: {error.message}")


@pytest.fixture(scope="session")
def real_guest(kernel: KernelBuild) -> Path:
    path = guest_program()
    if path is None:
        pytest.skip("the guest program blkguest is not built (make build)")
    return path


@pytest.fixture(scope="session")
def misbehaving(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A first process that hangs, panics, fills its memory and so on, as the request tells it."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler for the misbehaving guest")
    program = tmp_path_factory.mktemp("guest") / "misbehaving"
    source = Path(__file__).parent / "misbehaving.c"
    made = subprocess.run(
        [compiler, "-static", "-O1", "-o", str(program), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"the misbehaving guest cannot be compiled: {made.stderr.strip()[:200]}")
    return program


@pytest.fixture
def image(kernel: KernelBuild, misbehaving: Path) -> GuestImage:
    return GuestImage(kernel.linux, kernel.build_id, misbehaving, {})


@pytest.fixture
def guests() -> Iterator[Guests]:
    """Guests with a small limit on their output."""
    place, _ = choose_scratch(MEMORY_BYTES)
    with Guests(place, Boot(MEMORY_BYTES), limits=WatchdogLimits(log_bytes=1 << 20)) as session:
        yield session


@pytest.fixture
def impatient() -> Iterator[Guests]:
    """Guests with a short timeout for hangs."""
    place, _ = choose_scratch(MEMORY_BYTES)
    with Guests(place, Boot(MEMORY_BYTES), limits=WatchdogLimits(silence_s=1.5)) as session:
        yield session
