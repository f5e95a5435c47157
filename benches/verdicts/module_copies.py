"""Counts how often an unchanged copy of a scheduler "beats" the original on loop devices (root).

    python benches/verdicts/module_copies.py [--scheduler kyber] [--comparisons 100] [--blocks 6]

The copy is a module built by blklab. On a machine that takes no modules, the stock scheduler stands for it:
the same comparison is made, and only loading and the compiler are left out. Every winner is false.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from against_itself import against_itself, passing_store

from blklab.analysis.verdict import analyse
from blklab.cli.output import console_out
from blklab.cli.progress import ProgressDisplay
from blklab.experiment.pipeline import compare
from blklab.spec.request import SpecValues, build_specs


def main() -> int:
    """Runs the comparisons and prints one line for each."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--target", default="loop:1g")
    arguments.add_argument("--comparisons", type=int, default=100)
    arguments.add_argument("--blocks", type=int, default=6)
    arguments.add_argument("--runtime", default="1s")
    arguments.add_argument("--workload", default="random-read-4k-qd32")
    arguments.add_argument("--scheduler", default="kyber")
    given = arguments.parse_args()
    takes_modules = Path("/proc/modules").exists()
    console = console_out()
    console.print(f"{given.scheduler} and {'its copy' if takes_modules else 'itself: no modules here'}")
    outcomes: Counter[str] = Counter()
    with passing_store() as store:
        for number in range(given.comparisons):
            values = against_itself(
                given.target,
                [given.workload],
                given.scheduler,
                blocks=given.blocks,
                runtime=given.runtime,
                seed=number,
            )
            if takes_modules:
                arms = SpecValues(schedulers=f"{given.scheduler},{given.scheduler}@copy")
                values = values.overlaid_by(arms)
            with ProgressDisplay(quiet=not sys.stderr.isatty()) as display:
                record = compare(build_specs(values)[0], store, display)
            verdict = analyse(record).verdict
            outcomes[verdict.status] += 1
            console.print(f"{number + 1:3d}  {verdict.status}", markup=False)
    console.print(
        f"{outcomes['best']} of {given.comparisons} named a winner"
        f" ({outcomes['equal']} equal, {outcomes['undecided']} undecided)",
        markup=False,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
