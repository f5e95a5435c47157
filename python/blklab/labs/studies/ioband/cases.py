"""Reads the four cases as printed, and the two shared-device cases with the load on the ioband device."""

from __future__ import annotations

from collections.abc import Mapping

from blklab.labs.studies.ioband.experiments import on_device_name
from blklab.labs.studies.ioband.set_up import GROUPS, PHASES, IobandSetUp
from blklab.labs.studies.ioband.shares import (
    Latencies,
    Shares,
    case_shares,
    farthest,
    mean_shares,
    phase_latencies,
    published_latencies,
    published_shares,
    shares_text,
)
from blklab.labs.studies.replication.pictures import MatrixPicture, Picture
from blklab.labs.studies.replication.result import ComparedValue, IntervalEstimate, Statement, StudyResult
from blklab.labs.studies.replication.statements import within
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.quantities.formatting import rounded
from blklab.records.experiment import ExperimentRecord

THIRDS_WITHIN_POINTS = 2.0
"""Percentage points within which three shares count as a third each."""
CLAIM_WITHIN_POINTS = 2.0
"""Percentage points within which shares count as those of the weights."""
WAIT_WITHIN = 0.4
"""Relative difference allowed for the longest wait, which one of tens of thousands of operations decides."""
_THIRDS: Shares = (100 / 3,) * 3


def read_cases(
    folder: StudyFolder, set_up: IobandSetUp, records: Mapping[str, ExperimentRecord]
) -> StudyResult:
    """Compares shares and latencies of every phase with the published ones."""
    result = StudyResult([], [], [])
    rows: dict[str, dict[str, Shares]] = {}
    for name, case in set_up.cases.items():
        [sample] = records[name].successes(set_up.sim.schedulers[0])
        ours = case_shares(sample)
        theirs = {phase: published_shares(folder, name, phase) for phase in PHASES}
        rows[f"{name}, published"], rows[f"{name}, ours"] = theirs, ours
        for phase in PHASES:
            result.values.extend(_share_values(name, phase, theirs[phase], ours[phase]))
        for phase in PHASES:
            printed = published_latencies(folder, name, phase)
            result.values.extend(_latency_values(name, phase, printed, phase_latencies(sample, phase)))
        result.statements.extend(_case_statements(name, set_up, theirs, ours))
        if not case.buffered:
            result.statements.append(_elevator(name, folder, set_up, records[name]))
        if case.own_partition:
            continue
        [sample] = records[on_device_name(name)].successes(set_up.sim.schedulers[0])
        aimed = case_shares(sample)
        rows[f"{name}, ioband device"] = aimed
        result.statements.append(_completion(name, case.buffered, set_up, aimed))
    result.pictures.append(_picture(rows))
    return result


def _case_statements(
    case: str, set_up: IobandSetUp, theirs: Mapping[str, Shares], ours: Mapping[str, Shares]
) -> list[Statement]:
    number = case.replace(" ", "-")
    mean, printed = mean_shares(ours.values()), mean_shares(theirs.values())
    wanted = "/".join(f"{share:.0f}" for share in set_up.wanted)
    distance = farthest(mean, set_up.wanted)
    return [
        Statement(
            f"{number}-weights",
            f"{case.capitalize()}: the groups get {wanted} %.",
            "published",
            "holds" if distance <= CLAIM_WITHIN_POINTS else "fails",
            f"{shares_text(mean)} % on average of the four phases",
            "the load goes to the partition and passes no ioband device; published: "
            f"{shares_text(printed)} %",
        ),
        within(
            f"{number}-thirds",
            f"{case.capitalize()}: on the partition, each group gets a third, within "
            f"{THIRDS_WITHIN_POINTS:g} "
            "percentage points.",
            IntervalEstimate(farthest(mean, _THIRDS)),
            0,
            THIRDS_WITHIN_POINTS,
            unit="percentage points",
            why=f"ours {shares_text(mean)} %; published: {farthest(printed, _THIRDS):.1f} percentage points "
            "away",
        ),
    ]


