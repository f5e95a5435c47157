"""Bad input: one clear message, the documented exit code, never a traceback, nothing on standard output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from blklab.cli import COMMANDS, run
from blklab.errors import ExitCode

GOOD_JOB = "[r]\nrw=randread\nbs=4k\ndirect=1\nnumber_ios=50\n"
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _in_a_folder_with_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.fio").write_text(GOOD_JOB)
    (tmp_path / "odd.fio").write_text("[r]\nrw=randread\nbs=4k\nblub=3\nnumber_ios=5\n")
    (tmp_path / "syntax.fio").write_text("[r]\nrw=randread\nbs=4k\n[]\nnumber_ios=5\n")
    (tmp_path / "command.fio").write_text("[r]\nrw=read\nexec_prerun=rm -rf /\nnumber_ios=5\n")
    (tmp_path / "empty.fio").write_text("")
    (tmp_path / "binary.fio").write_bytes(b"[r]\nrw=\xff\xfe\n")
    (tmp_path / "focus.fio").write_text("; focus: nobody\n" + GOOD_JOB)
    (tmp_path / "decide.fio").write_text("; decide-by: speed\n" + GOOD_JOB)
    (tmp_path / "spec.toml").write_text('target = "sim:fixed"\nshedulers = ["none"]\n')
    (tmp_path / "no-target.toml").write_text("targets = []\n")
    (tmp_path / "torn.toml").write_text('target = "sim:')
    with (tmp_path / "large.fio").open("wb") as large:
        large.truncate((16 << 20) + 1)
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    for name in ("link.html", "explain.html", "playground.html"):
        (tmp_path / name).symlink_to(tmp_path / "good.fio")
    (tmp_path / "bad-profile.toml").write_text(
        'name = "bad"\nsummary = "bad"\nkind = "fixed"\nlatency = "-3us"\n'
    )


CASES = [
    # arguments, exit code, what the message must name
    (["compare", "qumu:x"], 2, "qumu"),
    (["compare", "sim:hdd-7201"], 2, "hdd-7201"),
    (["compare", "sim:fixed,latncy=3us"], 2, "latncy"),
    (["compare", "sim:fixed,latency=soon"], 2, "latency"),
    (["compare", "sim:./nowhere.toml"], 2, "nowhere.toml"),
    (["compare", "sim:./bad-profile.toml"], 2, "latency"),
    (["compare", "sim:fixed", "-s", "none,deadlin"], 2, "deadlin"),
    (["compare", "sim:fixed", "-s", "none"], 2, "two schedulers"),
    (["compare", "sim:fixed", "-s", "none,none"], 2, "listed twice"),
    (["compare", "sim:fixed", "-s", "none,deadline:fifo_batsch=3"], 2, "fifo_batsch"),
    (["compare", "sim:fixed", "-s", "none,deadline:fifo_batch=-3"], 2, "fifo_batch"),
    (["compare", "sim:fixed", "-s", "none,deadline", "--queue", "nr_requests=0"], 2, "nr_requests"),
    (["compare", "sim:fixed", "-s", "none,deadline", "--queue", "colour=red"], 2, "colour"),
    (["compare", "sim:fixed", "--queue", "nr_requests"], 2, "KEY=VALUE"),
    (["compare", "sim:fixed", "-w", "random-raed"], 2, "random-raed"),
    (["compare", "sim:fixed", "-w", "missing.fio"], 2, "missing.fio"),
    (["compare", "sim:fixed", "-w", "odd.fio"], 2, "odd.fio:4"),
    (["compare", "sim:fixed", "-w", "syntax.fio"], 2, "syntax.fio:4"),
    (["compare", "sim:fixed", "-w", "command.fio"], 2, "command.fio:3"),
    (["compare", "sim:fixed", "-w", "empty.fio"], 2, "empty.fio"),
    (["compare", "sim:fixed", "-w", "binary.fio"], 2, "binary.fio:2"),
    (["compare", "sim:fixed", "-w", "focus.fio"], 2, "focus.fio:1"),
    (["compare", "sim:fixed", "-w", "decide.fio"], 2, "'speed'"),
    (["compare", "sim:fixed", "--blocks", "3", "--budget", "1m"], 2, "both"),
    (["compare", "sim:fixed", "--blocks", "none"], 2, "--blocks"),
    (["compare", "sim:fixed", "--budget", "soon"], 2, "soon"),
    (["compare", "sim:fixed", "--confidence", "1.5"], 2, "confidence"),
    (["compare", "--spec", "spec.toml"], 2, "shedulers"),
    (["compare", "sim:fixed", "-w", "good.fio", "--html", "good.fio/x.html"], 3, "good.fio/x.html"),
    (["compare", "sim:fixed", "-w", "good.fio", "--json", "."], 3, "cannot be written"),
    (["run", "sim:fixed", "good.fio", "--timeline", "."], 3, "cannot be written"),
    (["fidelity", "--cells", "fixed*", "--page", "nowhere.md"], 2, "nowhere.md"),
    (["fidelity", "--cells", "fixed*", "--against", "binary.fio"], 2, "binary.fio"),
    (["fidelity", "--host", "--random", "3"], 2, "--random"),
    (["fidelity", "--host", "--blk-mq"], 2, "--blk-mq"),
    (["fidelity", "--blk-mq", "--random", "3"], 2, "--blk-mq"),
    (["fidelity", "--host", "--jobs", "2"], 2, "--jobs"),
    (["fidelity", "--host", "--list", "--cells", "9x9*"], 2, "9x9*"),
    (["compare", "sim:fixed", "--machine", "ordinray"], 2, "ordinray"),
    (["compare", "/tmp", "--machine", "ordinary"], 2, "--machine"),
    (["compare", "uml:fixed", "--machine", "ordinary", "--time", "host"], 2, "--machine"),
    (["compare", "--spec", "torn.toml"], 2, "torn.toml"),
    (["compare", "--spec", "no-target.toml"], 2, "no target"),
    (["compare", "--spec", "nowhere.toml"], 2, "nowhere.toml"),
    (["compare", "--resume", "nothing"], 2, "nothing"),
    (["compare", "/nowhere/at/all"], 2, "/nowhere/at/all"),
    (["compare", "sim:fixed", "--frobnicate"], 2, "--frobnicate"),
    (["run", "sim:fixed", "good.fio", "--tunable", "a=1"], 2, "--scheduler"),
    (["run", "sim:fixed", "good.fio", "--scheduler", "none", "--seed", "-1"], 2, "--seed"),
    (["report", "nothing"], 2, "nothing"),
    (["report", "latest", "--store", "good.fio"], 6, "good.fio"),
    (["runs", "--store", "nonsense://"], 6, "nonsense"),
    (["frobnicate"], 2, "frobnicate"),
    (["apply", "bfq", "--device", "/dev/nowhere"], 2, "/dev/nowhere"),
    (["apply", "bfq:nr_requests=64;id", "--device", "."], 2, "'nr_requests=64;id'"),
    (["compare", "sim:fixed", "--sweep", "bfq:slice_idle=0,2;id"], 2, "'2;id'"),
    (["compare", "sim:fixed", "--queue", "nr_requests=64;id"], 2, "'64;id'"),
    (["compare", "sim:fixed", "--cgroup", "b:io.max=rbps=1;id"], 2, "'rbps=1;id'"),
    (
        ["run", "sim:fixed", "good.fio", "--cgroup", "b:io.max=rbps=1"],
        2,
        "no job joins the control group 'b'",
    ),
    (["compare", "sim:fixed", "--change", "1s nr_requests=$(id)"], 2, "'$(id)'"),
    # What an unset variable leaves.
    (["compare", ""], 2, "the target is empty"),
    (["run", "", "good.fio"], 2, "the target is empty"),
    (["apply", "bfq", "--device", ""], 2, "no path is named"),
    (["report", ""], 2, "no run is named"),
    (["runs", "--store", ""], 2, "--store is empty"),
    (["compare", "sim:fixed", "-w", "good.fio", "--html", ""], 2, "has no name"),
    # Numbers that are none, or beyond all bounds.
    (["analyse", "--confidence", "nan", "good.fio"], 2, "nan is not a number"),
    (["fleet", "--margin", "nan"], 2, "nan is not a number"),
    (["compare", "sim:fixed", "--margin=nan"], 2, "nan is not a number"),
    (["compare", "sim:fixed", "--seed", str(1 << 53)], 2, "0<=x<=9007199254740991"),
    (["compare", "sim:fixed", "--runtime=99999999999999999999s"], 2, "too long"),
    (["compare", "sim:fixed", f"--budget={'9' * 400}h"], 2, "too long"),
    (["compare", f"loop:{'9' * 400}p"], 2, "too large"),
    (["compare", "sim:fixed", "--design", "switchback", "-n", "3"], 2, "error: the design switchback has"),
    # Files that are none.
    (["compare", "sim:fixed", "-w", "A" * 300], 2, "there is no workload"),
    (["compare", "A" * 300], 2, "name too long"),
    (["compare", "sim:fixed", "-w", "/dev/zero"], 2, "is a device, not a file"),
    (["compare", "--spec", "/dev/zero"], 2, "is a device, not a file"),
    (["compare", "sim:./zero.toml"], 2, "is a device, not a file"),
    (["compare", "sim:fixed", "-w", "large.fio"], 2, "more than 16 MiB"),
    (["explain", "--from", "/dev/zero", "--html", "x.html"], 6, "is a device, not a file"),
    (["analyse", "/dev/zero"], 6, "is a device, not a file"),
    # Outputs.
    (["compare", "sim:fixed", "-w", "good.fio", "--html", "missing/x.html"], 3, "missing does not exist"),
    (["compare", "sim:fixed", "-w", "good.fio", "--json", "link.html"], 3, "symbolic link"),
    (["explain", "sim:fixed", "good.fio"], 3, "explain.html: cannot be written: is a symbolic link"),
    (["explain", "sim:fixed", "good.fio", "--window", "100h-101h", "--html", "x.html"], 2, "ends at"),
    (["playground"], 3, "playground.html: cannot be written: is a symbolic link"),
]


@pytest.mark.parametrize(("arguments", "code", "named"), CASES, ids=lambda value: str(value)[:60])
def test_one_message_and_the_documented_code(
    arguments: list[str], code: int, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, "--quiet"] if arguments[0] in {"compare", "run"} else arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert named in captured.err
    assert "Traceback" not in captured.err
    assert "defect" not in captured.err
    assert Path("good.fio").read_text() == GOOD_JOB
    assert not Path("missing").exists()


def test_a_directory_that_is_gone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert run(["targets"]) == ExitCode.REQUIREMENT
    assert "the current directory does not exist any more" in capsys.readouterr().err


def test_a_defect_is_still_called_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error about a path that nobody gave is no mistake of the request."""

    def fails(*_arguments: object, **_keywords: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "/sys/internal")

    monkeypatch.setattr("blklab.cli.compare.build_specs", fails)
    monkeypatch.delenv("BLKLAB_DEBUG", raising=False)
    assert run(["compare", "sim:fixed"]) == ExitCode.INTERNAL
    assert "a defect in blklab: FileNotFoundError" in capsys.readouterr().err
    monkeypatch.setattr("blklab.cli.compare.build_specs", lambda *_: Path("A" * 300).stat())
    assert run(["compare", "A" * 300]) == ExitCode.USAGE


