"""Stretches of a switchback on this machine's disks: one fio, and schedulers that take turns beneath it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from blklab.errors import RunFailedError, SettingsChangedError
from blklab.linux.load.fio_histograms import HistogramLog, histogram_log_path, read_histogram_log, total_ios
from blklab.linux.load.fio_start import wait_for_start
from blklab.linux.load.load_process import LoadProcess
from blklab.linux.queue.settings import QueueSettings
from blklab.quantities.units import NS_PER_MS, NS_PER_SECOND
from blklab.records.machine_events import MachineEvents
from blklab.records.samples import (
    SLOW_SWITCH,
    DirectionSample,
    JobSample,
    LatencyHistogram,
    RunSample,
    SlotSample,
)
from blklab.spec.stretches import Slot, Stretch
from blklab.spec.workloads import Workload

LEAD_NS = NS_PER_SECOND // 2
"""Load before the first slot, which is not measured: queues fill, caches warm."""
TAIL_NS = NS_PER_SECOND // 4
"""Load after the last slot: the log of a window is written when the next I/O completes."""
_SHORTEST_KEPT = 4
"""A slot is lost if less than this part of its planned measurement is left, as a divisor."""
_WINDOWS_MS = ((2, 10), (8, 25))
"""Most clones, and the length of their logs' windows."""
_COARSE_WINDOW_MS = 50


@dataclass(frozen=True)
class Turn:
    """One slot as it came about; times in Unix time."""

    slot: Slot
    start_ns: int
    switched_ns: int
    """When scheduler and tunables were in force."""
    settings: dict[str, str]
    error: str | None = None


def stretch_window_ms(workload: Workload) -> int:
    """Length of the logs' windows: one is lost of each slot, but each takes memory and text per clone."""
    clones = sum(job.numjobs for job in workload.jobs)
    return next((window_ms for most, window_ms in _WINDOWS_MS if clones <= most), _COARSE_WINDOW_MS)


def load_ns(stretch: Stretch) -> int:
    """Runtime of the load that a stretch needs."""
    return LEAD_NS + stretch.length_ns + TAIL_NS


def take_turns(
    stretch: Stretch, settings: QueueSettings, process: LoadProcess, folder: Path
) -> tuple[list[Turn], int]:
    """Waits until the load runs, and gives each slot to its scheduler.

    Each slot initialises its scheduler, also if the one before was the same: otherwise a slot that needs no
    switch would have an advantage.

    Args:
        stretch: The slots.
        settings: Of the queues; recorded in the journal before.
        process: The load, just started.
        folder: fio's working directory.

    Returns:
        The turns that were taken, fewer than there are slots if the load ended early; and the end of the
        last one.

    Raises:
        BlklabError: if a setting cannot be made.
    """
    if not wait_for_start(process, folder, stretch.workload):
        return [], time.time_ns()
    begin_ns = time.monotonic_ns() + LEAD_NS
    turns: list[Turn] = []
    for number, slot in enumerate(stretch.slots):
        _sleep_until(begin_ns + number * stretch.slot_ns)
        if not process.running:
            break
        _check(turns, settings)
        start_ns = time.time_ns()
        error = None
        try:
            in_force = settings.apply(slot.scheduler)
        except SettingsChangedError as changed:
            # Another program wrote between the switch and this look; the next slot begins anew.
            error, in_force = changed.message, settings.read()
        turns.append(Turn(slot, start_ns, time.time_ns(), in_force, error))
    _sleep_until(begin_ns + len(turns) * stretch.slot_ns)
    end_ns = time.time_ns()
    _check(turns, settings)
    return turns, end_ns


def _check(turns: list[Turn], settings: QueueSettings) -> None:
    """Marks the last turn as failed if another program changed its settings."""
    if not turns or turns[-1].error is not None:
        return
    changed = settings.changed_since(turns[-1].settings)
    if changed:
        error = f"another program changed settings during the slot: {', '.join(changed)}"
        turns[-1] = replace(turns[-1], error=error)


