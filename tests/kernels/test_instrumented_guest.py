"""The instruments in a guest: the kernel that `make kernel` built runs a first process of ours."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from blklab.errors import BlklabError
from blklab.guests.kernels import store
from blklab.guests.kernels.kernel_build import EXACT_CLOCK, PROCESSOR_TIME, KernelBuild
from waiting import PATIENCE_SECONDS, wait_until

KEPT = {
    "processes": 3599,
    "threads": 3599,
    "both": 4799,
    "signals": 760,
    "forks": 120,
    "vforks": 120,
    "failing_execs": 80,
    "page_faults": 400,
    "tracing": 80,
    "execs": 1,
}
"""The number of reads that ``registers.c`` makes, by the event that happens meanwhile."""


@pytest.fixture
def stock() -> KernelBuild:
    try:
        return store.find("stock")
    except BlklabError as error:
        pytest.skip(f"{error.message} (make kernel)")


@pytest.fixture(scope="module")
def first_process(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("first_process.c", tmp_path_factory)


@pytest.fixture(params=["stock", "linux-6.12", "linux-7.2", "linux-7.3"])
def any_kernel(request: pytest.FixtureRequest) -> KernelBuild:
    """The stock kernel, and later ones where they were built."""
    try:
        return store.find(request.param)
    except BlklabError as error:
        how = "make kernel" if request.param == "stock" else "make test-all builds it"
        pytest.skip(f"{error.message} ({how})")


@pytest.fixture(scope="module")
def pages_after_fork(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("pages_after_fork.c", tmp_path_factory)


@pytest.fixture(scope="module")
def registers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("registers.c", tmp_path_factory)


def compiled(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A statically linked program."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    program = tmp_path_factory.mktemp("program") / "first"
    source = Path(__file__).parent / name
    result = subprocess.run(
        [compiler, "-static", "-O1", "-pthread", "-o", program, source],
        capture_output=True,
        check=False,
        text=True,
    )
    if result.returncode:
        pytest.skip(f"no static program can be built here: {result.stderr.strip()}")
    return program


@contextmanager
def guest(kernel: KernelBuild, program: Path, folder: Path, task: str) -> Iterator[subprocess.Popen[str]]:
    """A running guest in its own process group, killed after the test."""
    root = folder / "root"
    for name in ("dev", "proc", "sys", "tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(program, root / "first")
    with kernel.in_use():
        process = subprocess.Popen(
            [
                *("setarch", "--addr-no-randomize", kernel.linux),
                *("time-travel=inf-cpu", "time-travel-start=0", f"rootflags={root}"),
                *("root=/dev/root", "rootfstype=hostfs", "rw", "init=/first", f"uml_dir={folder}/"),
                *("mem=64M", "con=null", "con0=fd:0,fd:1", "quiet", "norandmaps", "panic=-1", "--", task),
            ],
            env={"TMPDIR": str(folder), "PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def figures_of(kernel: KernelBuild, program: Path, folder: Path) -> tuple[dict[str, int], str]:
    """Values that the guest printed, and all of its text."""
    with guest(kernel, program, folder, "clock") as process:
        text, _ = process.communicate(timeout=PATIENCE_SECONDS)
    pairs = [line.split() for line in text.splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}, text


def running_in_group(group: int) -> list[int]:
    """Processes of a process group that have not ended."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, _, of_group = (process / "stat").read_text().rpartition(")")[2].split()[:3]
            if int(of_group) == group and state not in "ZX":
                found.append(int(process.name))
    return found


def test_every_release_has_the_clock_and_the_costs(any_kernel: KernelBuild) -> None:
    assert {EXACT_CLOCK, PROCESSOR_TIME} <= set(any_kernel.instruments), any_kernel.lacks


def test_a_child_has_the_pages_of_its_parent(
    any_kernel: KernelBuild, pages_after_fork: Path, tmp_path: Path
) -> None:
    """Without set-ptes, a child on Linux 7.3 sees other pages than its parent."""
    seen, text = figures_of(any_kernel, pages_after_fork, tmp_path)
    assert seen == {f"page_{page}": page for page in range(1, 5)}, text


def test_the_clock_is_exact_and_polling_ends(stock: KernelBuild, first_process: Path, tmp_path: Path) -> None:
    if "exact-clock" not in stock.instruments:
        pytest.skip("the stock kernel lacks the exact clock")
    figures, text = figures_of(stock, first_process, tmp_path)
    assert figures.get("thousand_readings_ns") == 0, text
    assert figures["timeout_ns"] == figures["timeout_after_polling_ns"] == 100_000
    # 10,000 readings are free; then each takes 1,024 ns.
    assert 10_000_000 <= figures["polling_ns"] < 10_000_000 + 2 * 1024
    assert 10_000 <= figures["polling_readings"] <= 10_000 + 10_000_000 // 1024 + 1
    # Sleeps of 1 ns are free at 100 moments; the clock counts as at one of them when they begin.
    assert 90 <= figures["shortest_sleeps"] <= 110
    assert figures_of(stock, first_process, tmp_path)[1] == text


@pytest.mark.parametrize("where", ["guest", "host"])
def test_programs_keep_their_registers(
    stock: KernelBuild, registers: Path, tmp_path: Path, where: str
) -> None:
    """Processes and threads in turn, signals, forks, exec, page faults: in a guest as on this machine."""
    if where == "host":
        command = [registers]
        text = subprocess.run(
            command, capture_output=True, check=True, text=True, timeout=PATIENCE_SECONDS
        ).stdout
    else:
        with guest(stock, registers, tmp_path, "all") as process:
            text, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert "lost" not in text, text
    words = [line.split() for line in text.splitlines() if line.startswith("kept")]
    assert {event: int(times) for _, event, times in words} == KEPT, text


def test_a_killed_kernel_leaves_no_process(stock: KernelBuild, first_process: Path, tmp_path: Path) -> None:
    """Guest programs run in processes of the host; without their kernel they would keep running as such."""
    with guest(stock, first_process, tmp_path, "spin") as process:
        assert process.stdout is not None
        assert any("spinning" in line for line in process.stdout)
        assert len(running_in_group(process.pid)) >= 3  # the kernel, and two of the guest's
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: not running_in_group(process.pid), "no process of the guest is left")
