"""The first sentence about a recording: can a scheduler help, and who held the device?"""

from __future__ import annotations

from collections import defaultdict

from blklab.quantities.formatting import percent_text
from blklab.quantities.units import format_duration
from blklab.recordings.waits import Distribution, TaskWaits, Waits

_LITTLE, _MUCH, _MOST = 0.1, 0.5, 0.5
"""Below the first share of waiting a scheduler gains little, from the second on much, and a majority."""
_AT_WORK = 0.1
"""Below this share of the time with I/Os a disk counts as idle: an I/O that comes at any time finds another
one to be put in order with at most one time in ten. Bursts are the exception: they have several at a time."""
_NEARLY_ALL = 0.99
_OWN = 0.9
"""From this part of the waiting in the queue on, tasks wait for themselves: there is nobody to prefer."""
_BURST_DEPTH = 1.0
"""I/Os that wait, on average, while a disk is busy: with as many a scheduler has a choice."""


def answer_of(waits: Waits) -> str:
    """The answer to the first question: can a scheduler help? Or the reason why nobody can say."""
    return " ".join(answer_sentences(waits))


def answer_sentences(waits: Waits) -> list[str]:
    """The sentences of the answer; the first one is the headline."""
    everything = waits.all
    if not everything.ios:
        return ["Nothing is known about waits: the trace has no I/O that was queued or issued."]
    if not waits.completions_known:
        return ["Nothing is known about waits: the trace has no completions."]
    if not waits.issues_known:
        return ["Queue or device, the trace does not tell: it has no issues.", _took(everything.latency_ns)]
    if not waits.queues_known:
        took = _took(everything.device_ns)
        return ["Queue or device, the trace does not tell: it begins with issues.", f"In the device {took}"]
    queue_ns, device_ns = everything.queue_ns.sum, everything.device_ns.sum
    if queue_ns + device_ns <= 0:
        return ["No I/O waited."]
    share = queue_ns / (queue_ns + device_ns)
    held = _held_sentence(waits)
    if (idle := _idle_sentence(waits)) is not None:
        where = [idle, f"{percent_text(share)} of the waiting was in the queue."]
    elif share < _LITTLE:
        where = [
            f"{percent_text(1 - share)} of the waiting was in the device: a scheduler can change little."
        ]
    elif (own := _own_part(waits)) >= _OWN:
        where = [
            (
                f"{percent_text(share)} of the waiting was in the queue, but {percent_text(own)} of that"
                " behind the same task's I/O: a scheduler can put it in order, and has nobody to prefer."
            )
        ]
    elif share < _MUCH:
        where = [
            (
                f"{percent_text(share)} of the waiting was in the queue, where a scheduler can choose; the"
                " rest was in the device."
            )
        ]
    else:
        where = [f"A scheduler matters here: {percent_text(share)} of the waiting was in the queue."]
    return [*where, held] if held else where


def process_name(task: TaskWaits) -> str:
    """``postgres[4711]``."""
    number = "" if task.tgid is None else f"[{task.tgid}]"
    return f"{task.command or 'unknown'}{number}"


def main_holder(tasks: list[TaskWaits]) -> tuple[int | None, float] | None:
    """The place of the task that held the device for the largest part of some tasks' waiting, and that part.

    The place is None for a device that idled. There is no holder if nothing waited, or if tasks without an
    account of their own come first.
    """
    held_ns: defaultdict[int | None, float] = defaultdict(float)
    others_ns = 0.0
    for task in tasks:
        for holders in (task.held_in_queue, task.held_in_device):
            for place, ns in holders.tasks:
                held_ns[place] += ns
            held_ns[None] += holders.idle_ns
            others_ns += holders.others_ns
    total_ns = sum(held_ns.values()) + others_ns
    if total_ns <= 0:
        return None
    holder, most_ns = max(held_ns.items(), key=lambda item: item[1])
    return (holder, most_ns / total_ns) if most_ns >= others_ns else None


def _own_part(waits: Waits) -> float:
    """The part of the waiting in the queue in which the waiting task itself held the device."""
    own_ns = sum(
        ns for at, task in enumerate(waits.tasks) for place, ns in task.held_in_queue.tasks if place == at
    )
    return own_ns / waits.all.queue_ns.sum if waits.all.queue_ns.sum else 0.0


def _idle_sentence(waits: Waits) -> str | None:
    """Say that every disk had nothing to do most of the time; None if one had, or if that is unknown.

    I/Os that waited before an idle disk count as work: somebody held them back, as a scheduler may.
    """
    span_ns = waits.tally.span_ns
    busy_ns = [device.busy_ns for device in waits.devices if device.busy_ns is not None]
    if span_ns <= 0 or not busy_ns or len(busy_ns) < len(waits.devices):
        return None
    behind_ns = sum(
        sum(ns for _, ns in task.held_in_queue.tasks) + task.held_in_queue.others_ns for task in waits.tasks
    )
    if max(busy_ns) + waits.all.queue_ns.sum - behind_ns >= _AT_WORK * span_ns:
        return None
    share = 1 - max(busy_ns) / span_ns
    idle = f"idle {'over 99 %' if share > _NEARLY_ALL else percent_text(share)} of the time"
    idle = f"The disk was {idle}" if len(busy_ns) == 1 else f"Even the busiest disk was {idle}"
    waiting = behind_ns / sum(busy_ns) if sum(busy_ns) else 0.0
    if waiting < _BURST_DEPTH:
        return f"{idle}: a scheduler has little to do."
    return f"{idle}: a scheduler has little to do but in bursts, in which {waiting:.1f} I/Os waited."


def _held_sentence(waits: Waits) -> str:
    """Name the holder of the device during most of the waiting."""
    found = main_holder(waits.tasks)
    if found is None:
        return ""
    place, share = found
    if place is None:
        return f"For {'most' if share >= _MOST else percent_text(share)} of it the device was idle."
    name = process_name(waits.tasks[place])
    if share >= _MOST:
        return f"Most of it was held by {name}."
    return f"{name} held the largest part, {percent_text(share)}."


def _took(times: Distribution) -> str:
    mean, p99 = (format_duration(round(ns)) for ns in (times.mean, times.p99))
    return f"I/Os took {mean} on average, and 99 % of them at most {p99}."