def slot_samples(
    stretch: Stretch,
    turns: Sequence[Turn],
    end_ns: int,
    jobs: Sequence[JobSample],
    folder: Path,
    *,
    engine: dict[str, str],
    events: MachineEvents | None,
    group_settings: dict[str, str],
) -> list[RunSample]:
    """Reads the logs of a load that has ended.

    Args:
        stretch: The slots.
        turns: One for each slot.
        end_ns: The end of the last slot, in Unix time.
        jobs: fio's report on the whole load, which tells the size of I/Os.
        folder: fio's working directory.
        engine: Name and version of the load generator.
        events: Events on the machine during the load.
        group_settings: Settings of control groups, which no switch changes.

    Raises:
        RunFailedError: if a log cannot be read.
    """
    logs = read_logs(stretch.workload, folder)
    window_ns = stretch_window_ms(stretch.workload) * NS_PER_MS
    ends = [*(turn.start_ns for turn in turns[1:]), end_ns]
    first_ns = turns[0].start_ns
    focus = [
        log
        for job, clones in zip(jobs, logs, strict=True)
        if job.name in stretch.workload.focus
        for clone in clones
        for log in clone
    ]
    samples = []
    for turn, ends_ns in zip(turns, ends, strict=True):
        # On a busy machine the next turn can come before this one has settled.
        from_ns = min(max(turn.start_ns + stretch.settling_ns, turn.switched_ns), ends_ns)
        # A window that the next switch ends in would mix both slots.
        to_ns = ends_ns - window_ns
        planned_ns = stretch.slot_ns - stretch.settling_ns - window_ns
        error = turn.error
        if error is None and (to_ns - from_ns) * _SHORTEST_KEPT < planned_ns:
            error = SLOW_SWITCH
        edges = np.arange(turn.start_ns, ends_ns + 1, window_ns, dtype=np.int64)
        place = SlotSample(
            stretch=stretch.number,
            start_ns=turn.start_ns - first_ns,
            end_ns=ends_ns - first_ns,
            switch_ns=turn.switched_ns - turn.start_ns,
            kept_from_ns=from_ns - first_ns,
            kept_to_ns=max(from_ns, to_ns) - first_ns,
            window_ns=window_ns,
            ios=[round(float(ios), 1) for ios in total_ios(focus, edges)],
        )
        found = [job_between(job, clones, from_ns, to_ns) for job, clones in zip(jobs, logs, strict=True)]
        samples.append(
            RunSample(
                cell=turn.slot.key,
                status="ok" if error is None else "failed",
                error=error,
                started_at=datetime.fromtimestamp(turn.start_ns / NS_PER_SECOND, timezone.utc).isoformat(
                    timespec="milliseconds"
                ),
                elapsed_ns=ends_ns - turn.start_ns,
                jobs=found if error is None else [],
                settings=turn.settings | group_settings,
                engine=engine,
                events=events,
                slot=place,
            )
        )
    return samples


def job_between(
    job: JobSample, clones: Sequence[Sequence[HistogramLog]], from_ns: int, to_ns: int
) -> JobSample:
    """A job's part of a slot or a phase: between two moments of Unix time."""
    edges = np.array([from_ns, to_ns], dtype=np.int64)
    length_ns = to_ns - from_ns
    directions = []
    clone_bytes = [0.0] * len(clones)
    for whole in job.data_directions():
        bytes_per_io = whole.bytes / whole.ios if whole.ios else 0.0
        own = [[log for log in clone if log.direction == whole.direction] for clone in clones]
        ios = [float(total_ios(clone, edges)[0]) for clone in own]
        for number, done in enumerate(ios):
            clone_bytes[number] += done * bytes_per_io
        directions.append(
            DirectionSample(
                direction=whole.direction,
                ios=round(sum(ios)),
                bytes=round(sum(ios) * bytes_per_io),
                runtime_ns=length_ns,
                latency=LatencyHistogram.merged(
                    log.latency_between(from_ns, to_ns) for clone in own for log in clone
                ),
            )
        )
    return JobSample(
        name=job.name,
        clones=job.clones,
        runtime_ns=length_ns,
        directions=directions,
        clone_bytes=[round(moved) for moved in clone_bytes],
    )


def read_logs(workload: Workload, folder: Path) -> list[list[list[HistogramLog]]]:
    """The logs by job, clone and direction."""
    logs = []
    number = 0
    for job in workload.jobs:
        clones = []
        for _ in range(job.numjobs):
            number += 1
            path = histogram_log_path(folder, number)
            try:
                clones.append(read_histogram_log(path.read_bytes()))
            except (OSError, ValueError) as error:
                raise RunFailedError(f"fio's log {path.name} cannot be read: {error}") from error
        logs.append(clones)
    return logs


def _sleep_until(moment_ns: int) -> None:
    left_ns = moment_ns - time.monotonic_ns()
    if left_ns > 0:
        time.sleep(left_ns / NS_PER_SECOND)
