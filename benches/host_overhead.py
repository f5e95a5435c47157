"""Measures the overhead of blklab: fio's IOPS under the host backend over those of plain fio.

Both run the same job file on the same file under the same scheduler, in many short pairs, in alternating
order; only blklab lets fio log the speed over time and monitors the machine. With ``--switchback`` blklab's
run is a stretch of slots whose only scheduler never changes: fio logs histograms, and blklab checks the
settings in every slot. The result is the median of the ratios with its distribution-free 95 % interval: on a
busy machine single pairs can be far off, so only their ranks count. As root::

    python benches/host_overhead.py [TARGET] [--workload NAME]… [--scheduler NAME] [--pairs N] [--runtime T]
        [--switchback]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from unittest import mock

from scipy import stats

from blklab.analysis.metrics import metric_named
from blklab.backends.host import BACKEND
from blklab.backends.protocol import Session, SessionOptions
from blklab.errors import BlklabError
from blklab.linux.load.fio import OUTPUT_FILE
from blklab.linux.load.fio_histograms import HISTOGRAM_OPTIONS
from blklab.linux.load.fio_rates import RATE_OPTIONS
from blklab.linux.queue.settings import QueueSettings
from blklab.linux.scratch.page_cache import drop_page_cache
from blklab.quantities.units import parse_duration_ns
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import SchedulerChoice, parse_scheduler_choice
from blklab.spec.slots import SlotDecision
from blklab.spec.stretches import stretch_of
from blklab.spec.targets import parse_target
from blklab.spec.workloads import Workload, load_workload

SLOT_NS = 100_000_000
AIM = 0.01
"""Allowed distance of the ratio from 1."""


def under_blklab(session: Session, cell: Cell) -> float:
    """IOPS measured by blklab."""
    sample = session.run(cell)
    iops = metric_named("iops").compute(sample.jobs)
    if iops is None:
        raise SystemExit(f"no I/O: {sample.error}")
    return iops


def plain_fio(folder: Path) -> float:
    """IOPS reported by plain fio for blklab's job file without the logs."""
    lines = (folder / "job.fio").read_text().splitlines()
    ours = (*RATE_OPTIONS, *HISTOGRAM_OPTIONS, "log_avg_msec", "exec_prerun")
    plain = [line for line in lines if line.partition("=")[0] not in ours]
    (folder / "plain.fio").write_text("\n".join(plain) + "\n")
    drop_page_cache()
    command = ["fio", "--output-format=json", "--output=plain.json", "plain.fio"]
    subprocess.run(command, cwd=folder, check=True)
    return reported_iops(folder / "plain.json")


def reported_iops(report: Path) -> float:
    """IOPS of all jobs, as fio reports them."""
    jobs = json.loads(report.read_text())["jobs"]
    return float(sum(job["read"]["iops"] + job["write"]["iops"] for job in jobs))


def in_slots(session: Session, cell: Cell, folder: Path, runtime_ns: int) -> float:
    """IOPS that fio reports of a stretch in which nothing is ever switched."""
    decision = SlotDecision(slot_ns=SLOT_NS, reason="a benchmark")
    stretch = stretch_of(
        cell.workload,
        [cell.scheduler],
        decision,
        seed=1,
        number=0,
        first_round=0,
        rounds=max(1, runtime_ns // SLOT_NS),
    )
    apply = QueueSettings.apply

    def unchanged(settings: QueueSettings, choice: SchedulerChoice, **_: bool) -> dict[str, str]:
        return apply(settings, choice)

    with mock.patch.object(QueueSettings, "apply", unchanged):
        samples = session.run_stretch(stretch)
    if any(sample.status == "failed" for sample in samples):
        raise SystemExit(f"no I/O: {samples[0].error}")
    return reported_iops(folder / OUTPUT_FILE)


def measure(
    session: Session, workload: Workload, scheduler: str, pairs: int, slots_ns: int | None
) -> list[float]:
    """Ratios of blklab over plain fio, one for each pair; `slots_ns` is the length of stretches."""
    choice = parse_scheduler_choice(scheduler)
    key = CellKey(block=0, sequence=0, position=0, workload=workload.name, scheduler=choice.label, seed=1)
    cell = Cell(key=key, scheduler=choice, workload=workload)
    change = next(line for line in session.commands(cell) if line.startswith("cd "))
    folder = Path(change.removeprefix("cd "))

    def run() -> float:
        return under_blklab(session, cell) if slots_ns is None else in_slots(session, cell, folder, slots_ns)

    run()  # warms the device up, and leaves the job file
    ratios = []
    for pair in range(pairs):
        if pair % 2:
            plain = plain_fio(folder)
            ours = run()
        else:
            ours = run()
            plain = plain_fio(folder)
        ratios.append(ours / plain)
        print(f"{workload.name}: pair {pair + 1}: {ours:.0f} / {plain:.0f} = {ours / plain:.4f}", flush=True)  # noqa: T201
    return ratios


def summary(ratios: list[float]) -> tuple[float, float, float]:
    """Median and bounds of its 95 % interval from the sign test, which are observed ratios."""
    ordered = sorted(ratios)
    outside = max(int(stats.binom.ppf(0.025, len(ordered), 0.5)) - 1, 0)
    return statistics.median(ordered), ordered[outside], ordered[-1 - outside]


def main() -> int:
    """Measures and prints; exits with 1 if the aim is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("target", nargs="?", default=".")
    parser.add_argument("--workload", action="append", help="default: random-read-4k-qd1 and -qd32")
    parser.add_argument("--scheduler", default="none")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--runtime", default="500ms")
    parser.add_argument("--switchback", action="store_true", help="stretches with slots instead of runs")
    arguments = parser.parse_args()
    workloads = [
        load_workload(name) for name in arguments.workload or ("random-read-4k-qd1", "random-read-4k-qd32")
    ]
    options = SessionOptions(
        run_id=f"overhead-{os.getpid()}", runtime_ns=parse_duration_ns(arguments.runtime)
    )
    met = True
    try:
        with BACKEND.open(parse_target(arguments.target), options) as session:
            session.check([parse_scheduler_choice(arguments.scheduler)], workloads)
            session.prepare(workloads, lambda line: print(line, file=sys.stderr))  # noqa: T201
            for workload in workloads:
                slots_ns = options.runtime_ns if arguments.switchback else None
                ratio, low, high = summary(
                    measure(session, workload, arguments.scheduler, arguments.pairs, slots_ns)
                )
                within = abs(ratio - 1) <= AIM
                met = met and within
                print(  # noqa: T201
                    f"{workload.name}, {arguments.scheduler}, {session.target.summary}:"
                    f" blklab / plain fio = {ratio:.4f}"
                    f" (95 %: {low:.4f} to {high:.4f}, {arguments.pairs} pairs),"
                    f" {'within' if within else 'not within'} {AIM:.0%}"
                )
    except BlklabError as error:
        print(f"error: {error.message}", file=sys.stderr)  # noqa: T201
        return int(error.exit_code)
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
