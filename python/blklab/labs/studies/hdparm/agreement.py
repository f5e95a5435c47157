"""Compares hdparm with the job that emulates it, on this machine's disk."""

from __future__ import annotations

from blklab.labs.studies.described.runs import paired_ratios
from blklab.labs.studies.hdparm.findings import interval_row
from blklab.labs.studies.hdparm.jobs import BUFFERED, BUFFERED_JOB
from blklab.labs.studies.hdparm.set_up import Agreement
from blklab.labs.studies.hdparm.timing_tests import UNIT, mebibyte_rates
from blklab.labs.studies.replication.pictures import IntervalPicture
from blklab.labs.studies.replication.result import ComparedValue, Statement, StudyResult
from blklab.labs.studies.replication.statements import equal, mean_of
from blklab.records.experiment import ExperimentRecord

NAME = "job-like-hdparm"


def read_agreement(agreement: Agreement, record: ExperimentRecord) -> StudyResult:
    """The job over hdparm in each block and under each scheduler; the two run in random order."""
    percent = f"{100 * agreement.margin:g} %"
    says = f"The job that emulates hdparm -t reads as fast as hdparm itself, within {percent}"
    tools = {str(sample.engine.get("name")) for sample in record.successes(workload=BUFFERED)}
    rates = {name: mebibyte_rates(record, name) for name in (BUFFERED, BUFFERED_JOB)}
    ratios = [
        ratio
        for label in agreement.schedulers
        for ratio in paired_ratios(
            {name: found.get(label, {}) for name, found in rates.items()}, BUFFERED_JOB, BUFFERED
        )
    ]
    if tools != {record.spec.workload(BUFFERED).tool} or not ratios:
        found = f"the load came from {', '.join(sorted(tools)) or 'no tool'}"
        return StudyResult(statements=[Statement(NAME, says, "ours", "undecided", found)])
    ratio = mean_of(ratios)
    table = "hdparm -t and the job that emulates it"
    return StudyResult(
        [
            *(
                ComparedValue(
                    name,
                    table,
                    UNIT,
                    None,
                    mean_of([rate for one in found.values() for rate in one.values()]),
                )
                for name, found in (("hdparm -t", rates[BUFFERED]), ("the job", rates[BUFFERED_JOB]))
            ),
            ComparedValue("the job over hdparm -t, in pairs", table, "", None, ratio),
        ],
        [
            equal(
                NAME,
                says,
                ratio,
                margin=agreement.margin,
                why=f"{len(ratios)} pairs, each in the same block under the same scheduler, in random order",
            )
        ],
        [
            IntervalPicture(
                "agreement",
                "The job that emulates hdparm -t, over hdparm itself",
                "Each row is a pair of runs on this machine; the last row is their mean with its interval.",
                "times",
                (
                    *(interval_row(f"pair {n}", mean_of([one])) for n, one in enumerate(ratios, start=1)),
                    interval_row("mean", ratio),
                ),
                marks=((1.0, "the same"),),
            )
        ],
    )
