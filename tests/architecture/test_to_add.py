"""Keeps ARCHITECTURE.md's table "To add X, touch Y": adds one of each in a copy, and sees it picked up.

Every test writes to the places that its row names and to no other.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAME = "newcomer"
_COPIED = ("python", "workloads", "devices", "studies", "kernel", "docs", "tests/cli")
_RUST = "crates/blksim/src"


def table() -> dict[str, set[str]]:
    """The places that each row names, by what is added."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    section = text[text.index("## To add X, touch Y") :]
    rows = re.findall(r"^\| (?!To add|---)([^|]+) \| ([^|]+) \|$", section, re.MULTILINE)
    return {added: set(re.findall(r"`([\w./-]+/[\w.-]+)`", places)) for added, places in rows}


@dataclass
class Checkout:
    """A copy of the project that one thing is added to."""

    root: Path
    touched: set[str] = field(default_factory=set)

    def write(self, place: str, text: str) -> None:
        """Writes a new file."""
        path = self.root / place.replace("NAME", NAME)
        assert not path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        self.touched.add(place)

    def copy(self, old: str, place: str, **replaced: str) -> None:
        """Writes a new file that is like an old one."""
        text = (self.root / old).read_text("utf-8")
        for before, after in replaced.items():
            assert before in text
            text = text.replace(before, after)
        self.write(place, text)

    def insert(self, place: str, before: str, line: str) -> None:
        """Inserts one line into a file."""
        path = self.root / place
        text = path.read_text("utf-8")
        assert text.count(before) == 1, f"{place} has {text.count(before)} times {before!r}"
        path.write_text(text.replace(before, line + before), "utf-8")
        self.touched.add(place)

    def run(self, program: str) -> str:
        """Runs a Python program with the copy's package, and returns its output."""
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONPATH": str(self.root / "python"), "PATH": "/usr/bin:/bin", "HOME": str(self.root)},
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def command(self, *arguments: str) -> str:
        """Runs a blklab command of the copy, and returns its output."""
        return self.run(f"import sys; from blklab.cli import main; sys.argv[1:] = {arguments!r}; main()")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    for folder in _COPIED:
        ignored = shutil.ignore_patterns("__pycache__", "blkguest", "images")
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True, ignore=ignored)
    return Checkout(tmp_path)


def holds(added: str, checkout: Checkout) -> None:
    """Checks that the test has touched what the row names, and nothing else."""
    assert checkout.touched == table()[added]


@pytest.mark.parametrize(
    ("first", "after", "folder"),
    [("## The core", "## Rust", "python/blklab"), ("## Rust", "## Replays", _RUST)],
)
def test_every_room_is_described(first: str, after: str, folder: str) -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition(first)[2].partition(after)[0]
    rows = re.findall(r"^\| (`[^|]+`) \|", section, re.MULTILINE)
    described = {place.rstrip("/") for row in rows for place in re.findall(r"`([\w./]+)`", row)}
    hidden = ("__", "_core", "py.typed", "lib.rs")
    rooms = {path.name for path in (ROOT / folder).iterdir() if not path.name.startswith(hidden)}
    if "labs" in rooms:
        laboratories = (ROOT / folder / "labs").iterdir()
        rooms.remove("labs")
        rooms |= {f"labs/{path.name}" for path in laboratories if not path.name.startswith(hidden)}
    assert rooms <= described
    assert not [
        place for place in described if not (ROOT / folder / place).exists() and not (ROOT / place).exists()
    ]


def test_every_row_has_a_test() -> None:
    here = Path(__file__).read_text("utf-8")
    assert len(table()) == 16
    for added in table():
        assert f'"{added}"' in here, f"no test for: {added}"


def test_a_workload(checkout: Checkout) -> None:
    checkout.copy("workloads/many-readers.fio", "workloads/NAME.fio")
    assert NAME in checkout.command("workloads")
    holds("a workload", checkout)


