"""Which scheduler with which tunables: the grammar ``[LABEL=]NAME[:TUNABLE=VALUE…]``.

``bfq`` is bfq as the kernel sets it up; ``bfq:slice_idle=0:low_latency=0`` changes two tunables;
``calm=bfq:slice_idle=0`` gives that variant a name of its own. Labels keep variants of one scheduler
apart, and make an A/A test possible: ``first=none,second=none``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from blklab.errors import UsageError

_LABEL = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.+-]*)=")
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_TUNABLE = re.compile(r"([a-z][a-z0-9_]*)=([^\s:=,]+)")

GRAMMAR_HINT = "write it like mq-deadline, bfq:slice_idle=0 or calm=bfq:slice_idle=0:low_latency=0"


class SchedulerChoice(BaseModel):
    """One scheduler as an experiment uses it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """The kernel's name: none, mq-deadline, kyber, bfq …"""
    tunables: dict[str, str] = {}
    """Changed tunables in the kernel's own names and units; the others stay at the kernel's default."""
    label: str
    """What reports call it; unique within an experiment."""

    @property
    def canonical(self) -> str:
        """The choice in its own grammar; parsing it again gives an equal choice."""
        bare = ":".join([self.name, *(f"{key}={value}" for key, value in self.tunables.items())])
        return bare if self.label == bare else f"{self.label}={bare}"

    @property
    def without_label(self) -> str:
        """The choice in its own grammar as `blklab apply` takes it."""
        return ":".join([self.name, *(f"{key}={value}" for key, value in self.tunables.items())])


def parse_scheduler_choice(text: str) -> SchedulerChoice:
    """Reads one choice.

    Raises:
        UsageError: if the text does not follow the grammar or names a tunable twice.
    """
    rest = text.strip()
    label: str | None = None
    head = rest.split(":", 1)[0]
    if (match := _LABEL.match(head)) is not None:
        label = match[1]
        rest = rest[match.end() :]
    name, *settings = rest.split(":")
    if _NAME.fullmatch(name) is None:
        raise UsageError(f"{text!r} does not name a scheduler", hint=GRAMMAR_HINT)
    tunables: dict[str, str] = {}
    for setting in settings:
        parsed = _TUNABLE.fullmatch(setting)
        if parsed is None:
            raise UsageError(f"{setting!r} in {text!r} is not TUNABLE=VALUE", hint=GRAMMAR_HINT)
        if parsed[1] in tunables:
            raise UsageError(f"{text!r} sets {parsed[1]} twice")
        tunables[parsed[1]] = parsed[2]
    return SchedulerChoice(name=name, tunables=tunables, label=label or rest)


def parse_scheduler_choices(texts: str | Iterable[str]) -> list[SchedulerChoice]:
    """Reads a comma-separated list, or several choices; labels must be unique.

    Raises:
        UsageError: for a malformed choice, an empty list, or two choices under one label.
    """
    parts = (
        texts.split(",") if isinstance(texts, str) else [part for text in texts for part in text.split(",")]
    )
    choices = [parse_scheduler_choice(part) for part in parts if part.strip()]
    if not choices:
        raise UsageError("no scheduler named", hint=GRAMMAR_HINT)
    seen: set[str] = set()
    for choice in choices:
        if choice.label in seen:
            raise UsageError(
                f"the scheduler {choice.label!r} is listed twice",
                hint=f"label the copies: first={choice.label},second={choice.label}",
            )
        seen.add(choice.label)
    return choices
