"""Jobs that wait for each other: the ends of a pipe, and tasks that share a journal.

fio's job language has no such jobs, so they are written as plans of a replay. Programs wait like that for a
journal, a pipe or a lock.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from blklab import _core

_SECTOR_BYTES = 512
_PAGE_SECTORS = 8
_AREA_PAGES = 100_000
"""Each task reads or writes within an area of 400 MB of its own."""


@dataclass
class Task:
    """The plan of a task that has one I/O in flight at a time."""

    ios: list[tuple[bool, int, int, int]] = field(default_factory=list)
    """Whether it writes, its sector, sectors, and the time in nanoseconds that passes before it."""
    awaits: list[tuple[int, int]] = field(default_factory=list)
    """The number of an I/O, and the signal that it waits for."""
    sets: list[tuple[int, int]] = field(default_factory=list)
    """The number of completions, and the signal that is set after them."""


PIPE_ITEMS = 4
"""Items that a pipe holds."""
READS_FOR_ITEM = 2


def pipes(items: int, thinks_ns: Sequence[tuple[int, int]]) -> str:
    """The sections of pairs: a producer reads twice for each item, a consumer once when the item is there.

    The producer gets at most `PIPE_ITEMS` ahead. No two of them start together, as programs seldom do;
    ``{1/8}`` stands for an eighth of the run.

    Args:
        items: How many each pair hands over.
        thinks_ns: For each pair, the time before each I/O of the producer, and of the consumer.
    """
    sections = []
    signals = 0
    for pair, (producer_ns, consumer_ns) in enumerate(thinks_ns):
        producer, consumer = Task(), Task()
        for number in range(items):
            for read in range(READS_FOR_ITEM):
                sector = _anywhere(2 * pair, READS_FOR_ITEM * number + read)
                producer.ios.append((False, sector, _PAGE_SECTORS, producer_ns))
            consumer.ios.append((False, _anywhere(2 * pair + 1, number), _PAGE_SECTORS, consumer_ns))
            _signal(producer, consumer, READS_FOR_ITEM * (number + 1), number, signals)
            signals += 1
            if number + PIPE_ITEMS < items:
                _signal(consumer, producer, number + 1, READS_FOR_ITEM * (number + PIPE_ITEMS), signals)
                signals += 1
        sections.append(_section(f"producer{pair}", [producer], start=f"{{{2 * pair + 1}/8}}"))
        sections.append(_section(f"consumer{pair}", [consumer], start=f"{{{2 * pair + 2}/8}}"))
    return "".join(sections)


def cooperators(rounds: int, tasks: int, batch: int) -> str:
    """The sections of tasks that read one file in turns, and after each batch wait for a journal.

    Args:
        rounds: Batches of each task.
        tasks: Their number; task `k` reads every block whose number leaves the rest `k`.
        batch: Blocks that each of them reads before they wait.
    """
    readers = [Task() for _ in range(tasks)]
    journal = Task()
    signals = 0
    for number in range(rounds):
        for place, reader in enumerate(readers):
            for step in range(batch):
                block = (number * batch + step) * tasks + place
                reader.ios.append((False, block * _PAGE_SECTORS, _PAGE_SECTORS, 0))
            _signal(reader, journal, (number + 1) * batch, number, signals)
            signals += 1
        start = _AREA_PAGES * _PAGE_SECTORS
        journal.ios.append((True, start + number * _PAGE_SECTORS, _PAGE_SECTORS, 0))
        if number + 1 < rounds:
            for reader in readers:
                _signal(journal, reader, number + 1, (number + 1) * batch, signals)
                signals += 1
    return _section("cooperators", readers) + _section("journal", [journal], start="{1/8}")


def _signal(giver: Task, taker: Task, completions: int, number: int, signal: int) -> None:
    giver.sets.append((completions, signal))
    taker.awaits.append((number, signal))


def _anywhere(area: int, number: int) -> int:
    """A sector that looks drawn, in an area of the file."""
    drawn = random.Random(area * 1_000_003 + number)  # noqa: S311 - not for secrets
    return (area * _AREA_PAGES + int(drawn.random() * _AREA_PAGES)) * _PAGE_SECTORS


def _section(name: str, tasks: Sequence[Task], start: str = "") -> str:
    all_write = all(writes for task in tasks for writes, *_ in task.ios)
    mode = "randwrite" if all_write else "randread"
    largest = _largest(sectors for task in tasks for _, _, sectors, _ in task.ios)
    clones = f"numjobs={len(tasks)}\n" if len(tasks) > 1 else ""
    delay = f"startdelay={start}\n" if start else ""
    plans = _core.plans_in_turn([(task.ios, task.awaits, task.sets) for task in tasks])
    return f"[{name}]\nrw={mode}\nbs={largest}\n{clones}{delay}replay_plan={plans}\n"


def _largest(sectors: Iterable[int]) -> int:
    return max(sectors) * _SECTOR_BYTES
