"""Reads the runs on both machines: is one of the four schedulers faster?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from blklab.labs.studies.described.description import HIGHEST, HIGHEST_OTHER, LOWEST
from blklab.labs.studies.described.runs import arithmetic_mean, paired_ratios, picked, unpaired_ratio
from blklab.labs.studies.hdparm.experiments import printed_name, repeated_name
from blklab.labs.studies.hdparm.findings import rows_of
from blklab.labs.studies.hdparm.jobs import TESTS
from blklab.labs.studies.hdparm.set_up import FourSchedulersSetUp, StudiedMachine
from blklab.labs.studies.hdparm.timing_tests import WHY_EQUAL, mebibyte_rates, rates_of
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.pictures import IntervalPicture
from blklab.labs.studies.replication.result import ComparedValue, IntervalEstimate, StudyResult
from blklab.labs.studies.replication.statements import equal, greater, mean_of
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.records.experiment import ExperimentRecord


def read_machines(
    options: StudyOptions,
    folder: StudyFolder,
    set_up: FourSchedulersSetUp,
    records: Mapping[str, ExperimentRecord],
) -> StudyResult:
    """Compares each machine and test, as printed and in randomised blocks."""
    found = StudyResult()
    for machine in set_up.machines_at(options):
        for test in TESTS:
            _read_test(machine, test, folder, set_up, records, found)
    for test, printed in TESTS.items():
        values = [one for one in found.values if one.table.endswith(f"{printed}, repeated")]
        found.pictures.append(
            IntervalPicture(
                test,
                f"{printed.capitalize()}: each scheduler over {set_up.schedulers[0]}",
                "Published: three runs each, one scheduler after another; ours: in randomised blocks. "
                "95 % intervals.",
                "times",
                tuple(row for one in values for row in rows_of(replace(one, name=_short_name(one)))),
                marks=((1.0, "no effect"),),
            )
        )
    return found


def _short_name(value: ComparedValue) -> str:
    """A name short enough for a picture, such as ``machine 1: bfq``."""
    return f"{value.table.split(',')[0]}: {value.name.split(' over ')[0]}"


def _read_test(
    machine: StudiedMachine,
    test: str,
    folder: StudyFolder,
    set_up: FourSchedulersSetUp,
    records: Mapping[str, ExperimentRecord],
    found: StudyResult,
) -> None:
    first, *others = set_up.schedulers
    title, printed_test = machine.title, TESTS[test]
    theirs = {
        label: folder.values(
            "hdparm_runs.csv",
            "throughput_MBps",
            machine=machine.published,
            test=printed_test,
            scheduler=label,
        )
        for label in set_up.schedulers
    }
    means = {label: arithmetic_mean(runs) for label, runs in theirs.items()}
    once = records[printed_name(machine.name)]
    ours = {label: arithmetic_mean(rates_of(once, test, label)) for label in set_up.schedulers}
    repeated = mebibyte_rates(records[repeated_name(machine.name)], test)
    found.values += [
        ComparedValue(
            f"{label} over {first}",
            f"{title}: {printed_test}, as printed",
            "",
            IntervalEstimate(means[label] / means[first]),
            IntervalEstimate(ours[label] / ours[first]),
        )
        for label in others
    ]
    found.values += [
        ComparedValue(
            f"{label} over {first}",
            f"{title}: {printed_test}, repeated",
            "",
            unpaired_ratio(theirs[label], theirs[first]),
            mean_of(paired_ratios(repeated, label, first)),
        )
        for label in others
    ]
    fastest = picked(HIGHEST, repeated) or ""
    slowest = picked(LOWEST, repeated, beside=fastest) or ""
    best = max(means, key=means.__getitem__)
    second = picked(HIGHEST_OTHER, repeated, beside=best) or ""
    found.statements += [
        equal(
            f"{machine.name}-{test}-equal",
            f"{title}: in {printed_test} no two schedulers differ by 2 % ({fastest} over {slowest})",
            mean_of(paired_ratios(repeated, fastest, slowest)),
            why=WHY_EQUAL[test],
        ),
        greater(
            f"{machine.name}-{test}-fastest",
            f"{title}: {best} is fastest in {printed_test}",
            mean_of(paired_ratios(repeated, best, second)),
            why=f"against {second}",
        ),
    ]
