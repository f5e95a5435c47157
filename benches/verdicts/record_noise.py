"""Records the noise of a real disk: comparisons of a scheduler with itself (root).

    python benches/verdicts/record_noise.py [--target DIRECTORY] [--sessions 10] [--blocks 20] [--out FILE]

Every session is an experiment of the product with two names for one scheduler, so a block holds two runs of
each workload directly after one another. Every difference between them is noise. The disk is released
between sessions for other programs.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import sys
import time
from pathlib import Path

from against_itself import against_itself, passing_store

from blklab.analysis.metrics import METRICS
from blklab.analysis.values import metric_values
from blklab.errors import LockedError
from blklab.experiment.pipeline import compare
from blklab.progress.experiment import ProgressDisplay
from blklab.records.experiment import ExperimentRecord
from blklab.records.store import Store
from blklab.report.terminal import console_out
from blklab.spec.request import SpecValues, build_specs

WORKLOADS = ("random-read-4k-qd1", "random-read-4k-qd32", "buffered-sequential-read", "mixed-70-30")
RECORDED = ("iops", "throughput", "latency_mean", "latency_p50", "latency_p99", "latency_p99_9")
PAUSE_S = 10
"""Pause between two sessions, and between two attempts to lock a busy disk."""
MOST_ATTEMPTS = 60


def main() -> int:
    """Records sessions one after another and writes all values after each."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--target", default=".")
    arguments.add_argument("--sessions", type=int, default=10)
    arguments.add_argument("--blocks", type=int, default=20)
    arguments.add_argument("--runtime", default="500ms")
    arguments.add_argument("--scheduler", default="none")
    arguments.add_argument("--out", type=Path, default=Path(__file__).parent / "noise.csv")
    given = arguments.parse_args()
    rows: list[list[object]] = []
    with passing_store() as store:
        for session in range(given.sessions):
            values = against_itself(
                given.target,
                WORKLOADS,
                given.scheduler,
                blocks=given.blocks,
                runtime=given.runtime,
                seed=session,
            )
            rows += _rows(session, _compare_when_free(values, store))
            _write(given.out, rows)
            console_out().print(f"session {session + 1} of {given.sessions}: {len(rows)} runs", markup=False)
            if session + 1 < given.sessions:
                time.sleep(PAUSE_S)
    return 0


def _compare_when_free(values: SpecValues, store: Store) -> ExperimentRecord:
    """Runs the experiment, and retries while another program holds the disk."""
    for _ in range(MOST_ATTEMPTS - 1):
        record = _attempt(values, store)
        if record is not None:
            return record
        time.sleep(PAUSE_S)
    return compare(build_specs(values)[0], store, ProgressDisplay(quiet=True))


def _attempt(values: SpecValues, store: Store) -> ExperimentRecord | None:
    try:
        return compare(build_specs(values)[0], store, ProgressDisplay(quiet=True))
    except LockedError as error:
        console_out().print(f"waiting: {error}", markup=False)
        return None


def _rows(session: int, record: ExperimentRecord) -> list[list[object]]:
    """One row per run, in the order of the runs, with the package's metrics."""
    figures = {
        (workload.name, name): metric_values(record.samples, workload, METRICS[name])
        for workload in record.spec.workloads
        for name in RECORDED
    }
    start = datetime.datetime.fromisoformat(record.samples[0].started_at)
    rows: list[list[object]] = []
    for sample in record.samples:
        if sample.status != "ok":
            continue
        cell = sample.cell
        offset_s = (datetime.datetime.fromisoformat(sample.started_at) - start).total_seconds()
        values = [figures[cell.workload, name].get(cell.scheduler, {}).get(cell.block) for name in RECORDED]
        rows.append(
            [session, cell.block, cell.position, cell.workload, cell.scheduler, f"{offset_s:.1f}"]
            + ["" if value is None else f"{value:.6g}" for value in values]
        )
    return rows


def _write(path: Path, rows: list[list[object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["session", "block", "position", "workload", "label", "offset_s", *RECORDED])
        writer.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
