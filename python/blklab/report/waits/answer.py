"""The first sentence about a recording: can a scheduler help, and who held the device?"""

from __future__ import annotations

from collections import defaultdict

from blklab.quantities.formatting import percent_text
from blklab.quantities.units import format_duration
from blklab.recordings.waits import Distribution, TaskWaits, Waits

_LITTLE, _MUCH, _MOST = 0.1, 0.5, 0.5
"""Below the first share of waiting a scheduler gains little, from the second on much, and a majority."""


def answer_of(waits: Waits) -> str:
    """The answer to the first question: can a scheduler help? Or the reason why nobody can say."""
    everything = waits.all
    if not everything.ios:
        return "Nothing is known about waits: the trace has no I/O that was queued or issued."
    if not waits.completions_known:
        return "Nothing is known about waits: the trace has no completions."
    if not waits.issues_known:
        took = _took(everything.latency_ns)
        return f"Queue or device, the trace does not tell: it has no issues. {took}"
    if not waits.queues_known:
        took = _took(everything.device_ns)
        return f"Queue or device, the trace does not tell: it begins with issues. In the device {took}"
    queue_ns, device_ns = everything.queue_ns.sum, everything.device_ns.sum
    if queue_ns + device_ns <= 0:
        return "No I/O waited."
    share = queue_ns / (queue_ns + device_ns)
    held = _held_sentence(waits)
    if share < _LITTLE:
        where = f"{percent_text(1 - share)} of the waiting was in the device: a scheduler can change little."
    elif share < _MUCH:
        where = (
            f"{percent_text(share)} of the waiting was in the queue, where a scheduler can choose; the rest"
            " was in the device."
        )
    else:
        where = f"A scheduler matters here: {percent_text(share)} of the waiting was in the queue."
    return f"{where} {held}".rstrip()


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
