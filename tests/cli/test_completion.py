"""Completion scripts, each in its shell."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from blklab.cli import run
from blklab.cli.completion import SHELLS
from blklab.cli.reference.completion import bash, fish, zsh
from blklab.cli.reference.completion.entries import command_entries
from blklab.records.store import Store
from blklab.testing.experiments import make_experiment

CASES = [
    ("blklab comp", {"compare", "completion"}),
    ("blklab kernel b", {"build", "bisect"}),
    ("blklab compare --prec", {"--precondition"}),
    ("blklab compare sim:hdd", {"sim:hdd", "sim:hdd-7200"}),
    ("blklab compare sim:samsung-ssd-980-pro-1", {"sim:samsung-ssd-980-pro-1tb"}),
    ("blklab compare -s none,bf", {"none,bfq"}),
    ("blklab compare --order by", {"by-scheduler"}),
    ("blklab compare --goal fair", {"fairness"}),
    ("blklab run sim:fixed cached", {"cached-read"}),
    ("blklab run --seed 3 sim:fixed cached", {"cached-read"}),
    ("blklab run sim:fixed --scheduler kyb", {"kyber", "kyber-4.12"}),
    ("blklab run sim:fixed -s kyb", {"kyber", "kyber-4.12"}),
    ("blklab calibrate d", {"disk"}),
    ("blklab kernel judge --kernel stock,pat", {"stock,patched"}),
    ("blklab study run ioni", {"ionice"}),
    ("blklab study run ionice --on s", {"sim"}),
    ("blklab kernel build --patch ky", {"kyber-busy-wait"}),
    ("blklab completion f", {"fish"}),
    ("blklab report 2026", {"20261121-0231-k3f9"}),
    ("blklab compare --kernel stock,pat", {"stock,patched"}),
    ("blklab analyse mine", {"mine.fio"}),
    ("blklab compare --seed ", set()),
]
HANG_SECONDS = 60


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    """An environment whose `blklab` is ours, in a folder with a file, with a stored run and a kernel."""
    (tmp_path / "mine.fio").write_text("")
    (tmp_path / "cache" / "blklab" / "kernels" / "names" / "patched").mkdir(parents=True)
    program = tmp_path / "bin" / "blklab"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m blklab "$@"\n')
    program.chmod(0o755)
    _store_a_run(tmp_path / "data" / "blklab" / "runs.sqlite")
    environment = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
    }
    return environment | {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}


def _store_a_run(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with Store.opened(str(path)) as store:
        store.begin(make_experiment().model_copy(update={"run_id": "20261121-0231-k3f9", "samples": []}))


def _shell(name: str) -> str:
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    return program


def _output(arguments: list[str], environment: dict[str, str], folder: Path) -> str:
    done = subprocess.run(
        arguments,
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_SECONDS,
    )
    assert done.stderr == ""
    return done.stdout


def test_bash_offers_what_fits(surroundings: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "try.bash"
    lines = [bash.script()]
    for line, _ in CASES:
        lines.append(f"COMP_LINE='{line}' COMP_POINT={len(line)} COMP_WORDS=(blklab) COMP_WORDBREAKS=' '")
        lines.append('_blklab; printf "%s\\n" "${COMPREPLY[@]}" ==')
    script.write_text("\n".join(lines))
    found = _output([_shell("bash"), str(script)], surroundings, tmp_path).split("==\n")
    for (line, offered), answer in zip(CASES, found, strict=False):
        assert set(answer.split()) == offered, line


def test_fish_offers_what_fits(surroundings: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "try.fish"
    tries = [f"complete -C '{line}'\necho ==\n" for line, _ in CASES]
    script.write_text(fish.script() + "".join(tries))
    found = _output([_shell("fish"), "--no-config", str(script)], surroundings, tmp_path).split("==\n")
    for (line, offered), answer in zip(CASES, found, strict=False):
        assert {one.split("\t")[0] for one in answer.splitlines()} == offered, line


TYPED = [
    ("compare --prec\t", "--precondition"),
    ("compare sim:hdd-\t", "sim:hdd-7200"),
    ("compare -s none,bf\t", "none,bfq"),
    ("run sim:fixed cached\t", "cached-read"),
    ("kernel bu\t", "kernel build"),
    ("study run ioni\t", "ionice"),
    ("report 2026\t", "20261121-0231-k3f9"),
]


@pytest.mark.parametrize(
    ("shell", "arguments", "start"),
    [
        ("bash", ["--norc", "--noprofile", "-i"], 'eval "$(blklab completion bash)"'),
        ("zsh", ["-f", "-i"], 'autoload -Uz compinit && compinit -D -u && eval "$(blklab completion zsh)"'),
    ],
)
def test_a_person_at_a_terminal(
    shell: str, arguments: list[str], start: str, surroundings: dict[str, str], tmp_path: Path
) -> None:
    program = _shell(shell)
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover - the shell
        os.chdir(tmp_path)
        os.execve(program, [shell, *arguments], surroundings)  # noqa: S606 - a shell is what is tried
    try:
        _typed(terminal, "PS1='ready> '; unset zle_bracketed_paste; echo be''gin\n", r"begin\r")
        _typed(terminal, f"{start}; echo do''ne\n", r"done\r")
        for typed, completed in TYPED:
            # Ctrl-U leaves nothing of the line before the next one is typed.
            _typed(terminal, f"blklab {typed}", re.escape(completed))
            _typed(terminal, "\x15echo ne''xt\n", r"next\r")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def _typed(terminal: int, text: str, expected: str) -> None:
    """Types, and waits for the terminal's output."""
    os.write(terminal, text.encode())
    shown, end = "", time.monotonic() + HANG_SECONDS
    while re.search(expected, shown) is None:
        assert time.monotonic() < end, f"{text!r} shows {shown!r}"
        if select.select([terminal], [], [], 0.5)[0]:
            shown += os.read(terminal, 4096).decode(errors="replace")


def test_zsh_and_the_others_parse(tmp_path: Path) -> None:
    for name, text in (("bash", bash.script()), ("zsh", zsh.script()), ("fish", fish.script())):
        path = tmp_path / f"script.{name}"
        path.write_text(text)
        if shutil.which(name) is not None:
            subprocess.run([name, "-n", str(path)], check=True, capture_output=True)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_flag_is_offered(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    for entry in command_entries():
        for name in entry.subcommands:
            assert name in script
        for flag in entry.flags:
            long = max(flag.spellings, key=len)
            assert (f"-l {long[2:]}" if shell == "fish" else long) in script


def test_names_are_looked_up_quickly(surroundings: dict[str, str], tmp_path: Path) -> None:
    program = (
        "import sys; from blklab.cli import run; run(['completion', '--names', 'runs']);"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=surroundings, capture_output=True, text=True, check=True
    )
    assert done.stdout == "20261121-0231-k3f9\n"
    assert {"numpy", "sqlalchemy", "pydantic", "blklab._core"}.isdisjoint(done.stderr.split())


def test_a_store_that_cannot_be_read_offers_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "damaged.sqlite").write_text("no database")
    for store in ("damaged.sqlite", "missing.sqlite", "postgresql://nowhere/x", "sqlite:///damaged.sqlite"):
        monkeypatch.setenv("BLKLAB_STORE", store)
        monkeypatch.chdir(tmp_path)
        assert run(["completion", "--names", "runs"]) == 0
        assert capsys.readouterr().out.strip() == ""
