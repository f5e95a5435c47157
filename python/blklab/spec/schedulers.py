"""A scheduler with its tunables: the grammar ``[LABEL=]NAME[@KERNEL][:TUNABLE=VALUE…]``.

``bfq`` is bfq as the kernel sets it up; ``bfq:slice_idle=0:low_latency=0`` changes two tunables;
``none:nr_requests=64`` changes an attribute of the queue while that scheduler is in force,
``bfq:batch/io.bfq.weight=50`` the weight of a control group (`blklab.spec.group_settings`), and
``none:vm.dirty_bytes=67108864`` a setting of writeback (`blklab.spec.writeback_settings`);
``calm=bfq:slice_idle=0`` names that variant. Labels keep variants of one scheduler
apart, and make an A/A test possible: ``first=none,second=none``. ``kyber@patched`` is kyber as the guest
kernel named ``patched`` has it, for targets that run in a guest kernel; for disks of this machine it is the
module ``patched``, a variant of kyber, and ``kyber@copy`` kyber's unchanged copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, model_validator

from blklab.errors import UsageError
from blklab.spec.group_settings import (
    NAME_PATTERN,
    group_settings,
    is_group_setting,
    parse_group_setting,
    with_group_settings,
)
from blklab.spec.queue_attributes import ASYNC_DEPTH, QUEUE_ATTRIBUTES
from blklab.spec.setting_values import VALUE_PATTERN, check_values
from blklab.spec.writeback_settings import NAME_PATTERN as WRITEBACK_PATTERN
from blklab.spec.writeback_settings import (
    check_writeback_settings,
    is_writeback_setting,
    writeback_settings,
)

_LABEL = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.+@-]*)=")
_NAME = re.compile(r"[a-z][a-z0-9_.-]*")
_KERNEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SETTING_NAME = re.compile(rf"[a-z][a-z0-9_]*|{NAME_PATTERN}|{WRITEBACK_PATTERN}")
_TUNABLE = re.compile(rf"({_SETTING_NAME.pattern})=({VALUE_PATTERN})")
_WHOLE_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+@:=/-]*")
"""Of a label that is the choice itself, too."""

OF_QUEUE = tuple(name for name in QUEUE_ATTRIBUTES if name != ASYNC_DEPTH)
"""`async_depth` counts as a scheduler's tunable, which it was first."""

CURRENT_SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
"""Those of today's kernels."""
ALL, HISTORY = "all", "history"
"""In place of a scheduler: all that a target offers, and those of older kernels among them."""
COPY = "copy"
"""The name of a scheduler's unchanged copy, built as a module: ``kyber@copy``."""
LONGEST_NAME = 15
"""The kernel's `ELV_NAME_MAX`, without the final zero: a longer name registers, and cannot be chosen."""

GRAMMAR_HINT = "write it like mq-deadline, bfq:slice_idle=0 or calm=bfq:slice_idle=0:low_latency=0"


