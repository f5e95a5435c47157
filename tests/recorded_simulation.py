"""Recordings as blkparse would print them: of simulations, of guests, and of kernel workers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import blklab
from blklab.guests.recorded_ios import RecordedIo
from blklab.simulator.timeline import READ, WRITE
from plain_simulation import simulate

DEVICE = "8,0"


def record_simulation(path: Path, device: str, jobs: str, scheduler: str) -> blklab.Timeline:
    """Simulates jobs whose processes never issue two I/Os at one moment, and writes what was queued."""
    timeline = simulate(device, jobs, scheduler=scheduler, arrangement="fixed", timeline=True).timeline
    assert timeline is not None
    names = [job.name for job in timeline.run.jobs]
    events = []
    for row in timeline.requests:
        if row["operation"] not in (READ, WRITE):
            continue
        letters = "R" if row["operation"] == READ else "WS"
        place = f"{letters} {row['sector']} + {row['sectors']}"
        queued, completed = int(row["arrive_ns"]), int(row["complete_ns"])
        events.append((queued, 1, int(row["task"]), "Q", f"{place} [{names[row['job']]}]"))
        events.append((completed, 0, int(row["task"]), "C", f"{place} [0]"))
    path.write_text("".join(line(number, *event) for number, event in enumerate(sorted(events))))
    return timeline


def write_guest_recording(path: Path, ios: Sequence[RecordedIo], jobs: Sequence[str]) -> None:
    """Writes what a guest has recorded of jobs with these names."""
    events = []
    for order, io in enumerate(ios):
        place = f"{'WS' if io.is_write else 'R'} {io.offset // 512} + {io.bytes // 512}"
        events.append((io.queued_ns, 1, order, io.process, "Q", f"{place} [{jobs[io.job]}]"))
        events.append((io.submitted_ns, 2, order, io.process, "I", f"{place} [{jobs[io.job]}]"))
        events.append((io.completed_ns, 0, order, io.process, "C", f"{place} [0]"))
    path.write_text(
        "".join(
            line(number, at_ns, kind, task, action, rest)
            for number, (at_ns, kind, _, task, action, rest) in enumerate(sorted(events))
        )
    )


def reads_of_workers(count: int, workers: int = 3) -> str:
    """The reads of a pool in irregular turns, in three areas: one for each worker if there are three.

    The first three come one after the other, or schedulers take their workers for one program's.
    """
    events = []
    for number in range(count):
        area = number * number % 3 if number > 2 and number % 4 else (number // 4 + number) % 3
        worker = area % workers
        place = f"R {area * 400_000 + number * 64} + 64"
        first = number * 150_000 + min(number, 3) * 700_000_000
        events += [
            (first, "Q", worker + 1, f"{place} [kworker/u8:{worker}]"),
            (first + 220_000, "C", worker + 1, f"{place} [0]"),
        ]
    events.sort()
    return "".join(line(n, at, 0, task, what, rest) for n, (at, what, task, rest) in enumerate(events))


def line(number: int, at_ns: int, _: int, task: int, action: str, rest: str) -> str:
    """An event of a task."""
    seconds, ns = divmod(at_ns, 1_000_000_000)
    return f"  {DEVICE}    0  {number}  {seconds}.{ns:09d}  {1000 + task}  {action}  {rest}\n"
