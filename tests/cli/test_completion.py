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
from blklab.cli.reference.completion import complete, completion_of, completion_script
from blklab.cli.reference.tree import all_commands, spellings_of
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
    ("blklab analyse mine", set()),
    ("blklab compare --order=by", {"--order=by-scheduler"}),
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


def _offered(line: str) -> set[str]:
    """Values offered for a line that ends here, without files."""
    words = line.split(" ")[1:]
    items = completion_of("zsh").get_completions(words[:-1], words[-1])
    return {item.value for item in items if item.type == "plain"}


def test_what_fits_is_offered(
    surroundings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, surroundings[name])
    monkeypatch.delenv("BLKLAB_STORE", raising=False)
    monkeypatch.delenv("BLKLAB_KERNELS", raising=False)
    monkeypatch.chdir(tmp_path)
    for line, offered in CASES:
        assert _offered(line) == offered, line


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


IN_SHELLS = [
    ("blklab kernel b", {"build", "bisect"}),
    ("blklab run sim:hdd", {"sim:hdd", "sim:hdd-7200"}),
    ("blklab analyse mine", {"mine.fio"}),
]


def test_bash_offers_what_fits(surroundings: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "try.bash"
    lines = [completion_script("bash")]
    for line, _ in IN_SHELLS:
        lines.append(f"COMP_LINE='{line}' COMP_POINT={len(line)} COMP_WORDBREAKS=' '")
        lines.append('_blklab_completion blklab; printf "%s\\n" "${COMPREPLY[@]}" ==')
    script.write_text("\n".join(lines))
    found = _output([_shell("bash"), str(script)], surroundings, tmp_path).split("==\n")
    for (line, offered), answer in zip(IN_SHELLS, found, strict=False):
        assert set(answer.split()) == offered, line


@pytest.mark.parametrize(
    ("line", "breaks", "offered"),
    [
        ("blklab run sim:hdd-", " \t:=", "plain,hdd-7200"),
        ("blklab run sim:hdd-", " \t", "plain,sim:hdd-7200"),
        ("blklab compare --order=by", " \t:=", "plain,by-scheduler"),
        ("blklab compare --goal iop", " \t:=", "plain,iops="),
    ],
)
def test_bash_replaces_what_follows_a_break(
    line: str, breaks: str, offered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_LINE", line)
    monkeypatch.setenv("COMP_WORDBREAKS", breaks)
    assert [one for one in complete("bash_complete").splitlines() if one.startswith("plain")] == [offered]


def test_fish_offers_what_fits(surroundings: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "try.fish"
    tries = [f"complete -C '{line}'\necho ==\n" for line, _ in IN_SHELLS]
    script.write_text(completion_script("fish") + "".join(tries))
    found = _output([_shell("fish"), "--no-config", str(script)], surroundings, tmp_path).split("==\n")
    for (line, offered), answer in zip(IN_SHELLS, found, strict=False):
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


def test_the_scripts_parse(tmp_path: Path) -> None:
    for name in SHELLS:
        path = tmp_path / f"script.{name}"
        path.write_text(completion_script(name))
        if shutil.which(name) is not None:
            subprocess.run([name, "-n", str(path)], check=True, capture_output=True)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert capsys.readouterr().out.strip() == completion_script(shell).strip()


def test_every_command_and_flag_is_offered() -> None:
    for node in all_commands():
        line = f"{node.usage} "
        assert set(node.subcommands) <= _offered(line), line
        flags = {max(spellings_of(flag), key=len) for flag in node.flags} - {"-h"}
        assert flags <= _offered(f"{line}--"), line


@pytest.mark.parametrize("instruction", ["bash_complete", "fish", "sh_complete", "zsh_source", "_"])
def test_what_no_shell_asks_is_answered_by_nothing(
    instruction: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_BLKLAB_COMPLETE", instruction)
    monkeypatch.delenv("COMP_LINE", raising=False)
    assert run(["compare"]) == 0
    captured = capsys.readouterr()
    assert (captured.out.strip(), captured.err) == ("", "")


def test_a_store_that_cannot_be_read_offers_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "damaged.sqlite").write_text("no database")
    for store in ("damaged.sqlite", "missing.sqlite", "postgresql://nowhere/x", "sqlite:///damaged.sqlite"):
        monkeypatch.setenv("BLKLAB_STORE", store)
        monkeypatch.chdir(tmp_path)
        assert _offered("blklab report ") == {"latest"}