def test_a_command_as_a_workload(checkout: Checkout) -> None:
    checkout.copy("workloads/shell-start.toml", "workloads/NAME.toml")
    assert NAME in checkout.command("workloads")
    holds("a command as a workload", checkout)


def test_a_device_profile(checkout: Checkout) -> None:
    checkout.copy("devices/hdd-7200.toml", "devices/NAME.toml")
    assert f"sim:{NAME}" in checkout.command("targets")
    assert f"sim:{NAME}" in checkout.run(
        "from blklab.report.pages.reference import TABLES; print(TABLES['profiles']())"
    )
    holds("a device profile", checkout)


def test_a_reader(checkout: Checkout) -> None:
    readers = "python/blklab/labs/reanalysis/readers"
    checkout.write(
        f"{readers}/NAME.py",
        f"NAME = {NAME!r}\nSUMMARY = 'a format that nobody writes'\n"
        "def recognises(source): return False\ndef read(source, options): return []\n",
    )
    checkout.insert(f"{readers}/__init__.py", '    "csv": "csv', f'    "{NAME}": "{NAME}",\n')
    assert "a format that nobody writes" in checkout.command("analyse", "--help")
    holds("a reader", checkout)


def test_a_published_study(checkout: Checkout) -> None:
    values = "iotop_processes.csv"
    checkout.copy(f"studies/ionice/published/{values}", "studies/NAME/published/NAME.csv")
    checkout.copy("studies/ionice/claims.toml", "studies/NAME/claims.toml", **{values: f"{NAME}.csv"})
    page = checkout.run(
        "from blklab.labs.studies.published.page import published_studies_page as p; print(p().text)"
    )
    assert f"`studies/{NAME}`" in page
    holds("a published study", checkout)


def test_a_study_that_can_be_run_again(checkout: Checkout) -> None:
    for kept in ("study.toml", "expected.toml"):
        checkout.copy(f"studies/hdparm-fifteen/{kept}", f"studies/NAME/{kept}")
    for name in ("claims.toml", "published"):  # those of the row above
        old, new = checkout.root / "studies/hdparm-fifteen" / name, checkout.root / "studies" / NAME / name
        _ = shutil.copytree(old, new) if old.is_dir() else shutil.copy(old, new)
    assert NAME in checkout.command("study", "list")
    holds("a study that can be run again", checkout)


def test_a_metric(checkout: Checkout) -> None:
    metrics = "python/blklab/analysis/metrics"
    checkout.copy(f"{metrics}/latency_mean.py", f"{metrics}/NAME.py", latency_mean=NAME)
    checkout.insert(f"{metrics}/__init__.py", '    "longest_wait",\n', f'    "{NAME}",\n')
    assert NAME in checkout.run("from blklab.analysis.metrics import METRICS; print(*METRICS)")
    holds("a metric", checkout)


def test_a_subcommand(checkout: Checkout) -> None:
    checkout.write(
        "python/blklab/cli/NAME.py",
        f"import click\n@click.command(name={NAME!r})\ndef command():\n    click.echo('here')\n",
    )
    checkout.insert("python/blklab/cli/__init__.py", '    "doctor":', f'    "{NAME}": "Says where it is.",\n')
    assert "Says where it is." in checkout.command("--help")
    assert checkout.command(NAME) == "here\n"
    holds("a subcommand", checkout)


def test_an_option(checkout: Checkout) -> None:
    checkout.insert(
        "python/blklab/spec/experiment.py",
        "    precondition: Annotated[",
        f'    {NAME}: Annotated[bool, Option(SWITCH, "Be the one option more.")] = False\n',
    )
    checkout.insert(
        "tests/cli/test_options.py", '    "precondition": st.booleans(),\n', f'    "{NAME}": st.booleans(),\n'
    )
    checkout.run(
        "import sys; sys.path.append('tests/cli'); import test_options; "
        "test_options.test_a_new_option_is_tried_here()"
    )
    assert f"--{NAME}" in checkout.command("compare", "--help")
    (checkout.root / "x.toml").write_text(f"target = 'sim:fixed'\n{NAME} = true\n")
    program = (
        "from pathlib import Path; from blklab.spec.request import read_spec_file as r;"
        f"print(r(Path('x.toml')).get({NAME!r}))"
    )
    assert checkout.run(program) == "True\n"
    holds("an option of an experiment", checkout)


