"""Measures the bias of the switchback where truth is known: in the simulator, against long runs.

    python benches/verdicts/switchback_bias.py [--device NAME]… [--workload NAME]… [--markdown FILE]

For each device and workload a pilot finds the length of slots as on a host, then all schedulers take turns
within one load, and each has long runs of its own. Both give the ratio of each scheduler to the first in IOPS
and in the metric that decides the workload. A ratio agrees if the two differ by no more than 2 %.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from blklab.analysis.metrics import METRICS
from blklab.analysis.settling import (
    LARGEST_CUT,
    LONGEST_SLOT_NS,
    Settling,
    remaining_change,
    settling_time,
    tail_latency_ns,
)
from blklab.backends.protocol import Session, SessionOptions
from blklab.backends.sim import BACKEND
from blklab.cli.output import console_out
from blklab.quantities.units import format_duration
from blklab.records.samples import DirectionSample, JobSample, LatencyHistogram, RunSample, SlotSample
from blklab.spec.plan import Cell, CellKey, derive_seed
from blklab.spec.schedulers import SchedulerChoice, parse_scheduler_choice
from blklab.spec.slots import SlotDecision
from blklab.spec.stretches import Stretch, stretch_of
from blklab.spec.targets import parse_target
from blklab.spec.workloads import Workload, load_workload, parse_workload

DEVICES = ("hdd-7200", "ssd-sata", "nvme-tlc", "emmc", "virtio-network")
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
SHIPPED = (
    "buffered-sequential-read",
    "direct-sequential-write",
    "many-readers",
    "mixed-70-30",
    "random-read-4k-qd1",
    "random-read-4k-qd32",
    "random-write-4k-qd1",
    "random-write-4k-qd32",
    "reader-beside-writers",
    "write-ahead-log",
)
OWN = {
    "paced-clients": """; decide-by: latency_p99
[clients]
rw=randread
bs=16k
direct=1
numjobs=4
size=1g
thinktime=2ms
time_based
ramp_time=250ms
runtime=2s
""",
    "backup-beside-database": """; decide-by: iops
; focus: database
[global]
direct=1
time_based
ramp_time=250ms
runtime=2s
[database]
rw=randrw
rwmixread=80
bs=8k
ioengine=libaio
iodepth=8
size=1g
[backup]
rw=read
bs=1m
size=1g
""",
}
"""Loads beside the shipped ones: one that leaves the disk idle at times, one that mixes sizes and orders."""
TOLERANCE = 0.02
PILOT_SLOT_NS = 4_000_000_000
PILOT_ROUNDS = 2
MOST_PILOT_ROUNDS = 8
LENGTHENING = 3
"""Factor by which slots grow in which a scheduler still changes."""
FEWEST_ROUNDS = 10
SEEDS = (11, 12, 13)
NS = 1_000_000_000


@dataclass(frozen=True)
class Ratio:
    """One scheduler against the first in one metric."""

    scheduler: str
    metric: str
    switchback: float
    long_runs: float
    between_seeds: float
    """Largest deviation of the ratio of one seed's long runs from that of all."""

    @property
    def bias(self) -> float:
        """Of the switchback's ratio, as a fraction."""
        return self.switchback / self.long_runs - 1


@dataclass(frozen=True)
class CellResult:
    """One device under one workload."""

    device: str
    workload: str
    decision: SlotDecision
    ratios: list[Ratio]

    @property
    def verdict(self) -> str:
        """``refuses``, ``agrees`` or ``disagrees``."""
        if self.decision.slot_ns is None:
            return "refuses"
        return "agrees" if all(abs(ratio.bias) <= TOLERANCE for ratio in self.ratios) else "disagrees"


