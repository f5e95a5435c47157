#!/usr/bin/env python3
"""Measures how much faster two Dask workers of one thread are than one, in turns; needs two free processors.

Beside it stands what a second thread is worth here without a cluster. Schedulers and workers have the
settings of `examples/dask.yaml`, or Dask's own. Each cluster runs alone, since an idle one takes processor
time.

python benches/cluster.py [--pairs 5] [--simulations 12] [--simulated-s 40] [--dask-defaults]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from blklab.backends import THIS_MACHINE, Workers
from blklab.backends.cluster.client import Cluster
from blklab.backends.protocol import SessionOptions
from blklab.backends.sim import BACKEND
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.targets import parse_target
from blklab.spec.workloads import load_workload

SIMULATED_S = 40
"""Length of a simulated load, which takes about a second."""
SETTINGS = Path(__file__).parents[1] / "examples" / "dask.yaml"


@contextmanager
def cluster(workers: int, settings: Path | None = SETTINGS) -> Iterator[Cluster]:
    """A scheduler with workers, as processes of this machine; Dask's own settings in place of None."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        address = Path(folder) / "scheduler.json"
        environment = os.environ | {"DASK_CONFIG": str(settings or folder)}
        started = partial(_started, stack, folder, environment)
        started("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(address))
        while not address.exists() or not address.read_text():
            time.sleep(0.05)
        found = json.loads(address.read_text())["address"]
        for _ in range(workers):
            started("worker", found, "--nthreads", "1", "--no-nanny")
        one = Cluster(found)
        while True:
            with one.simulations() as simulations:
                if simulations.parallel == 2 * workers:
                    break
        yield one


def _started(stack: ExitStack, folder: str, environment: dict[str, str], kind: str, *options: str) -> None:
    command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard", *options]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    stack.callback(process.wait)
    stack.callback(process.kill)


def seconds(
    workers: Workers, simulations: int, *, simulated_s: int = SIMULATED_S, threads: int | None = None
) -> float:
    """The time of so many simulations of a mixed load."""
    options = SessionOptions(run_id="benchmark", workers=workers, runtime_ns=simulated_s * 1_000_000_000)
    choice = SchedulerChoice(name="bfq", label="bfq")
    workload = load_workload("mixed-70-30")
    cells = [
        Cell(
            key=CellKey(
                block=number,
                sequence=number,
                position=0,
                workload=workload.name,
                scheduler="bfq",
                seed=number,
            ),
            scheduler=choice,
            workload=workload,
        )
        for number in range(simulations)
    ]
    with BACKEND.open(parse_target("sim:ssd-sata"), options) as session:
        begun = time.monotonic()
        with ThreadPoolExecutor(threads or session.parallel) as executor:
            samples = list(executor.map(session.run, cells))
        taken = time.monotonic() - begun
    if any(sample.status != "ok" for sample in samples):
        raise SystemExit(f"a simulation failed: {samples[0].error}")
    return taken


def main() -> int:
    """Prints every pair, and the median of their ratios."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pairs", type=int, default=5)
    arguments.add_argument("--simulations", type=int, default=12)
    arguments.add_argument("--simulated-s", type=int, default=SIMULATED_S)
    arguments.add_argument("--dask-defaults", action="store_true")
    given = arguments.parse_args()
    measured = partial(seconds, simulations=given.simulations, simulated_s=given.simulated_s)

    def measured_there(workers: int) -> float:
        with cluster(workers, None if given.dask_defaults else SETTINGS) as there:
            return measured(there)

    workers, threads = [], []
    for _ in range(given.pairs):
        by_one, by_two = (measured_there(number) for number in (1, 2))
        workers.append(by_one / by_two)
        here = [measured(THIS_MACHINE, threads=number) for number in (1, 2)]
        threads.append(here[0] / here[1])
        sys.stdout.write(
            f"one worker {by_one:.2f} s, two {by_two:.2f} s: {workers[-1]:.2f} times; "
            f"one thread {here[0]:.2f} s, two {here[1]:.2f} s: {threads[-1]:.2f} times\n"
        )
        sys.stdout.flush()
    sys.stdout.write(f"medians: workers {median(workers):.2f}, threads {median(threads):.2f} times\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