def test_a_backend(checkout: Checkout) -> None:
    backends = "python/blklab/backends"
    checkout.copy(f"{backends}/sim.py", f"{backends}/NAME.py", **{'NAME = "sim"': f'NAME = "{NAME}"'})
    checkout.insert(f"{backends}/__init__.py", '"uml": "blklab', f'"{NAME}": "blklab.backends.{NAME}", ')
    checkout.insert("python/blklab/spec/targets.py", '"uml", "qemu")', f'"{NAME}", ')
    described = checkout.run(
        "from blklab.backends import backend_for; from blklab.spec.targets import parse_target as p;"
        f"t = p('{NAME}:fixed'); print(backend_for(t).describe(t).backend)"
    )
    assert described == f"{NAME}\n"
    holds("a backend", checkout)


@pytest.mark.parametrize("added", ["a patch to try", "an instrument"])
def test_a_patch(added: str, checkout: Checkout) -> None:
    folder, listed = {
        "a patch to try": ("patches", "print(*shipped_patches())"),
        "an instrument": ("instruments", "print(*(one.path.stem for one in shipped_instruments()))"),
    }[added]
    like = next((ROOT / "kernel" / folder).glob("*/*.patch")).relative_to(ROOT)
    checkout.copy(str(like), f"kernel/{folder}/NAME/NAME.patch")
    checkout.copy(str(like.parent / "README.md"), f"kernel/{folder}/NAME/README.md")
    names = checkout.run(f"from blklab.guests.kernels.patches import *; {listed}").split()
    assert NAME in names
    holds(added, checkout)


def test_a_page(checkout: Checkout) -> None:
    checkout.write("docs/how-to/NAME.md", "# Newcomer\n")
    checkout.insert("docs/README.md", "* [Sweep tunables]", f"* [Newcomer](how-to/{NAME}.md)\n")
    index = (checkout.root / "docs/README.md").read_text("utf-8")
    pages = {
        path.relative_to(checkout.root / "docs").as_posix() for path in checkout.root.glob("docs/*/*.md")
    }
    assert pages <= set(re.findall(r"\]\(([^)#]+\.md)\)", index))
    holds("a page of the docs", checkout)


def rust_files_that_name(word: str) -> set[str]:
    """Source files of the simulator that name a thing outside comments, tests apart."""
    named = re.compile(rf"^(?! *//).*\b{word}\b", re.MULTILINE)
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / _RUST).rglob("*.rs")
        if named.search(path.read_text("utf-8").partition("#[cfg(test)]")[0])
    }


@pytest.mark.parametrize(
    ("added", "module", "type_name"),
    [
        ("a simulated scheduler", "noop", "Noop"),
        ("a rqos policy", "iolatency", "IoLatency"),
        ("a device model", "fixed", "Fixed"),
    ],
)
def test_an_entry_of_the_simulator(added: str, module: str, type_name: str) -> None:
    """Adding one means compiling (`one_more_scheduler.rs` does); this checks where an old entry is named."""
    places = {place.replace("NAME", module) for place in table()[added]}
    assert all((ROOT / place).is_file() for place in places)
    assert rust_files_that_name(type_name) <= places
    if added == "a simulated scheduler":
        suite = (ROOT / "crates/blksim/tests").rglob("one_more_scheduler.rs")
        assert any("a_scheduler_is_one_file_and_one_line" in test.read_text("utf-8") for test in suite)
