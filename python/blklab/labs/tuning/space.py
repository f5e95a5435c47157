"""The settings that tuning varies: of each scheduler its tunables, attributes of the queue, and of groups.

A setting has a few values in order, a factor of two to five apart: what is recommended is then a round
number, and a space is small enough to be searched in full where somebody wants to know what a search misses.
The value that the target has by default is always among them, as None. Times that a kernel keeps in ticks
(mq-deadline's, bfq's timeout_sync) are multiples of 20 ms, which every CONFIG_HZ can keep as they are.

Left out is what a load cannot feel: read-ahead where nothing is read through the page cache, the throttling
of buffered writes where there are none, the ageing of priorities where all jobs have the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from blklab.errors import UsageError
from blklab.labs.tuning.group_space import VRATE_MAX, VRATE_MIN, GroupConditions, names
from blklab.labs.tuning.setting import TriedSetting
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.workloads import Job, Workload

_MS_NS = 1_000_000
_LARGE_BYTES = 64 << 10
"""Requests of less than that are below every limit on their size."""


@dataclass(frozen=True)
class Work:
    """The properties of a load on which it depends which settings matter."""

    buffered_reads: bool
    buffered_writes: bool
    large_requests: bool
    """Large I/Os, or sequential ones that merge into such."""
    priorities: bool
    rotational: bool
    several_processors: bool

    @classmethod
    def of(cls, workloads: Sequence[Workload], *, rotational: bool, several_processors: bool) -> Work:
        """The properties of all workloads together."""
        jobs = [job for workload in workloads for job in workload.jobs]
        # Nothing is known of a command.
        unknown = any(workload.command is not None or workload.replays for workload in workloads)
        return cls(
            buffered_reads=unknown or any(job.reads and not job.direct for job in jobs),
            buffered_writes=unknown or any(job.writes and not job.direct for job in jobs),
            large_requests=unknown or any(_is_large(job) for job in jobs),
            priorities=unknown or len({(job.prioclass, job.prio) for job in jobs}) > 1,
            rotational=rotational,
            several_processors=several_processors,
        )


def _is_large(job: Job) -> bool:
    return job.block_size_bytes > _LARGE_BYTES or job.sequential


def _always(_work: Work) -> bool:
    return True


@dataclass(frozen=True)
class _Candidate:
    """A setting before it is known what the target has."""

    name: str
    values: tuple[int, ...]
    matters: Callable[[Work], bool] = _always


_TUNABLES: Mapping[str, tuple[_Candidate, ...]] = {
    "none": (),
    "mq-deadline": (
        _Candidate("read_expire", (20, 60, 100, 200, 500, 1000, 2000)),
        _Candidate("write_expire", (200, 500, 1000, 2000, 5000, 10_000, 20_000)),
        _Candidate("writes_starved", (1, 2, 4, 8, 16)),
        _Candidate("fifo_batch", (1, 2, 4, 8, 16, 32, 64)),
        _Candidate("front_merges", (0, 1), lambda work: work.large_requests),
        _Candidate("async_depth", (4, 16, 48)),
        _Candidate("prio_aging_expire", (100, 1000, 10_000, 100_000), lambda work: work.priorities),
    ),
    "kyber": (
        _Candidate("read_lat_nsec", tuple(int(ms * _MS_NS) for ms in (0.1, 0.2, 0.5, 1, 2, 5, 10, 50))),
        _Candidate("write_lat_nsec", tuple(int(ms * _MS_NS) for ms in (0.5, 1, 2, 5, 10, 20, 50, 100))),
    ),
    "bfq": (
        _Candidate("slice_idle", (0, 1, 2, 4, 8, 16)),
        _Candidate("low_latency", (0, 1)),
        _Candidate("timeout_sync", (20, 60, 120, 240, 500)),
        _Candidate("max_budget", (0, 512, 2048, 8192, 32_768)),
        _Candidate("strict_guarantees", (0, 1)),
        _Candidate("fifo_expire_sync", (25, 60, 125, 250, 500)),
        _Candidate("fifo_expire_async", (60, 125, 250, 500, 1000)),
        _Candidate("back_seek_max", (0, 4096, 16_384, 65_536), lambda work: work.rotational),
        _Candidate("back_seek_penalty", (1, 2, 4), lambda work: work.rotational),
    ),
}
"""By scheduler, in the kernel's units (Linux 6.1: block/mq-deadline.c, kyber-iosched.c, bfq-iosched.c)."""

_ATTRIBUTES: tuple[_Candidate, ...] = (
    _Candidate("nr_requests", (8, 16, 32, 64, 128, 256, 512, 1024)),
    _Candidate("max_sectors_kb", (64, 128, 256, 512), lambda work: work.large_requests),
    _Candidate("nomerges", (0, 1, 2)),
    _Candidate("rq_affinity", (0, 1, 2), lambda work: work.several_processors),
    _Candidate("wbt_lat_usec", (0, 2000, 10_000, 75_000), lambda work: work.buffered_writes),
    _Candidate("read_ahead_kb", (0, 32, 128, 512, 2048, 8192), lambda work: work.buffered_reads),
)

TUNED_SCHEDULERS = tuple(_TUNABLES)
"""The schedulers that tuning knows."""