class SchedulerChoice(BaseModel):
    """One scheduler as an experiment uses it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """The kernel's name: none, mq-deadline, kyber, bfq …"""
    tunables: dict[str, str] = {}
    """Changed tunables, attributes of the queue, settings of control groups and of writeback, in the kernel's
    own names and units.

    The others stay at the kernel's default, or as the experiment's conditions have them.
    """
    label: str
    """Its name in reports; unique within an experiment."""
    kernel: str | None = None
    """The guest kernel whose scheduler is meant; None for the target's own."""

    @model_validator(mode="after")
    def _follows_the_grammar(self) -> SchedulerChoice:
        """Holds for choices of stored runs too: they end in udev rules and shell lines."""
        check_scheduler_name(self.name)
        if _WHOLE_LABEL.fullmatch(self.label) is None:
            raise UsageError(f"{self.label!r} cannot be the label of a scheduler", hint=GRAMMAR_HINT)
        if self.kernel is not None:
            check_kernel_name(self.kernel, self.kernel)
        check_settings(self.tunables)
        return self

    @property
    def canonical(self) -> str:
        """The choice in its own grammar; parsing it again gives an equal choice."""
        bare = self.without_label
        return bare if self.label == bare else f"{self.label}={bare}"

    @property
    def without_label(self) -> str:
        """The choice in its own grammar, without a name of its own; as `blklab apply` takes it."""
        head = self.name if self.kernel is None else f"{self.name}@{self.kernel}"
        return ":".join([head, *(f"{key}={value}" for key, value in self.tunables.items())])

    @property
    def name_in_queue(self) -> str:
        """The name that a disk's queue has for it, where `kernel` is a module of this machine."""
        if self.kernel is None:
            return self.name
        return copy_name(self.name) if self.kernel == COPY else self.kernel

    @property
    def queue(self) -> dict[str, str]:
        """Those of `tunables` that are attributes of the queue (``queue/…``), in order of writing."""
        return {name: self.tunables[name] for name in OF_QUEUE if name in self.tunables}

    @property
    def iosched(self) -> dict[str, str]:
        """Those of `tunables` that are the scheduler's own (``queue/iosched/…``)."""
        return {
            name: value
            for name, value in self.tunables.items()
            if name not in OF_QUEUE and not is_group_setting(name) and not is_writeback_setting(name)
        }

    @property
    def of_groups(self) -> dict[str, str]:
        """Those of `tunables` that are settings of control groups, by their names in the grammar."""
        return {name: value for name, value in self.tunables.items() if is_group_setting(name)}

    @property
    def of_writeback(self) -> dict[str, str]:
        """Those of `tunables` that are settings of writeback, by file of /proc/sys/vm."""
        return writeback_settings(self.tunables)

    def groups_over(self, groups: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
        """The attributes of control groups while it is in force, by group and attribute.

        Args:
            groups: Those of the experiment's conditions, which it changes.
        """
        return with_group_settings(groups, self.of_groups)

    @property
    def for_disk(self) -> SchedulerChoice:
        """The choice without what belongs to groups of processes or the machine: all that a disk can have."""
        kept = {
            name: value
            for name, value in self.tunables.items()
            if not is_writeback_setting(name)
            and (not is_group_setting(name) or parse_group_setting(name).is_of_disk)
        }
        if kept == self.tunables:
            return self
        bare = self.model_copy(update={"tunables": kept})
        return bare.model_copy(update={"label": bare.without_label})

    def on_kernel(self, kernel: str) -> SchedulerChoice:
        """The same choice on a guest kernel, under a label that says so; one that names a kernel keeps it."""
        if self.kernel is not None:
            return self
        there = self.model_copy(update={"kernel": kernel})
        automatic = self.label == self.without_label
        return there.model_copy(
            update={"label": there.without_label if automatic else f"{self.label}@{kernel}"}
        )


def copy_name(scheduler: str) -> str:
    """The name of a scheduler's unchanged copy in the kernel: ``kyber-copy``, ``mqdeadline-copy``."""
    name = f"{scheduler}-{COPY}"
    return name if len(name) <= LONGEST_NAME else f"{scheduler.replace('-', '')[: LONGEST_NAME - 5]}-{COPY}"


def unchanged_copies(choices: Iterable[SchedulerChoice]) -> dict[str, str]:
    """The label of each unchanged copy in a module of this machine, with that of its original."""
    found = list(choices)
    return {
        copy.label: original.label
        for copy in found
        for original in found
        if copy.kernel == COPY
        and original.kernel is None
        and (copy.name, copy.tunables) == (original.name, original.tunables)
    }


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
    head, *settings = rest.split(":")
    name, at, kernel = head.partition("@")
    check_scheduler_name(name, text)
    if at:
        check_kernel_name(kernel, text)
    tunables: dict[str, str] = {}
    for setting in settings:
        parsed = _TUNABLE.fullmatch(setting)
        if parsed is None:
            raise UsageError(f"{setting!r} in {text!r} is not TUNABLE=VALUE", hint=GRAMMAR_HINT)
        if parsed[1] in tunables:
            raise UsageError(f"{text!r} sets {parsed[1]} twice")
        tunables[parsed[1]] = parsed[2]
    group_settings(tunables)  # refuses names that no file has
    return SchedulerChoice(name=name, tunables=tunables, label=label or rest, kernel=kernel or None)


def with_groups_expanded(choices: Iterable[SchedulerChoice], offered: Sequence[str]) -> list[SchedulerChoice]:
    """The choices with ``all`` and ``history`` replaced by the schedulers that they stand for.

    Args:
        choices: As given.
        offered: Schedulers that the target has.

    Raises:
        UsageError: if the target has no scheduler of older kernels, but those are asked for.
    """
    older = [name for name in offered if name not in CURRENT_SCHEDULERS]
    groups = {ALL: list(offered), HISTORY: older}
    expanded: dict[str, SchedulerChoice] = {}
    for choice in choices:
        if choice.without_label not in groups:
            expanded.setdefault(choice.label, choice)
            continue
        if not groups[choice.name]:
            raise UsageError(
                "-s history: this target has no schedulers of older kernels",
                hint="targets such as sim:hdd-7200 have them; `blklab targets` lists what each offers",
            )
        for name in groups[choice.name]:
            expanded.setdefault(name, SchedulerChoice(name=name, label=name))
    return list(expanded.values())


def check_scheduler_name(name: str, text: str | None = None) -> None:
    """Checks the name of a scheduler.

    Args:
        name: The name.
        text: The text as written, for the message; by default the name.

    Raises:
        UsageError: if it cannot name a scheduler.
    """
    if _NAME.fullmatch(name) is None:
        raise UsageError(f"{(text or name)!r} does not name a scheduler", hint=GRAMMAR_HINT)


def check_settings(settings: Mapping[str, str]) -> None:
    """Checks names and values of a choice's settings.

    Raises:
        UsageError: for a name or a value that the grammar does not have.
    """
    for name in settings:
        if _SETTING_NAME.fullmatch(name) is None:
            raise UsageError(f"{name!r} cannot be the name of a tunable", hint=GRAMMAR_HINT)
    check_values(settings)
    check_writeback_settings(settings)


def check_kernel_name(name: str, text: str) -> None:
    """Checks the name of a guest kernel.

    Args:
        name: The name.
        text: The text as written, for the message.

    Raises:
        UsageError: if it cannot name a kernel.
    """
    if _KERNEL.fullmatch(name) is None:
        raise UsageError(
            f"{text!r} does not name a kernel", hint="`blklab kernel list` shows those that were built"
        )


def across_kernels(choices: Iterable[SchedulerChoice], kernels: Iterable[str]) -> list[SchedulerChoice]:
    """Each choice on each kernel, kernel by kernel; those that name a kernel themselves stay as they are.

    Raises:
        UsageError: for two choices under one label.
    """
    names = list(kernels)
    crossed: dict[str, SchedulerChoice] = {}
    for kernel in names:
        for choice in choices:
            placed = choice.on_kernel(kernel)
            if crossed.setdefault(placed.label, placed) != placed:
                raise UsageError(f"the scheduler {placed.label!r} is listed twice", hint="label the copies")
    return list(crossed.values()) if names else list(choices)


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
