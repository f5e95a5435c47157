"""Commands in guests: real programs, started from the modelled disk in virtual time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from blklab.cli import run
from blklab.records.store import Store

DEVICE = "uml:fixed,latency=200us,depth=32,jitter=40us"
BESIDE = "[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=4\nsize=16m\nnumber_ios=50\n"

pytestmark = pytest.mark.usefixtures("real_guest", "mkfs")


@pytest.fixture(scope="module")
def mkfs() -> None:
    if shutil.which("mkfs.ext4", path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
        pytest.skip("there is no mkfs.ext4")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BLKLAB_STORE", str(tmp_path / "store.db"))
    return tmp_path / "store.db"


def _measured(capsys: pytest.CaptureFixture[str], *arguments: str, target: str = DEVICE) -> dict[str, Any]:
    assert run(["run", target, *arguments, "--scheduler", "none", "--json", "-", "-q"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def _refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["run", DEVICE, *arguments, "--scheduler", "none", "-q"]) != 0
    return capsys.readouterr().err


def _command(document: dict[str, Any]) -> dict[str, Any]:
    part: dict[str, Any] = document["jobs"][0]["command"]
    return part


def test_a_cold_program_comes_from_the_disk_and_a_warm_one_from_memory(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cold = _measured(capsys, "--command", "ls /", "--cold")
    again = _measured(capsys, "--command", "ls /", "--cold")
    assert cold == again
    ls = Path(shutil.which("ls") or "/bin/ls").resolve().stat().st_size
    assert _command(cold)["bytes_read"] > ls
    assert _command(cold)["wall_seconds"] > 0.0002
    assert _command(cold)["major_faults"] > 0
    warm = _measured(capsys, "--command", "ls /")
    assert (_command(warm)["bytes_read"], _command(warm)["major_faults"]) == (0, 0)
    assert _command(warm)["wall_seconds"] < _command(cold)["wall_seconds"]


def test_a_slower_disk_starts_a_program_more_slowly(capsys: pytest.CaptureFixture[str]) -> None:
    walls = [
        _command(_measured(capsys, "--command", "ls /", "--cold", target=f"uml:fixed,latency={each}us"))
        for each in (100, 1000)
    ]
    fast, slow = (wall["wall_seconds"] for wall in walls)
    assert walls[0]["bytes_read"] == walls[1]["bytes_read"]
    assert 5 < slow / fast < 10.5


def test_a_set_up_here_and_one_in_the_guest_leave_files(capsys: pytest.CaptureFixture[str]) -> None:
    document = _measured(
        capsys,
        "--set-up",
        "head -c 300000 /dev/zero | tr '\\0' x > made; printf 'x=1\\n' > $BLKLAB_DIR/script",
        "--repeat-set-up",
        "cat made made > {dir}/twice; test -e repeated && exit 1; echo > repeated",
        "--command",
        '. ./script; test $x = 1 && test "$(wc -c < twice)" = 600000 && cat twice',
        "--cold",
    )
    assert 600_000 < _command(document)["bytes_read"] < 4_000_000


def test_a_load_beside_a_command_slows_it_and_ends_with_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    job = tmp_path / "beside.fio"
    job.write_text(BESIDE)
    disk = "uml:hdd-7200"
    alone = _command(_measured(capsys, "--command", "ls /", "--cold", target=disk))
    beside = _measured(capsys, "--command", "ls /", "--cold", "--beside", str(job), target=disk)
    command = _command(beside)
    assert command["wall_seconds"] > 1.3 * alone["wall_seconds"]
    assert (command["bytes_read"], command["cpu_system_seconds"]) == (None, None)
    load = beside["jobs"][1]
    # The load goes on from the lead before the command to the command's end, whatever its job file says.
    assert load["ios"] > 50
    assert load["runtime_seconds"] == pytest.approx(2 + command["wall_seconds"], abs=0.1)


@pytest.mark.usefixtures("store")
def test_kernels_and_schedulers_are_compared_by_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", DEVICE, "--command", "cat /etc/passwd", "--cold", "-s", "none,kyber"]
    arguments += ["--kernel", "stock", "--blocks", "1", "--json", "-", "-q"]
    assert run(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert {choice["label"] for choice in document["schedulers"]} == {"none@stock", "kyber@stock"}


def test_nothing_that_a_command_leaves_behind_lives_on(
    capsys: pytest.CaptureFixture[str], store: Path
) -> None:
    arguments = ["compare", DEVICE, "--command", "sleep 1000 & (sleep 2000 &) ; sleep 0.5"]
    assert run([*arguments, "-s", "none,kyber", "--blocks", "1", "-q"]) == 0
    capsys.readouterr()
    with Store.opened(str(store)) as opened:
        sample, _ = opened.load("latest").samples
    assert 0.5e9 <= sample.jobs[0].runtime_ns < 0.6e9
    assert sample.engine["simulated_ns"] < 1e9
    assert sample.engine["page_cache"] == "warm"
    assert len(sample.engine["files"]["digest"]) == 64


@pytest.mark.parametrize(
    ("line", "options", "said"),
    [
        ("no-such-program -x", [], "there is no program no-such-program for the guest"),
        ("./missing", [], "there is no program ./missing"),
        ("./script", ["--set-up", "printf '#!/no/interpreter\\n' > script"], "interpreter /no/interpreter"),
        ("ls", ["--guest-file", "/no/such/file"], "there is no /no/such/file"),
        ("ls", ["--guest-file", "relative"], "not an absolute path"),
        ("ls", ["--generator", "fio"], "fio makes the load only of job files"),
        ("ls", ["--set-up", "head -c 300M /dev/zero > big"], "--memory"),
        ("ls", ["--set-up", "echo broken >&2; exit 3"], "its exit code is 3: broken"),
        ("ls", ["--set-up", "mkfifo pipe"], "cannot be copied into a guest"),
        ("echo why >&2; exit 4", ["--cold"], "its exit code is 4: why"),
        ("sleep 5", ["--cold", "--time-limit", "1s"], "exceeded its time limit"),
        ("kill -9 $$", ["--cold"], "killed by signal 9"),
        ("echo 'socket: Function not implemented' >&2; false", ["--cold"], "no network"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(
    capsys: pytest.CaptureFixture[str], line: str, options: list[str], said: str
) -> None:
    assert said in " ".join(_refused(capsys, "--command", line, *options).split())
