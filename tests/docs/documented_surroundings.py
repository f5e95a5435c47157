"""The files and stored runs that the pages name, and the words that stand for a reader's own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from test_links import ROOT

from blklab.cli import run as run_command_line
from blklab.labs.calibration.disk.submission import submission_text
from blklab.records.store import Store
from blklab.testing.experiments import make_experiment
from drive_submissions import submission
from recorded_simulation import record_simulation

RUN_IDS = ("20261125-2122-mkxd", "20261125-2124-8guw", "20261123-0231-k3f9")
PLACEHOLDERS = {
    "RUN": "latest",
    "OLD": RUN_IDS[0],
    "NEW": RUN_IDS[1],
    "CHOICE": "mq-deadline:fifo_batch=8",
    "ADDRESS": "tcp://10.0.0.5:8786",
    "PATH": ".",
    "FILE": "build.blkrecord",
    "trace:FILE": "trace:build.blkrecord",
    "DIRECTORY": ".",
}
"""Words of the pages that a reader replaces, with what a test takes."""

JOB = """\
[reader]
rw=randread
bs=4k
ioengine=libaio
direct=1
time_based
runtime=100ms
size=16m
"""
GROUPS = """\
; focus: front
[global]
bs=4k
direct=1
ioengine=libaio
iodepth=8
time_based
runtime=100ms
size=64m
[front]
cgroup=front
rw=randread
[back]
cgroup=back
rw=randwrite
"""
_TABLE = "rate_MBps,scheduler,record_kB,session\n" + "".join(
    f"{10 + number + 3 * index},{name},4,{number}\n"
    for number in range(4)
    for index, name in enumerate(("none", "bfq"))
)
_ISSUE = "[reader]\nrw=randread\nbs=4k\nruntime=200ms\ntime_based\nsize=64m\n"


_FILE = re.compile(
    r"^```(?:ini|toml)\n[;#] ([\w-]+\.(?:fio|toml))(?::[^\n]*)?\n(.*?)^```", re.DOTALL | re.MULTILINE
)
"""A file that a page shows, with its name in the first line."""


def furnish(folder: Path) -> None:
    """Puts the files of the pages into a folder: those that a page shows as it shows them."""
    for name in ("mine.fio", "my-load.fio", "zones.fio", "contrast.fio"):
        (folder / name).write_text(JOB)
    (folder / "groups.fio").write_text(GROUPS)
    (folder / "build.toml").write_text('purpose = "A build."\ncommand = "true"\n')
    (folder / "results.csv").write_text(_TABLE)
    (folder / "schedulers.csv").write_text(
        "".join(",".join(line.split(",")[:2]) + "\n" for line in _TABLE.splitlines())
    )
    for page in (ROOT / "docs").rglob("*.md"):
        for name, text in _FILE.findall(page.read_text("utf-8")):
            (folder / name).write_text(text)
    readers = ROOT / "tests" / "readers" / "files"
    shutil.copy(readers / "hdparm.log", folder / "hdparm.log")
    shutil.copy(readers / "iozone-report.txt", folder / "iozone.txt")
    for name in ("none.txt", "bfq.txt"):
        shutil.copy(readers / "hdparm.log", folder / name)
    for name in ("a.txt", "b.txt"):
        shutil.copy(readers / "hdparm.log", folder / name)
    for name in ("a.json", "b.json"):
        shutil.copy(readers / "fio.json", folder / name)
    for depth in (1, 8):
        for scheduler in ("none", "bfq"):
            for run in (1, 2, 3):
                path = folder / "results" / f"rep_{run}" / f"qd_{depth}_sche_{scheduler}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(readers / "hdparm.log", path)
    record_simulation(folder / "build.blkrecord", "hdd-7200", _ISSUE, "none")
    shutil.copy(folder / "build.blkrecord", folder / "database.blkrecord")
    for name in ("drive.json", "my-disk.json"):
        (folder / name).write_text(submission_text(submission()))
    (folder / "blklab-samsung").mkdir()
    for name in ("my-study", "another"):
        (folder / name).symlink_to(ROOT / "studies" / "hdparm-fifteen")
    for name in ("studies", "benches", "docs"):
        (folder / name).symlink_to(ROOT / name)


def store_runs(path: Path) -> None:
    """Stores the runs that the pages name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with Store.opened(str(path)) as store:
        for run_id in sorted(RUN_IDS):
            record = make_experiment().model_copy(update={"run_id": run_id})
            store.begin(record)
            for sample in record.samples:
                store.add_sample(run_id, sample)


def write_timeline(folder: Path) -> None:
    """Writes the timeline that `blklab explain --from` draws."""
    words = [
        "run",
        "sim:hdd-7200",
        str(folder / "mine.fio"),
        "-q",
        "--timeline",
        str(folder / "run.timeline"),
    ]
    assert run_command_line(words) == 0
