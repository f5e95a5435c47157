"""Summaries of a failed guest's log."""

from __future__ import annotations

import re

_STAMP = re.compile(r"^\[\s*\d+\.\d+\] ?")
_PANIC = re.compile(r"Kernel panic - not syncing: (.*)")
_TRACE = re.compile(
    r"(CPU: \d+ PID:|Stack:|Call Trace:|[0-9a-f]{8} [0-9a-f]{8}|\[<[0-9a-f]+>\]|---\[ end Kernel)"
)
_OUT_OF_MEMORY = re.compile(
    r"Out of memory: Killed process|System is deadlocked on memory|invoked oom-killer"
)
_LINES = 8


def failure_reason(log: str) -> str | None:
    """The reason why the guest's kernel stopped, if its log gives one; otherwise None."""
    if _OUT_OF_MEMORY.search(log):
        return "the guest ran out of memory (give it more with --memory)"
    panics = _PANIC.findall(log)
    if panics:
        return f"the guest's kernel panicked: {panics[0].strip()}"
    return None


def log_tail(log: str) -> str:
    """The last informative lines, joined by ``|``, without timestamps, stack traces and repeated lines."""
    lines = [_STAMP.sub("", line).strip() for line in log.splitlines()]
    telling: list[str] = []
    for line in lines:
        if line and not _TRACE.match(line) and telling[-1:] != [line]:
            telling.append(line)
    return " | ".join(telling[-_LINES:])


def with_log_tail(message: str, log: str) -> str:
    """A message followed by the end of the log."""
    end = log_tail(log)
    return f"{message}; its log ends with: {end}" if end else f"{message}; its log is empty"
