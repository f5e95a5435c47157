"""Measures the bias of the switchback where truth is known: on modelled disks, against long runs.

    python benches/verdicts/switchback_bias.py [--device NAME]… [--workload NAME]… [--write]
    python benches/verdicts/switchback_bias.py --guests --ios 3e4 --ramp 5 --device hdd-7200

For each device and workload the package's own pilot finds the length of slots, its test for carry-over
lengthens them, and its analysis gives the ratio of each scheduler to the first in IOPS and in the metric that
decides the workload. The same ratios of long runs, several seeds of each scheduler, are the truth. A ratio
agrees if the two differ by no more than 2 %. ``--write`` puts the table into docs/appendix/verdicts.md. Exits
with 1 if a cell disagrees.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial

from loads import OWN, named_load
from page import write_table
from pool import add_pool_options, pool_of

from blklab.analysis.metrics import METRICS
from blklab.analysis.slot_values import merged_jobs
from blklab.analysis.verdict import Analysis, analyse
from blklab.backends import sim, uml
from blklab.backends.protocol import Session, SessionOptions
from blklab.experiment.slots import ON_A_MODEL, PILOT_FAILED, piloted, reasons_for_runs
from blklab.experiment.switchback import FINAL_CHECK, influence, lengthened
from blklab.linux.machine.description import describe_machine
from blklab.quantities.units import format_duration
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import JobSample, RunSample
from blklab.report.pages.markdown import markdown_table
from blklab.report.terminal import console_out
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.plan import Cell, CellKey, derive_seed
from blklab.spec.request import SpecValues, build_specs
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.slots import SlotDecision
from blklab.spec.stretches import stretch_of
from blklab.spec.targets import parse_target
from blklab.spec.workloads import Workload, parse_workload

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
TOLERANCE = 0.02
FEWEST_ROUNDS = 10
SEEDS = (11, 12, 13)
MOST_SLOTS_OF_A_GUEST = 1500
"""In one stretch: a guest keeps their record in memory, of which its process may map only so many pieces
(``vm.max_map_count``)."""
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
        """``refuses``, ``agrees``, ``disagrees``, or ``no truth`` where long runs differ as much."""
        if self.decision.slot_ns is None:
            return "refuses"
        wrong = [ratio for ratio in self.ratios if not abs(ratio.bias) <= TOLERANCE]
        if not wrong:
            return "agrees"
        return "no truth" if all(ratio.between_seeds > TOLERANCE for ratio in wrong) else "disagrees"


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
    arguments.add_argument(
        "--pilot-slot", type=float, default=4, help="virtual time (s) of the pilot's slots"
    )
    arguments.add_argument(
        "--pilot-rounds", type=int, default=ON_A_MODEL.most_rounds, help="at most, where it is undecided"
    )
    arguments.add_argument("--seed", type=int, default=1)
    add_pool_options(arguments)
    arguments.add_argument("--guests", action="store_true", help="the real kernel in virtual time")
    arguments.add_argument("--write", action="store_true", help="refresh the appendix page")
    given = arguments.parse_args()
    if given.write and given.guests:
        arguments.error("--write refreshes the simulator's table; without --guests")
    names = [
        (device, workload)
        for device in given.device or DEVICES
        for workload in given.workload or (*SHIPPED, *OWN)
    ]
    console = console_out()
    results = []
    with pool_of(given) as pool:
        for result in pool.map(partial(_measure, given=given), names):
            results.append(result)
            console.print(_text(result), markup=False, highlight=False, soft_wrap=True)
    counts = Counter(result.verdict for result in results)
    summary = (
        f"Of {len(results)} cells, {counts['agrees']} agree, {counts['refuses']} refuse, "
        f"{counts['no truth']} have no truth and {counts['disagrees']} disagree."
    )
    console.print(summary)
    if given.write:
        write_table("bias", [summary, "", _table(results)])
    return 1 if counts["disagrees"] else 0


def _measure(name: tuple[str, str], given: argparse.Namespace) -> CellResult:
    device, workload_name = name
    workload = named_load(workload_name)
    ramp_ns = int(given.ramp * NS)
    target = f"{'uml' if given.guests else 'sim'}:{device}"
    spec = build_specs(
        SpecValues(targets=[target], schedulers=[",".join(SCHEDULERS)], design="switchback", seed=given.seed)
    )[0].model_copy(update={"workloads": [workload]})
    options = SessionOptions(run_id="bias")
    pilot = replace(ON_A_MODEL, slot_ns=int(given.pilot_slot * NS), most_rounds=given.pilot_rounds)
    with _opened(target, options) as session:
        reasons = reasons_for_runs(spec, session, by_default=False) or {}
        if reason := reasons[workload.name]:
            return CellResult(device, workload_name, SlotDecision(reason=reason), [])
        decision = piloted(spec, workload, session, pilot)
        if decision.reason.startswith(PILOT_FAILED):
            raise SystemExit(f"{workload.name}: {decision.reason}")
        if decision.slot_ns is None:
            return CellResult(device, workload_name, decision, [])
        length_ns = _length_ns(session, spec, decision, given)
        decision, slots = _switchback(session, spec, decision, length_ns, ramp_ns, in_guests=given.guests)
        record = ExperimentRecord(
            run_id="bias",
            created_at="",
            state="complete",
            blklab_version="",
            spec=spec.model_copy(update={"slots": {workload.name: decision}}),
            target=session.target,
            machine=describe_machine(),
            samples=slots,
        )
    if decision.slot_ns is None:
        return CellResult(device, workload_name, decision, [])
    long_runs = {
        choice.label: _long_runs(target, workload, choice, length_ns, ramp_ns, options)
        for choice in spec.schedulers
    }
    return CellResult(device, workload_name, decision, list(_ratios(workload, analyse(record), long_runs)))


def _opened(target: str, options: SessionOptions) -> AbstractContextManager[Session]:
    backend = uml.BACKEND if target.startswith("uml:") else sim.BACKEND
    return backend.open(parse_target(target), options)


def _length_ns(
    session: Session, spec: ExperimentSpec, decision: SlotDecision, given: argparse.Namespace
) -> int:
    """Virtual time in which every scheduler has enough I/Os."""
    slots = _slots_of(session, spec, decision, first_round=0, rounds=1)
    ios = sum(sum(sample.slot.ios) for sample in slots if sample.slot is not None)
    rate = ios / (len(slots) * (decision.slot_ns or 0) / NS)
    return int(min(given.seconds, max(given.ramp, given.ios / rate)) * NS)


def _switchback(
    session: Session,
    spec: ExperimentSpec,
    decision: SlotDecision,
    length_ns: int,
    ramp_ns: int,
    *,
    in_guests: bool,
) -> tuple[SlotDecision, list[RunSample]]:
    """The slots of an experiment, longer ones than the pilot found if they influence one another.

    Flash is faster while its cache takes the writes, so slots count when that is over. Guests run several
    stretches, and of each the beginning is left out.
    """
    (workload,) = spec.workloads
    first_round = 0
    while decision.slot_ns is not None:
        kept = 1 - decision.settling_ns / decision.slot_ns
        wanted_ns = (length_ns + ramp_ns / len(spec.schedulers)) / kept
        rounds = max(FEWEST_ROUNDS, round(wanted_ns / decision.slot_ns))
        most = MOST_SLOTS_OF_A_GUEST // len(spec.schedulers) if in_guests else rounds
        counted = []
        for begun in range(0, rounds, most):
            now = min(most, rounds - begun)
            slots = _slots_of(session, spec, decision, first_round=first_round + begun, rounds=now)
            counted += [slot for slot in slots if slot.slot is not None and slot.slot.start_ns >= ramp_ns]
        reason = influence(workload.name, counted, FINAL_CHECK, spec.margin)
        if reason is None:
            return decision, counted
        first_round += rounds
        decision = lengthened(decision, reason, first_round=first_round)
    return decision, []


def _slots_of(
    session: Session, spec: ExperimentSpec, decision: SlotDecision, *, first_round: int, rounds: int
) -> list[RunSample]:
    (workload,) = spec.workloads
    stretch = stretch_of(
        workload,
        spec.schedulers,
        decision,
        seed=spec.seed,
        number=1,
        first_round=first_round,
        rounds=rounds,
    )
    slots = session.run_stretch(stretch)
    if failed := [slot for slot in slots if slot.status != "ok"]:
        raise SystemExit(f"{workload.name}: {failed[0].error}")
    return slots


def _long_runs(
    target: str,
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
    with _opened(target, long_options) as session:
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
                raise SystemExit(f"{target}, {workload.name}, {choice.label}: {sample.error}")
            runs.append(sample.jobs)
    return runs


def _ratios(
    workload: Workload, switchback: Analysis, long_runs: dict[str, list[list[JobSample]]]
) -> Iterator[Ratio]:
    first = SCHEDULERS[0]
    for metric in dict.fromkeys(("iops", workload.decide_by)):

        def value(runs: Sequence[Sequence[JobSample]], metric: str = metric) -> float:
            focused = [[job for job in jobs if job.name in workload.focus] for jobs in runs]
            computed = METRICS[metric].compute(merged_jobs(focused))
            return math.nan if computed is None else computed

        for label in SCHEDULERS[1:]:
            truth = value(long_runs[label]) / value(long_runs[first])
            single = [
                value([one]) / value([other]) / truth - 1
                for one, other in zip(long_runs[label], long_runs[first], strict=True)
            ]
            found = [
                pair.seen_from(label).ratio
                for pair in switchback.comparisons
                if pair.metric == metric and {pair.first, pair.second} == {first, label}
            ]
            yield Ratio(
                scheduler=label,
                metric=metric,
                switchback=found[0] if found else math.nan,
                long_runs=truth,
                between_seeds=max(abs(deviation) for deviation in single),
            )


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
    return markdown_table(
        ("Device", "Workload", "Slots", "Largest bias", "Answer"),
        [(result.device, result.workload, *_findings(result)) for result in results],
    )


def _findings(result: CellResult) -> tuple[str, str, str]:
    if result.decision.slot_ns is None:
        return "none", "", f"refuses: {result.decision.reason}"
    worst = max(result.ratios, key=lambda ratio: abs(ratio.bias))
    bias = f"{100 * worst.bias:+.2f} % ({worst.metric}, {worst.scheduler})"
    return _slots(result.decision), bias, result.verdict


if __name__ == "__main__":
    sys.exit(main())
