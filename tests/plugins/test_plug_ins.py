"""A package outside of blklab adds one entry of each kind; another one, broken everywhere, adds none."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from blklab.registry import GROUPS

ROOT = Path(__file__).resolve().parents[2]

FILES = {
    "extras/__init__.py": "",
    "extras/latency_p90.py": """
NAME, UNIT, BETTER, DESCRIPTION = "latency_p90", "ns", "lower", "Time that one I/O in ten exceeds."


def compute(jobs):
    data = [one.latency for job in jobs for one in job.directions if one.direction != "sync"]
    from blklab.records.samples import LatencyHistogram
    merged = LatencyHistogram.merged(data)
    return merged.percentile_ns(0.9) if data else None
""",
    "extras/stopwatch.py": """
from blklab.labs.reanalysis.readers.protocol import Reading

NAME, SUMMARY = "stopwatch", "lines of NAME SECONDS after a heading"


def recognises(source):
    return source.lines[0] == "# stopwatch"


def read(source, options):
    reading = Reading(roles={"name": "level"})
    for number, line in enumerate(source.lines, 1):
        name, _, seconds = line.partition(" ")
        if number > 1 and seconds.endswith("s"):
            reading.add("time", float(seconds[:-1]), "s", "lower", {"name": name}, source.at(number))
    return reading
""",
    "extras/lifo.py": """
class Lifo:
    \"\"\"Serves the latest request first.\"\"\"

    def __init__(self, queue):
        self.held = []

    def insert(self, request):
        self.held.append(request)

    def dispatch(self):
        return self.held.pop() if self.held else None
""",
    "extras/backend.py": """
from blklab.backends.sim import SimBackend


class _Twin(SimBackend):
    NAME = "twin"


BACKEND = _Twin()
""",
    "extras/study/__init__.py": """
from pathlib import Path

from blklab.labs.studies.ionice import STUDY as IONICE
from blklab.labs.studies.replication.protocol import Study

STUDY = Study("nicer", ("sim",), IONICE.experiments, IONICE.read, Path(__file__).parent)
""",
    "extras/command.py": """
import click

from blklab.cli.commands import described_command


@described_command(name="greet", examples=(("greet", "blklab greet"),))
def command():
    \"\"\"Greet whoever reads.

    In a sentence or two.
    \"\"\"
    click.echo("hello from extras")
""",
}
POINTS = {
    "blklab.metrics": "latency_p90 = extras.latency_p90",
    "blklab.readers": "stopwatch = extras.stopwatch",
    "blklab.backends": "twin = extras.backend:BACKEND",
    "blklab.studies": "nicer = extras.study:STUDY",
    "blklab.commands": "greet = extras.command:command",
    "blklab.schedulers": "lifo = extras.lifo:Lifo",
}
TESTS = """
from blklab.testing.conformance import *

class TestMetric(MetricConformance):
    NAME = "latency_p90"

class TestReader(ReaderConformance):
    NAME = "stopwatch"
    EXAMPLES = {"times.txt": "# stopwatch\\nnone 4.5s\\nbfq 3.5s\\n"}

class TestScheduler(SchedulerConformance):
    NAME = "lifo"
    DEVICES = ("ssd-sata",)

class TestBackend(BackendConformance):
    NAME = "twin"
    TARGET = "twin:fixed"

class TestStudy(StudyConformance):
    NAME = "nicer"

class TestCommand(CommandConformance):
    NAME = "greet"
