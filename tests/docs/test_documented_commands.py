"""Every command that a page or a help text prints: each is understood, and each that can runs for real.

A command that needs root, a guest kernel, a network or a long time is only read, or run with ``--dry-run``.
The reason for a skip is printed with ``-rs``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
from documented_commands import DocumentedCommand, commands_of_page, documented_commands
from documented_surroundings import PLACEHOLDERS, furnish, store_runs, write_timeline
from test_links import ROOT

from blklab import shipped
from blklab.cli import run as run_command_line
from blklab.errors import ExitCode
from blklab.guests.kernels.cache import cache_folder
from blklab.spec.request import SpecValues, build_specs

COMMANDS = documented_commands()
KERNELS_CACHE = cache_folder("kernels")
"""Of the user who runs the tests; other commands here do not see it."""
NOT_BUILT = {"stock"} - {path.name for path in KERNELS_CACHE.glob("names/*")}
PLAYGROUND = Path(shipped.__file__).with_name("blkplay.wasm")
EACH = pytest.mark.parametrize("documented", COMMANDS, ids=lambda one: f"{one.place} {one.text}"[:90])
_OWN_PATH = re.compile(r"^(?:/srv|/var/lib|/mnt|~)")
_VALUED = ("--blocks", "-n", "--budget", "--runtime", "--trials", "--rounds")
"""Flags that make a run longer, and are replaced."""
_NEEDS = {
    "record": "records as root",
    "top": "reads the kernel's tables as root",
    "fidelity": "needs a guest kernel",
    "calibrate processor": "measures for minutes as root",
    "kernel build": "compiles a kernel",
    "kernel judge": "needs guest kernels",
    "kernel torture": "needs guest kernels; tests/labs/test_torture.py runs one",
    "kernel module": "needs the running kernel's headers; tests/modules builds one",
    "kernel bisect": "needs a kernel's repository",
    "kernel show": "needs a guest kernel",
    "kernel remove": "needs a guest kernel",
    "study run": "takes a minute; tests/labs/studies runs each",
    "apply": "changes a disk's settings; tests/cli/test_apply.py runs it",
}
"""Why a command is only read, by its name."""
_READERS_OWN = {
    r"--cluster": "needs a cluster",
    r"/dev/(?!shm)": "names a disk of the reader's",
    r"trace:(?!build\.blkrecord|FILE)|trace\.(?!blkrecord)": "names a recording of the reader's",
    r"(?:FOLDER|etcd\.txt)$": "names files of the reader's",
    r"--resume|follow\.toml": "continues the reader's own run",
    r".*\$": "has a variable of the shell",
    r"fig-\d|table-\d|raw$|physical_device/|docker\.log|bench-results|bluestore": "reads a study's files",
    r".*@(?!stock)": "needs a module that was built before",
}
"""Likewise, by a word of it."""
_CODES = {
    # Files of the reader's have no more than their form in common with those of the test.
    "analyse": (ExitCode.OK, ExitCode.PARTIAL),
    # The runs of the test are on models.
    "fleet": (ExitCode.OK, ExitCode.USAGE, ExitCode.REFUSED),
    "runs": (ExitCode.OK, ExitCode.SLOWER),
    "where": (ExitCode.OK, ExitCode.PARTIAL),
}
"""Exit codes that are right, where there are several."""


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documented")
    furnish(folder)
    store_runs(folder / "runs.sqlite")
    write_timeline(folder)
    return folder


@pytest.fixture
def folder(furnished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the files, as the working directory, with a store of its own."""
    here = tmp_path / "work"
    shutil.copytree(furnished, here, symlinks=True)
    data = tmp_path / "data" / "blklab"
    data.mkdir(parents=True)
    (here / "runs.sqlite").rename(data / "runs.sqlite")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(here))
    monkeypatch.chdir(here)
    return here