def main() -> int:
    """Measures all cells, prints them as they come, and returns 1 if any disagrees."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--device", action="append", help=f"default: {', '.join(DEVICES)}")
    arguments.add_argument("--workload", action="append", help="default: ten shipped ones and two more")
    arguments.add_argument("--seconds", type=float, default=600, help="virtual time of each scheduler")
    arguments.add_argument("--ios", type=float, default=1e6, help="I/Os after which a scheduler has enough")
    arguments.add_argument(
        "--ramp", type=float, default=20, help="virtual time (s) that is left out at first"
    )
    arguments.add_argument("--precondition", action="store_true", help="flash devices in their steady state")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--markdown", type=Path, help="file for the table")
    given = arguments.parse_args()
    names = [
        (device, workload)
        for device in given.device or DEVICES
        for workload in given.workload or (*SHIPPED, *OWN)
    ]
    console = console_out()
    with ThreadPoolExecutor(given.threads) as pool:
        results = []
        for result in pool.map(lambda name: _measure(*name, given), names):
            results.append(result)
            console.print(_text(result), markup=False, highlight=False, soft_wrap=True)
    counts = Counter(result.verdict for result in results)
    console.print(", ".join(f"{counts[word]} {word}" for word in ("agrees", "refuses", "disagrees")))
    if given.markdown:
        given.markdown.write_text(_table(results), encoding="utf-8")
    return 1 if counts["disagrees"] else 0


def _measure(device: str, workload_name: str, given: argparse.Namespace) -> CellResult:
    workload = _workload(workload_name)
    ramp_ns = int(given.ramp * NS)
    choices = [parse_scheduler_choice(name) for name in SCHEDULERS]
    flash = device not in ("hdd-7200", "sas-15k", "virtio-network")
    options = SessionOptions(run_id="bias", precondition=given.precondition and flash)
    with BACKEND.open(parse_target(f"sim:{device}"), options) as session:
        if reason := session.unswitchable(workload):
            return CellResult(device, workload_name, SlotDecision(reason=reason), [])
        pilot, settling = _pilot(session, workload, choices, given.seed)
        if settling.slot_ns is None:
            return CellResult(device, workload_name, settling.decision, [])
        ios = sum(sum(slot.ios) for of_one in _by_scheduler(pilot).values() for slot in of_one)
        rate = ios / (len(pilot) * PILOT_SLOT_NS / NS)
        length_ns = int(min(given.seconds, max(given.ramp, given.ios / rate)) * NS)
        decision, turns = _switchback(
            session, workload, choices, pilot, settling.decision, length_ns, ramp_ns, given.seed
        )
        if decision.slot_ns is None:
            return CellResult(device, workload_name, decision, [])
    long_runs = {
        choice.label: _long_runs(device, workload, choice, length_ns, ramp_ns, options) for choice in choices
    }
    # Flash is faster while its cache takes the writes, so both begin to count when that is over.
    counted = [turn for turn in turns if turn.slot is not None and turn.slot.start_ns >= ramp_ns]
    return CellResult(device, workload_name, decision, list(_ratios(workload, counted, long_runs)))


def _workload(name: str) -> Workload:
    return parse_workload(OWN[name], name=name, source=name) if name in OWN else load_workload(name)


def _stretch(
    workload: Workload,
    choices: Sequence[SchedulerChoice],
    decision: SlotDecision,
    seed: int,
    number: int,
    rounds: int,
) -> Stretch:
    return stretch_of(
        workload, choices, decision, seed=seed, number=number, first_round=number * 1000, rounds=rounds
    )


def _pilot(
    session: Session, workload: Workload, choices: Sequence[SchedulerChoice], seed: int
) -> tuple[list[RunSample], Settling]:
    """Slots that are long enough to settle in, as many as their noise demands."""
    probe = SlotDecision(slot_ns=PILOT_SLOT_NS, reason="pilot")
    rounds = PILOT_ROUNDS
    while True:
        samples = session.run_stretch(_stretch(workload, choices, probe, seed, 0, rounds))
        settling = settling_time(_by_scheduler(samples), tail_latency_ns=tail_latency_ns(samples))
        if rounds >= MOST_PILOT_ROUNDS or settling.resolution <= TOLERANCE / 2:
            return samples, settling
        rounds *= 2


def _switchback(
    session: Session,
    workload: Workload,
    choices: Sequence[SchedulerChoice],
    pilot: Sequence[RunSample],
    decision: SlotDecision,
    length_ns: int,
    ramp_ns: int,
    seed: int,
) -> tuple[SlotDecision, list[RunSample]]:
    """The slots of an experiment: longer ones than the pilot found if schedulers still change in them."""
    while True:
        slot_ns = decision.slot_ns or 0
        kept = 1 - decision.settling_ns / slot_ns
        rounds = max(FEWEST_ROUNDS, round((length_ns + ramp_ns / len(choices)) / slot_ns / kept))
        samples = session.run_stretch(_stretch(workload, choices, decision, seed, 1, rounds))
        change = remaining_change(
            _by_scheduler([turn for turn in samples if turn.slot and turn.slot.start_ns >= ramp_ns]),
            settling_ns=decision.settling_ns,
        )
        if change is None:
            return decision, samples
        longer_ns = LENGTHENING * slot_ns
        if longer_ns > LONGEST_SLOT_NS:
            return SlotDecision(reason=change.reason), []
        decision = settling_time(
            _by_scheduler(pilot),
            tail_latency_ns=tail_latency_ns(pilot),
            shortest_slot_ns=longer_ns,
            shortest_settling_ns=int(LARGEST_CUT * longer_ns),
        ).decision
        if decision.slot_ns is None:
            return decision, []


def _by_scheduler(samples: Sequence[RunSample]) -> dict[str, list[SlotSample]]:
    slots: dict[str, list[SlotSample]] = {}
    for sample in samples:
        if sample.slot is None:
            raise SystemExit(f"{sample.cell.workload}: {sample.error}")
        slots.setdefault(sample.cell.scheduler, []).append(sample.slot)
    return slots


def _long_runs(
    device: str,
    workload: Workload,
    choice: SchedulerChoice,
    length_ns: int,
    ramp_ns: int,
    options: SessionOptions,
) -> list[list[JobSample]]:
    """The jobs of one run for each seed."""
    text = re.sub(r"^ramp_time=.*$", f"ramp_time={ramp_ns // 1000}us", workload.text, flags=re.MULTILINE)
    ramped = parse_workload(text, name=workload.name, source=workload.source)
    long_options = options.model_copy(update={"runtime_ns": max(length_ns, ramp_ns)})
    with BACKEND.open(parse_target(f"sim:{device}"), long_options) as session:
        runs = []
        for seed in SEEDS:
            key = CellKey(
                block=0,
                sequence=0,
                position=0,
                workload=workload.name,
                scheduler=choice.label,
                seed=derive_seed(seed, "long", 0, workload.name),
            )
            sample = session.run(Cell(key=key, workload=ramped, scheduler=choice))
            if sample.status != "ok":
                raise SystemExit(f"{device}, {workload.name}, {choice.label}: {sample.error}")
            runs.append(sample.jobs)
    return runs


def _ratios(
    workload: Workload, turns: Sequence[RunSample], long_runs: dict[str, list[list[JobSample]]]
) -> Iterator[Ratio]:
    first = SCHEDULERS[0]
    for metric in dict.fromkeys(("iops", workload.decide_by)):

        def value(runs: Sequence[Sequence[JobSample]], metric: str = metric) -> float:
            focused = [[job for job in jobs if job.name in workload.focus] for jobs in runs]
            computed = METRICS[metric].compute(_merged(focused))
            return float("nan") if computed is None else computed

        slots = {
            label: [sample.jobs for sample in turns if sample.cell.scheduler == label] for label in SCHEDULERS
        }
        for label in SCHEDULERS[1:]:
            truth = value(long_runs[label]) / value(long_runs[first])
            single = [
                value([one]) / value([other]) / truth - 1
                for one, other in zip(long_runs[label], long_runs[first], strict=True)
            ]
            yield Ratio(
                scheduler=label,
                metric=metric,
                switchback=value(slots[label]) / value(slots[first]),
                long_runs=truth,
                between_seeds=max(abs(deviation) for deviation in single),
            )


def _merged(runs: Sequence[Sequence[JobSample]]) -> list[JobSample]:
    """Several runs as if they were one long one."""
    merged = []
    for jobs in zip(*runs, strict=True):
        runtime_ns = sum(job.runtime_ns for job in jobs)
        directions = []
        for direction in dict.fromkeys(entry.direction for job in jobs for entry in job.directions):
            entries = [entry for job in jobs for entry in job.directions if entry.direction == direction]
            directions.append(
                DirectionSample(
                    direction=direction,
                    ios=sum(entry.ios for entry in entries),
                    bytes=sum(entry.bytes for entry in entries),
                    runtime_ns=runtime_ns,
                    latency=LatencyHistogram.merged(entry.latency for entry in entries),
                )
            )
        merged.append(jobs[0].model_copy(update={"runtime_ns": runtime_ns, "directions": directions}))
    return merged


def _text(result: CellResult) -> str:
    slots = "" if result.decision.slot_ns is None else f"{_slots(result.decision)}; "
    lines = [f"{result.device:15} {result.workload:25} {result.verdict:9} {slots}{result.decision.reason}"]
    for ratio in result.ratios:
        mark = " <--" if abs(ratio.bias) > TOLERANCE else ""
        lines.append(
            f"    {ratio.scheduler:12} {ratio.metric:12} {ratio.switchback:7.4f}"
            f" against {ratio.long_runs:7.4f}: {100 * ratio.bias:+6.2f} %"
            f" (seeds within {100 * ratio.between_seeds:.2f} %){mark}"
        )
    return "\n".join(lines)


def _slots(decision: SlotDecision) -> str:
    return f"{format_duration(decision.slot_ns or 0)}, {format_duration(decision.settling_ns)} cut"


def _table(results: Sequence[CellResult]) -> str:
    lines = ["| Device | Workload | Slots | Largest bias | |", "|---|---|---|---|---|"]
    for result in results:
        if result.decision.slot_ns is None:
            lines.append(
                f"| {result.device} | {result.workload} | none | | refuses: {result.decision.reason} |"
            )
            continue
        worst = max(result.ratios, key=lambda ratio: abs(ratio.bias))
        bias = f"{100 * worst.bias:+.2f} % ({worst.metric}, {worst.scheduler})"
        lines.append(
            f"| {result.device} | {result.workload} | {_slots(result.decision)} | {bias} | {result.verdict} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