"""


def wheel(folder: Path, name: str, files: dict[str, str], points: dict[str, str]) -> Path:
    """Builds a wheel, which is a zip file with a description."""
    path, information = folder / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    declared = "\n".join(f"[{group}]\n{line}" for group, line in points.items())
    with zipfile.ZipFile(path, "w") as archive:
        for place, text in files.items():
            archive.writestr(place, text)
        archive.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{information}/entry_points.txt", declared)
        archive.writestr(f"{information}/RECORD", "")
    return path


def install(wheels: list[Path], place: Path) -> None:
    """Installs wheels into a folder, as pip does."""
    pytest.importorskip("pip", reason="needs pip")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"]
    subprocess.run([*command, str(place), *map(str, wheels)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both packages installed."""
    folder = tmp_path_factory.mktemp("packages")
    study = {
        f"extras/study/{path.relative_to(ROOT / 'studies/ionice')}": path.read_text("utf-8")
        for path in (ROOT / "studies/ionice").rglob("*.*")
        if path.suffix in (".toml", ".csv", ".fio")
    }
    broken = {group: f"{line.partition(' ')[0]}x = broken" for group, line in POINTS.items()}
    wheels = [
        wheel(folder, "extras", {**FILES, **study}, POINTS),
        wheel(folder, "out_of_order", {"broken.py": "raise RuntimeError('out of order')\n"}, broken),
        wheel(folder, "namesake", {}, {"blklab.metrics": "iops = extras.latency_p90"}),
    ]
    install(wheels, folder / "site")
    return folder / "site"


def run(place: Path, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python where these packages are installed."""
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": f"{place}{os.pathsep}{ROOT / 'python'}", "COLUMNS": "200"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_kind_passes_its_conformance_tests(place: Path, tmp_path: Path) -> None:
    (tmp_path / "test_extras.py").write_text(TESTS, "utf-8")
    done = run(place, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_extras.py")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "16 passed" in done.stdout


def test_commands_know_the_entries(place: Path, tmp_path: Path) -> None:
    def blklab(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run(place, tmp_path, "-m", "blklab", *arguments)

    assert "Greet whoever reads." in blklab("--help").stdout
    greeted = blklab("greet")
    assert greeted.stdout == "hello from extras\n"
    assert "nicer" in blklab("study", "list").stdout
    (tmp_path / "times.txt").write_text("# stopwatch\nnone 4.5s\nnone 4.6s\nbfq 3.5s\nbfq 3.4s\n")
    assert "stopwatch" in blklab("analyse", "--help").stdout
    analysed = blklab("analyse", "times.txt")
    assert analysed.returncode == 0, analysed.stderr
    assert "bfq" in analysed.stdout
    compared = blklab(
        *("compare", "twin:hdd-7200,queue_depth=1", "-s", "none,lifo", "-w", "random-read-4k-qd32"),
        *("--runtime", "300ms", "-n", "2", "--json", "-", "-q"),
    )
    assert compared.returncode == 0, compared.stderr
    assert '"latency_p90"' in compared.stdout
    assert '"lifo"' in compared.stdout


def test_a_broken_package_is_a_note_that_names_it(place: Path, tmp_path: Path) -> None:
    listed = run(place, tmp_path, "-m", "blklab", "study", "list")
    assert listed.returncode == 0
    assert "ionice" in listed.stdout
    (note,) = listed.stderr.strip().splitlines()
    assert note == "note: the study 'nicerx' of out_of_order 1.0 is left out: RuntimeError: out of order"
    program = (
        "import warnings; from blklab.registry import *; warnings.simplefilter('always')\n"
        "from blklab.analysis.metrics import METRICS\n"
        "with warnings.catch_warnings(record=True) as seen: print(len(METRICS), METRICS['iops'].unit)\n"
        "print(*(one.message for one in seen), sep='\\n')"
    )
    printed = run(place, tmp_path, "-c", program).stdout.splitlines()
    assert printed[0] == "19 IO/s"
    assert sorted(printed[1:]) == [
        "the metric 'iops' of namesake 1.0 is left out: ValueError: there is another of that name",
        "the metric 'latency_p90x' of out_of_order 1.0 is left out: RuntimeError: out of order",
    ]


def test_the_page_names_every_group() -> None:
    page = (ROOT / "docs/how-to/write-a-plug-in.md").read_text("utf-8")
    assert set(POINTS) == set(GROUPS)
    for group in GROUPS:
        assert f"`{group}`" in page