def test_a_message_forges_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "sim:\x1b]0;own\x07\nhint: curl x | sh"]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert r"\x1b]0;own\x07\nhint: curl x | sh" in said
    assert len(said.splitlines()) == 2


def test_a_store_that_is_damaged_is_left_as_it_is(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before = (tmp_path / "good.fio").read_bytes()
    assert run(["runs", "--store", "good.fio"]) == ExitCode.DATA
    assert (tmp_path / "good.fio").read_bytes() == before


def _not_root(arguments: list[str]) -> list[str]:
    """The command as a user who is not root: for root, in a user namespace where it is nobody."""
    command = [sys.executable, "-m", "blklab", *arguments]
    if os.geteuid() != 0:
        return command
    trial = subprocess.run(["unshare", "--user", "true"], capture_output=True, check=False)
    if trial.returncode != 0:
        pytest.skip("running as root, and this kernel has no user namespaces to run as another user")
    return ["unshare", "--user", *command]


def test_without_root_a_real_disk_is_refused() -> None:
    refused = subprocess.run(_not_root(["compare", "/", "-q"]), capture_output=True, text=True, check=False)
    assert refused.returncode == ExitCode.REQUIREMENT, refused.stderr
    assert refused.stderr.startswith("error: ")
    assert "root" in refused.stderr


def test_without_root_and_target_a_simulated_disk_answers_and_that_is_said() -> None:
    arguments = _not_root(["compare", "-w", "good.fio", "-s", "none,mq-deadline", "-q"])
    simulated = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert simulated.returncode == 0, simulated.stderr
    assert "the answer is for a simulated disk, sim:" in simulated.stderr


def test_every_command_has_a_help_page(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        assert run([name, "--help"]) == 0
        assert f"Usage: blklab {name}" in capsys.readouterr().out


def test_the_list_of_commands_is_quick() -> None:
    """Help and version import no command: numpy alone would take longer than everything else."""
    for arguments in (["--help"], ["--version"]):
        assert _imported_by(f"from blklab.cli import run; assert run({arguments!r}) == 0").isdisjoint(
            {"numpy", "pydantic", "blklab._core"}
        )
    heavy = _imported_by("import blklab.cli.analyse")
    assert "numpy" in heavy
    assert "scipy.stats" not in heavy, "as long again, which only series of five runs need"


def test_a_tab_on_flags_waits_for_no_run() -> None:
    """The flags of a command are known without what it does: numpy and the store take seconds."""
    names = ["compare", "run", "advise", "tune", "study run", "kernel build", "kernel judge", "kernel module"]
    names += ["kernel torture", "kernel bisect"]
    program = f"""
import os
from blklab.cli.reference.completion import complete
for name in {names}:
    os.environ.update(COMP_LINE=f"blklab {{name}} --", COMP_WORDBREAKS=" :=")
    assert "plain,--json" in complete("bash_complete"), name
"""
    heavy = {"numpy", "scipy", "pandas", "sqlalchemy", "asyncio", "blklab.experiment.pipeline"}
    assert _imported_by(program).isdisjoint(heavy)


def _imported_by(program: str) -> set[str]:
    listing = f"{program}\nimport sys\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_the_documented_exit_codes_are_the_real_ones() -> None:
    page = (ROOT / "docs" / "reference" / "exit-codes.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| (\d+) \| (\w+) \|", page, flags=re.MULTILINE))
    assert documented == {str(code.value): code.name for code in ExitCode}


@pytest.mark.parametrize(
    ("output", "code", "said"),
    [("| head -n 1", 0, ""), ("> /dev/full", 3, "No space left on device"), (">&-", 0, "")],
)
def test_standard_output_that_takes_nothing(output: str, code: int, said: str) -> None:
    program = f"set -o pipefail; {sys.executable} -m blklab workloads --show {output}"
    answer = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert answer.returncode == code, answer.stderr
    assert said in answer.stderr
    assert answer.stderr.count("\n") == bool(said)


@pytest.mark.parametrize(
    "words", [["workloads"], ["workloads", "--json"], ["--help"], ["completion", "bash"]]
)
def test_a_reader_that_has_left_is_no_error(words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "blklab", *words]
    answer = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (answer.returncode, answer.stderr) == (0, "")
