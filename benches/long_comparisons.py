"""Memory and processor time of a long comparison on a model, from its first run to the written report.

``python benches/long_comparisons.py --blocks 10000`` (some minutes); ``--store FILE`` keeps the
runs, and ``--again`` analyses those of such a file without running anything.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from blklab.analysis.verdict import analyse
from blklab.experiment.blocks import Progress
from blklab.experiment.outlook import Outlook
from blklab.experiment.pipeline import compare
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.records.store import Store
from blklab.report.documents.comparison import compare_document
from blklab.report.html.comparison import render_html
from blklab.spec.request import SpecValues, build_specs


class _Unheard:
    """Receives progress, and says nothing."""

    def announce(self, line: str) -> None:
        pass

    def begun(self, record: ExperimentRecord) -> None:
        pass

    def planned(self, outlook: Outlook) -> None:
        pass

    def progressed(self, progress: Progress) -> None:
        pass

    def measured(self, sample: RunSample) -> None:
        pass


def main() -> None:
    """Prints the peak of the memory after each stage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=1_000)
    parser.add_argument("--workload", default="reader-beside-writers")
    parser.add_argument("--runtime", default="200ms")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    _tell("imports")
    with tempfile.TemporaryDirectory() as folder:
        store_file = options.store or Path(folder, "runs.sqlite")
        with Store.opened(str(store_file)) as store:
            record = store.load("latest") if options.again else _compared(store, options)
            _tell(f"runs and their loading ({len(record.samples)} runs)")
            document = compare_document(record, analyse(record))
            _tell("analysis")
            page = render_html(record, document)
            _tell(f"report ({len(page) >> 10} KiB)")


def _compared(store: Store, options: argparse.Namespace) -> ExperimentRecord:
    values = SpecValues(
        targets=["sim:nvme-tlc"],
        schedulers=["none", "mq-deadline"],
        workloads=[options.workload],
        blocks=options.blocks,
        runtime=options.runtime,
    )
    (spec,) = build_specs(values)
    return compare(spec, store, _Unheard())


def _tell(stage: str) -> None:
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    sys.stdout.write(f"{peak_mib:5} MiB, {time.process_time():7.1f} s of processor time: {stage}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
