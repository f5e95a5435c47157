"""`blklab compare` and `blklab run` on guest kernels: the same bytes on one processor and on two, and every
way to end leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import blklab
from blklab.cli import run
from blklab.guests import scratch
from blklab.guests.kernels.cache import kernel_cache
from blklab.records.store import Store
from waiting import wait_until

from .ordinary_user import as_user, can_mount
from .test_guests import processes_in

DEVICE = "uml:fixed,latency=200us,depth=4,jitter=40us"
JOB = (
    "; purpose: Random reads.\n[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine=io_uring\niodepth=8\n"
    "number_ios=400\nsize=64m\n"
)
WITH_OTHER_GUEST = (
    "import signal, sys; from pathlib import Path; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from unittest import mock; program = Path(sys.argv.pop(1));"
    "mock.patch('blklab.shipped.guest_program', lambda: program).start();"
    "from blklab.cli import main; main()"
)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder in memory for scratch folders, which must be empty in the end."""
    if not scratch.MEMORY_FOLDER.is_dir():
        pytest.skip(f"there is no {scratch.MEMORY_FOLDER}")
    folder = scratch.MEMORY_FOLDER / f"blklab-test-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir()
    yield folder
    left = [path.name for path in folder.iterdir()], processes_in(folder)
    shutil.rmtree(folder)
    assert left == ([], [])


def _samples(store: Path) -> list[dict[str, Any]]:
    """All samples of the only run, in order, without values that depend on real time."""
    with Store.opened(str(store)) as opened:
        record = opened.load("latest")
    return [sample.model_dump(exclude={"started_at", "elapsed_ns"}) for sample in record.samples]


@pytest.mark.usefixtures("real_guest")
def test_the_same_samples_on_one_processor_and_on_two(
    tmp_path: Path, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two processors")
    found = []
    for name, processor in (("two", None), ("again", None), ("one", min(os.sched_getaffinity(0)))):
        store = tmp_path / f"{name}.db"
        arguments = [
            "compare",
            DEVICE,
            "-w",
            job,
            "--blocks",
            "2",
            "--seed",
            "7",
            "--store",
            str(store),
            "-q",
        ]
        pinned = [] if processor is None else ["taskset", "--cpu-list", str(processor)]
        command = [
            *pinned,
            sys.executable,
            "-m",
            "blklab",
            *arguments,
            "--json",
            str(tmp_path / f"{name}.json"),
        ]
        assert subprocess.run(command, check=False).returncode == 0
        found.append(json.dumps(_samples(store), sort_keys=True))
    assert found[0] == found[1]
    assert found[0] == found[2]
    assert len(json.loads(found[0])) == 8


@pytest.mark.usefixtures("real_guest")
def test_another_seed_gives_other_samples(capsys: pytest.CaptureFixture[str], job: str) -> None:
    outputs = []
    for seed in ("1", "1", "2"):
        assert run(["run", DEVICE, job, "--scheduler", "none", "--seed", seed, "--json", "-", "-q"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert json.loads(outputs[0])["jobs"] != json.loads(outputs[2])["jobs"]


@pytest.mark.usefixtures("real_guest")
def test_kernels_are_crossed_with_schedulers_and_named(capsys: pytest.CaptureFixture[str], job: str) -> None:
    arguments = ["compare", DEVICE, "-w", job, "-s", "none,kyber,calm=bfq:low_latency=0", "--kernel", "stock"]
    assert run([*arguments, "--blocks", "1", "--json", "-", "-q"]) == 0
    document = json.loads(capsys.readouterr().out)
    labels = {choice["label"]: choice["kernel"] for choice in document["schedulers"]}
    assert labels == {"none@stock": "stock", "kyber@stock": "stock", "calm@stock": "stock"}
    assert document["target_description"]["details"]["kernel stock"].startswith("Linux ")
    assert document["apply_command"] is None


@pytest.mark.usefixtures("real_guest")
def test_a_sweep_asks_the_kernel_for_its_defaults(capsys: pytest.CaptureFixture[str], job: str) -> None:
    arguments = ["compare", DEVICE, "-w", job, "--sweep", "mq-deadline:fifo_batch=1,16", "--kernel", "stock"]
    assert run([*arguments, "--blocks", "1", "--json", "-", "-q"]) == 0
    document = json.loads(capsys.readouterr().out)
    labels = [choice["label"] for choice in document["schedulers"]]
    # 16 is the kernel's default, so it is not run twice.
    assert labels == ["mq-deadline@stock", "mq-deadline@stock:fifo_batch=1"]


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_no_end_leaves_anything_behind(
    number: signal.Signals, code: int, misbehaving: Path, place: Path, tmp_path: Path
) -> None:
    job = tmp_path / "hang.fio"
    job.write_text(JOB + "; loop without calls\n")
    process = subprocess.Popen(
        [sys.executable, "-c", WITH_OTHER_GUEST, str(misbehaving), "compare", DEVICE, "-w", str(job), "-q"],
        env={**os.environ, scratch.SCRATCH_VARIABLE: str(place)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wanted = min(len(os.sched_getaffinity(0)), 4)
        wait_until(
            lambda: len([pid for pid in processes_in(place) if _is_guest(pid)]) >= 2 * wanted,
            "all guests run",
            process=process,
        )
        process.send_signal(number)
        process.communicate()
        assert process.returncode == code
    finally:
        process.kill()
        process.wait()
    # Supervisors outlive a killed blklab by a moment.
    wait_until(lambda: not processes_in(place) and not any(place.iterdir()), "nothing is left")


def _is_guest(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "linux\n"
    except OSError:
        return False


@pytest.mark.usefixtures("kernel")
def test_a_failed_run_is_kept_and_the_rest_goes_on(misbehaving: Path, tmp_path: Path) -> None:
    job = tmp_path / "panic.fio"
    job.write_text(JOB + "; panic\n")
    arguments = [
        "compare",
        DEVICE,
        "-w",
        str(job),
        "--blocks",
        "1",
        "--store",
        str(tmp_path / "store.db"),
        "-q",
    ]
    done = subprocess.run(
        [sys.executable, "-c", WITH_OTHER_GUEST, str(misbehaving), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 5
    assert "every run of block 0 failed: the guest's kernel panicked: Attempted to kill init!" in done.stderr
    samples = _samples(tmp_path / "store.db")
    assert [sample["status"] for sample in samples] == ["failed"] * 4


@pytest.mark.usefixtures("real_guest")
def test_an_ordinary_user_needs_no_rights(job: str, place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("this user is ordinary: all other tests show it")
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        pytest.skip("there is no user nobody")
    if not can_mount():
        pytest.skip("this machine gives root no mount namespace")
    place.chmod(0o777)
    Path(job).parent.chmod(0o755)
    package = Path(blklab.__file__).parents[2]
    command = as_user(
        [sys.executable, "-m", "blklab", "run", DEVICE, job, "--scheduler", "bfq", "-q"],
        uid=nobody.pw_uid,
        gid=nobody.pw_gid,
        needs=[Path(sys.base_prefix), Path(sys.prefix), package, kernel_cache(), Path(job).parent],
    )
    environment = {
        **os.environ,
        "HOME": "/nonexistent",
        "XDG_CACHE_HOME": str(kernel_cache().resolve().parents[1]),
        scratch.SCRATCH_VARIABLE: str(place),
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
