"""Differences between the set-ups of two stored experiments, from the kernel to each setting in force."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import DiskDescription
from blklab.spec.experiment import Conditions

_VOLATILE = ("load",)
"""Details of a machine that differ from minute to minute."""
_PART_OF_SPEC = ("guest",)


@dataclass(frozen=True)
class SetUpDifference:
    """A fact that differs; empty where an experiment does not have it."""

    name: str
    first: str
    second: str


def set_up_differences(first: ExperimentRecord, second: ExperimentRecord) -> list[SetUpDifference]:
    """All facts about the set-up that differ, the most telling ones first."""
    ours, theirs = dict(_facts(first)), dict(_facts(second))
    names = [*ours, *(name for name in theirs if name not in ours)]
    return [
        SetUpDifference(name, ours.get(name, ""), theirs.get(name, ""))
        for name in names
        if ours.get(name, "") != theirs.get(name, "")
    ]


def _facts(record: ExperimentRecord) -> Iterator[tuple[str, str]]:
    machine, target, spec = record.machine, record.target, record.spec
    yield "kernel", machine.kernel
    yield "guest kernel", ", ".join(sorted({one.kernel for one in spec.schedulers if one.kernel}))
    yield "target", spec.target
    for number, disk in enumerate(target.disks):
        place = "disk" if len(target.disks) == 1 else f"disk {number + 1}"
        yield from ((f"{place}: {name}", value) for name, value in _disk_facts(disk))
    yield "CPU", machine.cpu
    yield "CPUs", str(machine.cpus)
    yield "memory", str(machine.memory_bytes)
    details = {name: text for name, text in machine.details.items() if name not in _VOLATILE}
    yield from ((f"machine: {name}", text) for name, text in details.items())
    yield from ((f"target: {name}", text) for name, text in target.details.items())
    for name in Conditions.model_fields:
        if name not in _PART_OF_SPEC:
            yield f"condition: {name.removesuffix('_ns')}", _shown(getattr(spec, name))
    yield from ((f"guest: {name}", _shown(value)) for name, value in spec.guest)
    yield "stopping rule", spec.stopping
    yield "seed", str(spec.seed)
    yield "blklab", record.blklab_version
    yield "load generator", _engine(record)
    yield from _settings(record)


def _disk_facts(disk: DiskDescription) -> Iterator[tuple[str, str]]:
    yield "model", disk.model
    yield "identity", disk.identity
    yield "size", str(disk.size_bytes)
    yield "rotational", _shown(disk.rotational)
    yield "scheduler before", disk.scheduler or ""
    yield from disk.queue.items()


def _engine(record: ExperimentRecord) -> str:
    engines = (sample.engine for sample in record.samples)
    named = (f"{one.get('name', '')} {one.get('version', '')}".strip() for one in engines)
    return next((name for name in named if name), "")


def _settings(record: ExperimentRecord) -> Iterator[tuple[str, str]]:
    """Settings in force during the runs of each scheduler, whatever the disks' names."""
    for choice in record.spec.schedulers:
        runs = record.successes(choice.label)
        if runs:
            settings = {key.partition("/")[2]: value for key, value in runs[0].settings.items()}
            yield from _sorted(f"{choice.name}: ", settings.items())


def _sorted(prefix: str, items: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    yield from ((prefix + name, value) for name, value in sorted(items))


def _shown(value: object) -> str:
    """The value for people; empty for what was not set."""
    if value is None or value in ({}, [], ""):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "; ".join(getattr(one, "canonical", str(one)) for one in value)
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else str(value)
