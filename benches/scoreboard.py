"""Measures schedulers side by side: the sixteen loads of `blklab kernel judge` on four modelled disks.

The schedulers are those of guest kernels, found by name, so one that comes as a patch needs only its kernel.
As any user::

    blklab kernel build mine --patch mine.patch
    python benches/scoreboard.py --arm mq-deadline@mine --arm mysched@mine --results scoreboard.csv

The first arm is the one to compare with. Nobody's computing takes time here: cost tables know the kernel's
own schedulers alone, and another one would have an advantage. Runs depend on kernel, load and round, so the
figures repeat. ``--write`` fills docs/appendix/scoreboard.md too.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from blklab.analysis.metrics import metric_named
from blklab.backends.protocol import SessionOptions
from blklab.backends.uml import BACKEND
from blklab.labs.judgement.loads import LOADS, JudgementLoad
from blklab.records.samples import RunSample
from blklab.report.pages.page_files import fill_tables
from blklab.spec.changes import parse_changes
from blklab.spec.machines import load_machine
from blklab.spec.plan import Cell, CellKey, derive_seed
from blklab.spec.schedulers import SchedulerChoice, parse_scheduler_choice
from blklab.spec.targets import parse_target
from blklab.spec.workloads import parse_workload

PAGE = Path(__file__).resolve().parents[1] / "docs" / "appendix" / "scoreboard.md"
RUNTIME_NS = {
    "hdd-7200": 3_000_000_000,
    "emmc": 300_000_000,
    "ssd-sata": 40_000_000,
    "nvme-tlc": 10_000_000,
}
"""The disks, with the length of a run: a thousand I/Os or more."""
METRICS = ("iops", "latency_mean", "latency_p99", "sync_latency_p99")
COLUMNS = ("disk", "load", "job", "round", "arm", *METRICS, "error")


@dataclass(frozen=True)
class Figures:
    """A job of a run; times are in microseconds, as the metrics have them."""

    disk: str
    load: str
    job: str
    round: int
    arm: str
    iops: float | None = None
    latency_mean: float | None = None
    latency_p99: float | None = None
    sync_latency_p99: float | None = None
    error: str = ""

    @property
    def case(self) -> tuple[str, str, str, int]:
        """Everything but the arm."""
        return self.disk, self.load, self.job, self.round


def measure(
    arms: Sequence[SchedulerChoice], disks: Iterable[str], loads: Iterable[str], rounds: int
) -> Iterable[list[Figures]]:
    """Runs every load on every disk under every arm, and gives the figures of each run."""
    for disk in disks:
        for name in loads:
            yield from _measure_load(disk, name, arms, rounds)


def _measure_load(
    disk: str, name: str, arms: Sequence[SchedulerChoice], rounds: int
) -> Iterable[list[Figures]]:
    load = LOADS[name]
    runtime_ns = _runtime_ns(disk, load)
    options = SessionOptions(
        run_id="scoreboard",
        kernels=tuple(dict.fromkeys(arm.kernel for arm in arms)),
        machine=load_machine("zero-cpu-time"),
        runtime_ns=runtime_ns,
        cgroups={group: dict(attributes) for group, attributes in load.cgroups.items()},
        changes=parse_changes(f"{runtime_ns // 2000}us {change}" for change in load.changes),
        arrangement="drawn",
    )
    workload = parse_workload(load.text_for(runtime_ns), name=name, source=f"{name}.fio")
    cells = [
        Cell(
            CellKey(
                block=number,
                sequence=0,
                position=0,
                workload=name,
                scheduler=arm.label,
                seed=derive_seed(1, "scoreboard", disk, name, number),
            ),
            arm,
            workload,
        )
        for number in range(rounds)
        for arm in arms
    ]
    with (
        BACKEND.open(parse_target(f"uml:{disk}"), options) as session,
        ThreadPoolExecutor(session.parallel) as executor,
    ):
        for cell, sample in zip(cells, executor.map(session.run, cells), strict=True):
            yield figures_of(disk, name, cell.key.block, cell.scheduler.label, sample)


def _runtime_ns(disk: str, load: JudgementLoad) -> int:
    return round(RUNTIME_NS[disk] * min(load.lasts.get(disk, 1), 2))


def figures_of(disk: str, load: str, number: int, arm: str, sample: RunSample) -> list[Figures]:
    """The figures of each job; a run that failed has one line that says why."""
    if sample.status != "ok":
        why = (sample.error or "the run failed").splitlines()[0]
        return [Figures(disk, load, "", number, arm, error=why)]
    return [
        Figures(
            disk, load, job.name, number, arm, *(metric_named(metric).compute([job]) for metric in METRICS)
        )
        for job in sample.jobs
    ]


def score_rows(figures: Sequence[Figures]) -> list[str]:
    """Each arm against the first, on each disk.

    The geometric means over jobs of the rate and of the 99th percentile's inverse, so above 1 is better, and
    the smallest rate of a job.
    """
    arms = list(dict.fromkeys(one.arm for one in figures))
    disks = list(dict.fromkeys(one.disk for one in figures))
    lines = [f"| Scheduler | {' | '.join(disks)} | Failed runs |", "|---" * (2 + len(disks)) + "|"]
    of_arm = {arm: {one.case: one for one in figures if one.arm == arm and not one.error} for arm in arms}
    for arm, name in _shown(arms).items():
        cells = [name]
        for disk in disks:
            pairs = [
                (base, of_arm[arm][case])
                for case, base in of_arm[arms[0]].items()
                if base.disk == disk and case in of_arm[arm]
            ]
            cells.append(_score(pairs))
        cells.append(str(sum(1 for one in figures if one.arm == arm and one.error)))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _score(pairs: Sequence[tuple[Figures, Figures]]) -> str:
    if not pairs:
        return "-"
    rates = [_rate(other) / _rate(base) for base, other in pairs]
    tails = [
        base.latency_p99 / other.latency_p99
        for base, other in pairs
        if base.latency_p99 and other.latency_p99
    ]
    tail = f"{statistics.geometric_mean(tails):.2f}" if tails else "-"
    return f"{statistics.geometric_mean(rates):.2f}; {tail}; {min(rates):.2f}"


def _shown(arms: Sequence[str]) -> dict[str, str]:
    """Names for tables: without the kernel, where that leaves them different."""
    short = {arm: arm.partition("@")[0] for arm in arms}
    return short if len(set(short.values())) == len(arms) else {arm: arm for arm in arms}


def _rate(one: Figures) -> float:
    # A job that starves must not drop out of a geometric mean.
    return max(one.iops or 0.0, 0.1)


def job_rows(figures: Sequence[Figures]) -> list[str]:
    """Every job, one column for each arm: I/Os per second and 99th percentile in milliseconds."""
    arms = list(dict.fromkeys(one.arm for one in figures))
    found = {(one.case, one.arm): one for one in figures if not one.error}
    lines = [f"| Disk | Load | Job | {' | '.join(_shown(arms).values())} |", "|---" * (3 + len(arms)) + "|"]
    for case in dict.fromkeys(one.case for one in figures if not one.error):
        disk, load, job, number = case
        named = f"{job}, round {number + 1}" if number else job
        texts = [_text(found.get((case, arm))) for arm in arms]
        lines.append(f"| {' | '.join([disk, load, named, *texts])} |")
    return lines


def _text(one: Figures | None) -> str:
    if one is None:
        return "failed"
    tail = "-" if one.latency_p99 is None else f"{one.latency_p99 / 1e3:.3g}"
    rate = one.iops or 0.0
    return f"{rate:.0f}; {tail}" if rate >= 100 else f"{rate:.3g}; {tail}"


def read_results(file: Path) -> list[Figures]:
    """The figures of a file that this program has written."""
    with file.open(encoding="utf-8", newline="") as lines:
        return [_figures_in(row) for row in csv.DictReader(lines)]


def _figures_in(row: dict[str, str]) -> Figures:
    values = [float(row[metric]) if row[metric] else None for metric in METRICS]
    return Figures(
        row["disk"], row["load"], row["job"], int(row["round"]), row["arm"], *values, error=row["error"]
    )


def main() -> int:
    """Measures, prints, and writes if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--arm", action="append", default=[], metavar="SCHEDULER@KERNEL")
    parser.add_argument("--disk", action="append", choices=list(RUNTIME_NS))
    parser.add_argument("--load", action="append", choices=list(LOADS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--results", type=Path, required=True, help="file of figures; it grows by what it lacks"
    )
    parser.add_argument("--write", action="store_true", help="fill the tables of docs/appendix/scoreboard.md")
    arguments = parser.parse_args()
    known = read_results(arguments.results) if arguments.results.is_file() else []
    present = {(one.disk, one.load, one.arm) for one in known}
    new = not known
    with arguments.results.open("a", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        if new:
            lines.writerow(COLUMNS)
        for disk in arguments.disk or RUNTIME_NS:
            for load in arguments.load or LOADS:
                arms = [parse_scheduler_choice(arm) for arm in arguments.arm]
                lacking = [arm for arm in arms if (disk, load, arm.label) not in present]
                for figures in measure(lacking, [disk], [load], arguments.rounds) if lacking else ():
                    lines.writerows([getattr(one, column) for column in COLUMNS] for one in figures)
                    file.flush()
                    known += figures
    tables = {"scores": score_rows(known), "jobs": job_rows(known)}
    sys.stdout.write("\n".join([*tables["scores"], ""]))
    if arguments.write:
        fill_tables(PAGE, {name: "\n".join(rows) for name, rows in tables.items()})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