def placed(documented: DocumentedCommand) -> list[str]:
    """The command's words, with those that stand for a reader's own replaced."""
    own = {"FILE": "a.txt"} if "analyse" in documented.words else {}
    return [own.get(word) or PLACEHOLDERS.get(word, word) for word in documented.words]


class _UnderstoodError(BaseException):
    """Raised where a command would begin to work. No `Exception`, since the command line reports those."""


def _stop(*_: Any, **__: Any) -> None:
    raise _UnderstoodError


READS_REQUESTS = {"compare": "compare", "run": "running", "tune": "tuning"}
"""The module of `blklab.cli` in which a command makes experiments of its words."""


@EACH
def test_it_is_understood(
    documented: DocumentedCommand, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flags, values and, of experiments, targets, workloads, schedulers and their combination."""
    assert folder.is_dir()
    words = placed(documented)
    reads = READS_REQUESTS.get(name_of(words))
    if reads is not None and not {"--resume", "--spec"} & set(words):
        module = import_module(f"blklab.cli.{reads}")

        def checked(values: SpecValues) -> None:
            assert build_specs(values)
            raise _UnderstoodError

        monkeypatch.setattr(module, "build_specs", checked)
    else:
        real = click.Command.invoke

        def invoke(command: click.Command, context: click.Context) -> Any:
            return real(command, context) if isinstance(command, click.Group) else _stop()

        monkeypatch.setattr(click.Command, "invoke", invoke)
    try:
        code = run_command_line(words)
    except _UnderstoodError:
        return
    assert code == ExitCode.OK, documented.text


@dataclass(frozen=True)
class Trial:
    """The way in which a command is tried for real."""

    words: tuple[str, ...]
    codes: tuple[int, ...] = (ExitCode.OK,)


def name_of(words: list[str]) -> str:
    """The command's name: ``kernel build`` of a group."""
    return " ".join(words[:2] if words[:1] and words[0] in ("kernel", "study", "calibrate") else words[:1])


def trial_of(documented: DocumentedCommand, folder: Path) -> Trial:
    """A short trial of the command; skips the test where there is none."""
    words = [_own_path(word, folder) for word in placed(documented)]
    name = name_of(words)
    if name in _NEEDS:
        pytest.skip(_NEEDS[name])
    for pattern, reason in _READERS_OWN.items():
        if any(re.match(pattern, word) for word in words):
            pytest.skip(reason)
    if any(word.startswith("uml:") for word in words):
        return _in_a_guest(name, words)
    if name in ("compare", "run", "tune", "iocost", "calibrate disk"):
        return _short_experiment(name, words)
    if name == "advise":
        return _advice(words)
    if name == "restore":
        # Without it, it would restore what a killed run has left on this machine.
        return Trial((*words, *([] if "--dry-run" in words else ["--dry-run"])))
    if name == "playground" and not PLAYGROUND.is_file():
        pytest.skip("the playground's program is not built")
    if name == "analyse" and "--factor" not in words:
        # Without the flag the reader's table has one factor only.
        words = ["schedulers.csv" if word == "results.csv" else word for word in words]
    if name == "explain" and "--from" not in words and "--window" not in words:
        return Trial((*words, "--runtime", "200ms"))
    if name == "convert" and any(word.endswith(".parquet") for word in words):
        pytest.importorskip("pyarrow")
    return Trial(tuple(one for one in words if one != "--open"), _CODES.get(name, (ExitCode.OK,)))


def _in_a_guest(name: str, words: list[str]) -> Trial:
    if lacking := {*kernels_named(words), *NOT_BUILT}:
        pytest.skip(f"needs the guest kernel {', '.join(sorted(lacking))}")
    if name == "run":
        return Trial((*_without(words, _VALUED), "--runtime", "100ms", "-q"))
    # A comparison takes minutes; this reads everything, looks for the kernels and prints each step.
    return Trial((*words, *([] if "--dry-run" in words else ["--dry-run"])))


def _advice(words: list[str]) -> Trial:
    if "--for" not in words:
        pytest.skip("asks on a terminal")
    if not any(word.startswith("sim:") for word in words):
        if os.geteuid() != 0:
            pytest.skip("a disk of this machine needs root")
        words = [*words, *([] if "--dry-run" in words else ["--dry-run"])]
    return Trial(tuple(words))


def _own_path(word: str, folder: Path) -> str:
    return str(folder) if _OWN_PATH.match(word) and not word.endswith((".toml", ".c")) else word


def _short_experiment(name: str, words: list[str]) -> Trial:
    modelled = any(word.startswith("sim:") and not word.endswith(".toml") for word in words)
    if name == "tune" and modelled:
        return Trial((*words, *([] if "--dry-run" in words else ["--dry-run"])))
    if not modelled:
        if os.geteuid() != 0:
            pytest.skip("a disk of this machine needs root")
        if any(word.endswith(".toml") and not Path(word).exists() for word in words) or name == "tune":
            pytest.skip("needs a profile of the reader's disk")
        if "--spec" in words:
            pytest.skip("a description of the reader's")
        return Trial((*words, *([] if "--dry-run" in words else ["--dry-run"])))
    if name == "calibrate disk":
        return Trial((*words, "--dry-run"))
    timed = "--change" in words
    kept = _without(words, tuple(flag for flag in _VALUED if not timed or flag != "--runtime"))
    if name == "iocost":
        return Trial((*kept, "--rounds", "3", "--runtime", "100ms"))
    short = [] if timed else ["--runtime", "100ms"]
    if name == "compare":
        short += ["--blocks", "2"]
    codes = (ExitCode.OK, ExitCode.SLOWER) if "--against" in words else (ExitCode.OK,)
    if "--store" in words:
        kept = _without(kept, ("--store", "--against"))
    return Trial((*kept, *short, "-q"), codes)


def _without(words: list[str], flags: tuple[str, ...]) -> list[str]:
    kept, drops = [], False
    for word in words:
        if drops:
            drops = False
        elif word in flags:
            drops = True
        else:
            kept.append(word)
    return kept


@EACH
def test_it_runs(
    documented: DocumentedCommand,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    trial = trial_of(documented, folder)
    if any(word.startswith("uml:") for word in trial.words):
        monkeypatch.setenv("XDG_CACHE_HOME", str(KERNELS_CACHE.parents[1]))
    if "--precondition" in trial.words:
        pytest.skip("overwrites a modelled drive for minutes; tests/cli/test_purposes.py does")
    code = run_command_line(list(trial.words))
    assert code in trial.codes, capsys.readouterr().err


def test_no_command_is_missed() -> None:
    """A change of the pages' form must not leave the tests without commands."""
    by_page: dict[str, int] = defaultdict(int)
    for one in COMMANDS:
        by_page[one.page] += 1
    assert len(COMMANDS) > 250
    assert by_page["README.md"] >= 15
    assert by_page["docs/tutorial/first-verdict.md"] >= 8
    assert sum(page.startswith("docs/how-to/") for page in by_page) >= 20


_KERNEL_FLAGS = ("--kernel",)


def kernels_named(words: list[str]) -> set[str]:
    """Guest kernels that a command runs on."""
    named = set()
    for flag, value in zip(words, [*words[1:], ""], strict=True):
        if flag in _KERNEL_FLAGS:
            named |= set(value.split(","))
        if flag in ("-s", "--scheduler", "--schedulers"):
            named |= {choice.partition("@")[2].partition(":")[0] for choice in value.split(",")}
    return named - {"", "stock", "copy"}


@pytest.mark.parametrize("page", sorted({one.page for one in COMMANDS if one.page.endswith(".md")}), ids=str)
def test_a_page_builds_the_kernels_that_it_names(page: str) -> None:
    """Or the page that it links to for that: it names another page's kernel only beside a link."""
    built, text = set(), (ROOT / page).read_text("utf-8")
    linked = [ROOT / page, *_linked_pages(ROOT / page)] if "build-kernels.md" in text else [ROOT / page]
    for other in linked:
        for one in commands_of_page(other):
            if one.words[:2] in (("kernel", "build"), ("kernel", "module")) and len(one.words) > 2:
                built.add(one.words[2])
    for one in COMMANDS:
        if one.page == page:
            assert kernels_named(list(one.words)) <= built, one.text


def _linked_pages(page: Path) -> list[Path]:
    found = re.findall(r"\]\(([^)#]+\.md)", page.read_text("utf-8"))
    paths = [(page.parent / name).resolve() for name in found if not name.startswith("http")]
    return [path for path in paths if path.is_file() and path.is_relative_to(ROOT)]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_a_disk_is_calibrated_before_it_is_tuned(page: Path) -> None:
    calibrated = False
    for one in commands_of_page(page):
        words = list(one.words)
        calibrated = calibrated or words[:2] == ["calibrate", "disk"]
        if words[:1] == ["tune"] and not any(word.startswith("sim:") for word in words):
            assert calibrated or "--model" in words, one.text


def test_the_readme_calibrates_before_it_tunes() -> None:
    test_a_disk_is_calibrated_before_it_is_tuned(ROOT / "README.md")


def _shell_commands() -> list[tuple[str, str | None, str]]:
    found = []
    for one in COMMANDS:
        words = list(one.words)
        if "--command" in words and "uml:" not in one.text:
            prepared = words[words.index("--set-up") + 1] if "--set-up" in words else None
            found.append((one.place, prepared, words[words.index("--command") + 1]))
    return found


@pytest.mark.parametrize(("place", "prepared", "command"), _shell_commands())
def test_a_documented_workload_works_in_an_empty_directory(
    place: str, prepared: str | None, command: str, tmp_path: Path
) -> None:
    archive, work = tmp_path / "tree.tar", tmp_path / "work"
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "Makefile").write_text("all:\n\techo built > result\n")
    subprocess.run(["tar", "cf", str(archive), "-C", str(tmp_path), "tree"], check=True)
    work.mkdir()
    for written in filter(None, (prepared, command)):
        line = re.sub(r"/srv/[\w.-]+\.tar(?:\.\w+)?", str(archive), written)
        done = subprocess.run(
            ["sh", "-c", line], cwd=work, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, f"{place}: {line}: {done.stderr}"


def test_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    known = set(re.findall(r"^([a-z][a-z0-9-]*):", makefile, re.MULTILINE))
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"^make ([a-z][a-z0-9-]*)", page.read_text("utf-8"), re.MULTILINE):
            assert target in known, f"{page}: make {target}"


FLEET_PAGE = ROOT / "docs" / "how-to" / "fleet-of-disks.md"


def test_the_fleet_s_printed_result_is_current(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loop over drives, and the verdict below it."""
    page = FLEET_PAGE.read_text("utf-8")
    block = re.search(r"```sh\nfor (\w+) in ([\d ]+); do\n  blklab (.*)\ndone\nblklab (.*)\n```", page)
    shown = re.search(r"\n```\n((?:(?!```)[^\n]*\n)*?)```\n\n\* \*\*Mean of the class", page)
    assert block is not None
    assert shown is not None
    assert folder.is_dir()
    monkeypatch.setenv("BLKLAB_STORE", str(tmp_path / "fleet.sqlite"))
    monkeypatch.setenv("COLUMNS", "80")
    variable, values, each, last = block.groups()
    for value in values.split():
        assert run_command_line([*each.replace(f"${variable}", value).split(), "-q"]) == 0
    capsys.readouterr()
    assert run_command_line(last.split()) == 0
    # The page leaves out the drives one by one, which the runs' own names are a part of.
    whole = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    printed = re.split(r"\n[^\n]*, drive by drive:", whole)[0]
    wanted = shown[1].strip()
    if os.environ.get("BLKLAB_REFRESH_GOLDEN"):
        FLEET_PAGE.write_text(page.replace(wanted, printed.strip()), "utf-8")
        return
    assert printed.split() == wanted.split()
