"""Counts how often a scheduler "beats" itself: comparisons of none with none on a real disk (root).

    python benches/verdicts/a_against_a.py [--target DIRECTORY] [--comparisons 20] [--blocks 6] [--runtime 1s]
    python benches/verdicts/a_against_a.py --copy --scheduler kyber --target loop:1g --comparisons 100

With ``--copy`` an unchanged copy, a module that blklab builds, stands against the original. On a machine that
takes no modules the scheduler stands for it: only loading and the compiler are left out. Every winner is
false. At 95 % confidence at most one in twenty is expected.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from against_itself import against_itself, passing_store

from blklab.analysis.verdict import analyse
from blklab.experiment.pipeline import compare
from blklab.progress.experiment import ProgressDisplay
from blklab.report.terminal import console_out
from blklab.spec.request import SpecValues, build_specs


def main() -> int:
    """Runs the comparisons and prints one line for each."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--target", default=".")
    arguments.add_argument("--comparisons", type=int, default=20)
    arguments.add_argument("--blocks", type=int, default=6)
    arguments.add_argument("--runtime", default="1s")
    arguments.add_argument("--workload", default="random-read-4k-qd32")
    arguments.add_argument("--scheduler", default="none")
    arguments.add_argument("--copy", action="store_true")
    given = arguments.parse_args()
    with_copy = given.copy and Path("/proc/modules").exists()
    console = console_out()
    if given.copy:
        console.print(f"{given.scheduler} and {'its copy' if with_copy else 'itself: no modules here'}")
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
            if with_copy:
                arms = f"{given.scheduler},{given.scheduler}@copy"
                values = values.overlaid_by(SpecValues(schedulers=arms))
            with ProgressDisplay(quiet=not sys.stderr.isatty()) as display:
                record = compare(build_specs(values)[0], store, display)
            analysis = analyse(record)
            verdict = analysis.verdict
            decided = analysis.deciding(record.spec.workloads[0].name)
            pair = next(c for c in analysis.comparisons if decided and c.metric == decided.metric)
            outcomes[verdict.status] += 1
            interval = f"[{pair.ci_low:.3f}, {pair.ci_high:.3f}]"
            console.print(
                f"{number + 1:3d}  {verdict.status:9s}  first/second {pair.ratio:.3f} {interval}"
                f"  p {pair.p_adjusted:.3f}",
                markup=False,
            )
    console.print(
        f"{outcomes['best']} of {given.comparisons} named a winner"
        f" ({outcomes['equal']} equal, {outcomes['undecided']} undecided)",
        markup=False,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