class Space:
    """All candidates: each scheduler with its settings."""

    def __init__(self, settings: Mapping[str, Sequence[TriedSetting]]) -> None:
        """Takes the settings of each scheduler, by name."""
        self.settings = {name: tuple(some) for name, some in settings.items()}

    @property
    def size(self) -> int:
        """Number of different candidates."""
        return sum(_count(settings) for settings in self.settings.values())

    def names(self) -> list[str]:
        """Names of all settings, each once."""
        return list(dict.fromkeys(setting.name for some in self.settings.values() for setting in some))

    def choices(self) -> Iterable[SchedulerChoice]:
        """Every candidate, each once."""
        for name, settings in self.settings.items():
            found: set[str] = set()
            for values in _combinations(settings):
                choice = self.choice(name, values)
                if choice.label not in found:
                    found.add(choice.label)
                    yield choice

    def choice(self, scheduler: str, values: Mapping[str, str | None]) -> SchedulerChoice:
        """The candidate with these values, without those that do nothing, and with all that they bring.

        Args:
            scheduler: Its name.
            values: By setting; None, or none at all, for the default.
        """
        felt = _felt(self.settings[scheduler], values)
        changed: dict[str, str] = {}
        for setting in self.settings[scheduler]:
            if setting.name in felt:
                changed |= {setting.name: felt[setting.name], **setting.brings}
        return chosen(scheduler, changed)

    def changed(self, choice: SchedulerChoice) -> dict[str, str]:
        """The settings of a candidate that differ from the default, without those that others bring."""
        return {
            setting.name: choice.tunables[setting.name]
            for setting in self.settings[choice.name]
            if setting.name in choice.tunables
        }


def _felt(settings: Sequence[TriedSetting], values: Mapping[str, str | None]) -> dict[str, str]:
    """The values that do something."""
    felt = {
        setting.name: value
        for setting in settings
        if (value := values.get(setting.name)) is not None
        and (setting.needs is None or values.get(setting.needs) is not None)
    }
    least, most = felt.get(VRATE_MIN), felt.get(VRATE_MAX)
    if least is not None and most is not None and int(least) > int(most):
        # The kernel refuses a range whose ends are the wrong way round.
        known = next(setting.values for setting in settings if setting.name == VRATE_MIN)
        felt = {name: value for name, value in felt.items() if name != VRATE_MIN}
        if most in known:
            felt[VRATE_MIN] = most
    return felt


def _count(settings: Sequence[TriedSetting]) -> int:
    """Number of different candidates of a scheduler."""
    return math.prod(
        len({tuple(sorted(_felt(some, values).items())) for values in _combinations(some)})
        for some in _dependent(settings)
    )


def _dependent(settings: Iterable[TriedSetting]) -> Iterable[list[TriedSetting]]:
    """The settings in groups that do not depend on each other.

    A switch is with all that needs it, and one end of the vrate with the other.
    """
    groups: dict[str, list[TriedSetting]] = {}
    for setting in settings:
        alone = VRATE_MIN if setting.name == VRATE_MAX else setting.name
        groups.setdefault(setting.needs or alone, []).append(setting)
    return groups.values()


def _combinations(settings: Sequence[TriedSetting]) -> Iterable[dict[str, str | None]]:
    for values in itertools.product(*(setting.values for setting in settings)):
        yield {setting.name: value for setting, value in zip(settings, values, strict=True)}


def chosen(scheduler: str, values: Mapping[str, str | None]) -> SchedulerChoice:
    """The candidate with these values; those that are None stay at the default."""
    changed = {name: value for name, value in values.items() if value is not None}
    choice = SchedulerChoice(name=scheduler, tunables=changed, label=scheduler)
    return choice.model_copy(update={"label": choice.without_label})


def search_space(
    defaults: Mapping[str, Mapping[str, str]],
    work: Work,
    *,
    vary: Sequence[str],
    queue_depth: int | None,
    groups: GroupConditions | None = None,
) -> Space:
    """The candidates for a target and a load.

    Args:
        defaults: By scheduler: its tunables and the queue's attributes on the target, with their defaults.
            What is missing there is not tuned.
        work: The load's properties.
        vary: Names of the settings to vary; empty for all that matter.
        queue_depth: Requests that the device takes at once; None if unknown.
        groups: Of the load; None for a load without control groups.

    Raises:
        UsageError: if `vary` names a setting that no scheduler here has, or that the load cannot feel.
        TunableError: if it names an attribute of control groups that the target lacks.
    """
    of_groups = groups or GroupConditions()
    found = {
        scheduler: [
            *(
                setting
                for candidate in (*_TUNABLES[scheduler], *_ATTRIBUTES)
                if (candidate.name in vary if vary else candidate.matters(work))
                and (setting := _setting(candidate, scheduler, had, queue_depth)) is not None
            ),
            *of_groups.settings(scheduler, vary),
        ]
        for scheduler, had in defaults.items()
    }
    space = Space(found)
    for name in vary:
        if not any(names(name, one) for one in space.names()):
            of_groups.refuse(name)
            known = [one.name for some in (*_TUNABLES.values(), _ATTRIBUTES) for one in some]
            raise UsageError(
                f"there is no setting {name!r} to vary under {', '.join(defaults)}",
                hint=f"tuning knows {', '.join(dict.fromkeys(known))}",
            )
    return space


def _setting(
    candidate: _Candidate, scheduler: str, defaults: Mapping[str, str], queue_depth: int | None
) -> TriedSetting | None:
    """The candidate's values on a target; None if it has no such setting, or no second value."""
    if candidate.name not in defaults:
        return None
    default = defaults[candidate.name]
    values = candidate.values
    if candidate.name == "nr_requests" and scheduler == "none" and queue_depth is not None:
        # blk_mq_update_nr_requests: without a scheduler there are no more tags than the driver's.
        values = tuple(value for value in values if value < queue_depth)
    if candidate.name == "max_sectors_kb" and default.isdigit():
        values = tuple(value for value in values if value < int(default))
    others = [value for value in values if str(value) != default]
    if not others:
        return None
    before = [str(value) for value in others if not default.isdigit() or value < int(default)]
    after = [str(value) for value in others if default.isdigit() and value > int(default)]
    return TriedSetting(candidate.name, (*before, None, *after), default)
