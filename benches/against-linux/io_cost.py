"""Compares io.cost on Linux 6.1 in virtual time with the simulator: I/Os of each group.

Prints the table of docs/appendix/tables/io-cost-against-linux.csv. As any user::

    python benches/against-linux/io_cost.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

TIMED = "[global]\ndirect=1\nsize=1g\ntime_based\nruntime={}\n"
DEEP = TIMED + "ioengine=libaio\niodepth={}\n"
STREAM_AND_RANDOM = "[stream]\nrw=read\ncgroup=a\n[random]\nrw=randread\ncgroup=b\noffset=4g\n"
TWO_RANDOM = "[a]\nrw=randread\ncgroup=a\n[b]\nrw=randread\ncgroup=b\noffset=4g\n"
FOURFOLD = "[{0}]\nrw=randread\ncgroup={0}\nnumjobs=4\n"
DISK_MODEL = "ctrl=user rbps=174019176 rseqiops=41708 rrandiops={}"
TARGETS = "enable=1 ctrl=user rpct=95 rlat={} wpct=95 wlat={} min={} max={}"


@dataclass(frozen=True)
class Cell:
    """One setting of io.cost."""

    title: str
    device: str
    scheduler: str
    job: str
    weights: dict[str, int]
    qos: str = "enable=1"
    model: str = ""


AUTOMATIC = Cell(
    "a stream and a random reader, automatic model, 4 s",
    "hdd-7200",
    "none",
    TIMED.format(4) + STREAM_AND_RANDOM,
    {"a": 100, "b": 100},
)
TWELVE = Cell(
    "three groups of four random readers, 250 ms, 20 s",
    "hdd-7200",
    "none",
    TIMED.format(20) + "".join(FOURFOLD.format(group) for group in "abc"),
    {"a": 100, "b": 300, "c": 600},
    TARGETS.format(250_000, 250_000, 100, 100),
    DISK_MODEL.format(250),
)
CELLS = (
    Cell(
        "a stream and a random reader of depth 32, random reads priced 100 times as high, 5 s",
        "fixed,latency=1ms,depth=4,jitter=20us",
        "mq-deadline",
        DEEP.format(5, 32) + STREAM_AND_RANDOM,
        {"a": 100, "b": 100},
        "enable=1 min=100 max=100",
        "ctrl=user rbps=1000000000 rseqiops=100000 rrandiops=1000",
    ),
    AUTOMATIC,
    replace(AUTOMATIC, title="the same of depth 16, 3 s", job=DEEP.format(3, 16) + STREAM_AND_RANDOM),
    Cell(
        "the same, submitted eight at a time and merged, 3 s",
        "hdd-7200",
        "mq-deadline",
        DEEP.format(3, 16) + "iodepth_batch=8\n" + STREAM_AND_RANDOM,
        {"a": 100, "b": 300},
        "enable=1 min=100 max=100",
        "ctrl=user rbps=20000000 rseqiops=41708 rrandiops=370",
    ),
    Cell(
        "two random readers, 75 ms for 95 %, 10 s",
        "hdd-7200",
        "none",
        TIMED.format(10) + TWO_RANDOM,
        {"a": 100, "b": 300},
        TARGETS.format(75_000, 75_000, 50, 150),
        DISK_MODEL.format(130),
    ),
    Cell(
        "two random readers of depth 8, half rate, 10 s",
        "hdd-7200",
        "mq-deadline",
        DEEP.format(10, 8) + TWO_RANDOM,
        {"a": 100, "b": 200},
        "enable=1 min=50 max=50",
    ),
    Cell(
        "two random readers of depth 32, automatic model, 4 s",
        "ssd-sata",
        "mq-deadline",
        DEEP.format(4, 32) + TWO_RANDOM,
        {"a": 100, "b": 200},
    ),
    TWELVE,
    replace(TWELVE, title="the same, 0 ms", qos=TARGETS.format(0, 0, 100, 100)),
)


def ios_of_jobs(place: str, cell: Cell, job: Path) -> list[int]:
    """I/Os of each job of a run."""
    groups = [f"/:io.cost.qos={cell.qos}", *([f"/:io.cost.model={cell.model}"] if cell.model else [])]
    groups += [f"{group}:io.weight={weight}" for group, weight in cell.weights.items()]
    command = ["blklab", "run", f"{place}:{cell.device}", str(job), "--scheduler", cell.scheduler]
    command += [part for group in groups for part in ("--cgroup", group)]
    done = subprocess.run([*command, "--json", "-"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return [entry["read"]["ios"] for entry in json.loads(done.stdout)["jobs"]]


def main() -> None:
    """Runs all cells on both and prints the table."""
    sys.stdout.write(
        "| Device, scheduler | Load | Weights | Linux 6.1 | Simulator |\n|---|---|---|---|---|\n"
    )
    for cell in CELLS:
        with tempfile.TemporaryDirectory() as folder:
            job = Path(folder) / "io_cost.fio"
            job.write_text(cell.job)
            found = [ios_of_jobs(place, cell, job) for place in ("uml", "sim")]
        linux, simulator = (", ".join(f"{ios:,}" for ios in one) for one in found)
        weights = ", ".join(str(weight) for weight in cell.weights.values())
        device = cell.device.partition(",")[0]
        load = f"{device}, {cell.scheduler} | {cell.title} | {weights}"
        sys.stdout.write(f"| {load} | {linux} | {simulator} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