def _completion(case: str, buffered: bool, set_up: IobandSetUp, aimed: Mapping[str, Shares]) -> Statement:
    """States that equal work run to its end hides weights: a fast group's share ends with its work."""
    number = case.replace(" ", "-")
    writes = mean_shares(shares for phase, shares in aimed.items() if "write" in phase)
    if buffered:
        return within(
            f"{number}-flusher",
            f"{case.capitalize()} on the ioband device: each group still gets a third of buffered writes, "
            f"within {THIRDS_WITHIN_POINTS:g} percentage points.",
            IntervalEstimate(farthest(writes, _THIRDS)),
            0,
            THIRDS_WITHIN_POINTS,
            unit="percentage points",
            why=f"{shares_text(writes)} %: the flusher writes the pages, and dm-ioband charges its bios to "
            "the default group, whichever group dirtied them",
        )
    mean = mean_shares(aimed.values())
    bound = completion_shares(set_up.wanted)
    return within(
        f"{number}-completion",
        f"{case.capitalize()} on the ioband device: when each group runs equal work to its end, the heaviest "
        "group's printed share lies above a third and well below its weight.",
        IntervalEstimate(mean[-1]),
        _THIRDS[-1] + THIRDS_WITHIN_POINTS,
        set_up.wanted[-1] - 2 * THIRDS_WITHIN_POINTS,
        unit="%",
        why=f"{shares_text(mean)} %: once the heaviest group finishes, the others have the disk, and "
        f"tiotest prints work over time; weights that hold exactly would print as {shares_text(bound)} %",
    )


def _elevator(case: str, folder: StudyFolder, set_up: IobandSetUp, record: ExperimentRecord) -> Statement:
    """States that the longest waits of direct random I/O reveal cfq's slices."""
    phases = [phase for phase in PHASES if phase.startswith("random")]
    printed = max(published_latencies(folder, case, phase).maximum_ms for phase in phases)
    waits = {}
    for scheduler in set_up.sim.schedulers:
        [sample] = record.successes(scheduler)
        waits[scheduler] = max(phase_latencies(sample, phase).maximum_ms for phase in phases)
    first, *others = waits
    spelt = ", ".join(f"{scheduler} {rounded(wait)} ms" for scheduler, wait in waits.items())
    tasks = set_up.threads * len(GROUPS)
    return within(
        f"{case.replace(' ', '-')}-elevator",
        f"{case.capitalize()}: under {first}, the longest wait for random I/O is within "
        f"{100 * WAIT_WITHIN:g} % of the published one.",
        IntervalEstimate(waits[first] / printed),
        1 - WAIT_WITHIN,
        1 + WAIT_WITHIN,
        why=f"published {rounded(printed)} ms; {spelt}. {tasks} threads with slices of 100 ms each make "
        f"a round of {tasks / 10:g} s, so the elevator beneath was probably cfq and not "
        f"{' or '.join(others)}",
    )


def completion_shares(wanted: Shares) -> Shares:
    """Shares of the printed rates if all groups have equal work and the weights hold exactly.

    Groups are served by weight until the heaviest finishes, then the rest by their weights, and so on; each
    rate is the work over the group's own time.
    """
    left = dict.fromkeys(range(len(wanted)), 1.0)
    now, rates = 0.0, [0.0] * len(wanted)
    while left:
        whole = sum(wanted[group] for group in left)
        first = min(left, key=lambda group: left[group] / wanted[group])
        step = left[first] * whole / wanted[first]
        now += step
        rates[first] = 1 / now
        left = {group: work - step * wanted[group] / whole for group, work in left.items() if group != first}
    return tuple(100 * rate / sum(rates) for rate in rates)


def _share_values(case: str, phase: str, theirs: Shares, ours: Shares) -> list[ComparedValue]:
    return [
        ComparedValue(
            f"{phase}, group {group}",
            f"{case.capitalize()}: shares of the rates",
            "%",
            IntervalEstimate(x),
            IntervalEstimate(y),
        )
        for group, x, y in zip(GROUPS, theirs, ours, strict=True)
    ]


def _latency_values(case: str, phase: str, theirs: Latencies, ours: Latencies) -> list[ComparedValue]:
    table = f"{case.capitalize()}: latencies over all groups"
    pairs = (
        ("average", "ms", theirs.average_ms, ours.average_ms),
        ("maximum", "ms", theirs.maximum_ms, ours.maximum_ms),
        ("over 2 s", "%", theirs.over_2s_percent, ours.over_2s_percent),
        ("over 10 s", "%", theirs.over_10s_percent, ours.over_10s_percent),
    )
    return [
        ComparedValue(f"{phase}, {name}", table, unit, IntervalEstimate(x), IntervalEstimate(y))
        for name, unit, x, y in pairs
    ]


def _picture(rows: Mapping[str, Mapping[str, Shares]]) -> Picture:
    return MatrixPicture(
        "cases",
        "Share of the group of weight 60 in each phase, %",
        "On the partition, as published, about a third whatever the weight. On the ioband device weights "
        "begin "
        "to show, except in buffered writes.",
        "case",
        "phase",
        tuple(rows),
        tuple(PHASES),
        tuple(tuple(shares[phase][-1] for phase in PHASES) for shares in rows.values()),
        1,
        100 / 3,
    )
