"""The settings of control groups that tuning varies: weights, limits, and io.cost's parameters.

A load without groups has none. Shares are relative, so one group keeps its weight, unless jobs outside any
group compete too. ``io.weight`` does nothing while io.cost is off, and bfq's weights nothing under another
scheduler. Limits (``io.max``) are parts of what a group moves under the default; a load that measures some of
its groups has only the others limited.

io.cost's latency targets are multiples of what the model has at nine tenths of its random rates. Its
coefficients are not searched but measured, on the model of this very disk, and come with io.cost; where the
model is of another disk, the kernel's own stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from blklab.errors import UsageError
from blklab.labs.tuning.setting import TriedSetting
from blklab.linux.cgroups.settings import missing_attribute
from blklab.quantities.formatting import join_names
from blklab.spec.group_settings import (
    COST_ENABLE,
    KEYED,
    ROOT_GROUP,
    cost_is_enabled,
    is_group_setting,
    parse_group_setting,
    words_of,
)
from blklab.spec.workloads import Workload

BFQ = "bfq"
_WEIGHT_DEFAULT = "100"
"""CGROUP_WEIGHT_DFL and BFQ_DEFAULT_GRP_WEIGHT (Linux 6.1)."""
_WEIGHTS = (10, 20, 50, 100, 200, 300, 500, 1000)
_LIMITS = (0.125, 0.25, 0.5, 0.75)
"""Parts of what the group moves without a limit."""
_LATENCIES = (0.5, 1, 2, 5, 10)
"""Multiples of the latency at nine tenths of the random rate."""
VRATE_MIN, VRATE_MAX = "/io.cost.qos.min", "/io.cost.qos.max"
_VRATES_LEAST = (10, 25, 50, 75, 100)
_VRATES_MOST = (25, 50, 75, 100, 150)
"""Percent. All but the last are among `_VRATES_LEAST`, so that both ends can meet."""
_DIGITS = 2
_DIRECTIONS = {"r": "reads", "w": "writes"}


@dataclass(frozen=True)
class GroupWork:
    """The part of a control group in a load."""

    name: str
    reads: bool
    writes: bool
    measured: bool
    """Whether the verdict looks at one of its jobs."""
    fixed_weight: bool
    """Whether a job file sets its weight."""


@dataclass(frozen=True)
class GroupLoad:
    """The control groups of a load."""

    groups: tuple[GroupWork, ...] = ()
    compete: bool = False
    """Whether some workload has jobs in several groups, or in a group and outside any."""
    outside: bool = False
    """Whether jobs outside any group compete with them."""

    @classmethod
    def of(cls, workloads: Sequence[Workload]) -> GroupLoad:
        """The groups of all workloads together, in the order in which jobs name them."""
        jobs = [(job, job.name in one.focus) for one in workloads for job in one.jobs]
        names = dict.fromkeys(job.cgroup for job, _ in jobs if job.cgroup is not None)
        found = []
        for name in names:
            own = [(job, focused) for job, focused in jobs if job.cgroup == name]
            found.append(
                GroupWork(
                    name=name,
                    reads=any(job.reads for job, _ in own),
                    writes=any(job.writes for job, _ in own),
                    measured=any(focused for _, focused in own),
                    fixed_weight=any(job.cgroup_weight is not None for job, _ in own),
                )
            )
        competing = [places for one in workloads if len(places := {job.cgroup for job in one.jobs}) > 1]
        return cls(tuple(found), bool(competing), any(None in places for places in competing))

    @property
    def limited(self) -> list[GroupWork]:
        """The groups whose limits are varied."""
        return [one for one in self.groups if not one.measured] or list(self.groups)

    @property
    def weighted(self) -> list[GroupWork]:
        """The groups whose weights are varied."""
        free = [one for one in self.groups if not one.fixed_weight]
        if not self.compete:
            return []
        return free if self.outside or len(free) < len(self.groups) else free[1:]


@dataclass(frozen=True)
class CostFigures:
    """io.cost's parameters as the model has them."""

    percentile: int
    rlat_us: int
    wlat_us: int
    coefficients: Mapping[str, int]
    """Empty for those that the kernel takes by itself."""


@dataclass(frozen=True)
class GroupConditions:
    """Facts of target, model and load that the values of settings follow from."""

    load: GroupLoad = GroupLoad()
    attributes: frozenset[str] = frozenset()
    """Those that the target has."""
    given: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Attributes that the experiment sets, by group."""
    moved: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Under the default, by group and direction (``r``, ``w``): bytes a second."""
    cost: CostFigures | None = None
    """None if io.cost is not varied."""

    @property
    def has_cost(self) -> bool:
        """Whether the target has io.cost."""
        return "io.cost.qos" in self.attributes

    def settings(self, scheduler: str, vary: Sequence[str]) -> list[TriedSetting]:
        """The settings under a scheduler, in the order in which they are looked at.

        Args:
            scheduler: Its name.
            vary: Names as a person gave them; empty for all that the load can feel.
        """
        offered = [*self._cost(), *self._weights(scheduler), *self._limits(vary)]
        if not vary:
            return offered
        wanted = [one for one in offered if any(names(asked, one.name) for asked in vary)]
        needed = {one.needs for one in wanted}
        return [one for one in offered if one in wanted or one.name in needed]

    def refuse(self, asked: str) -> None:
        """Explains why a setting of groups that a person named is not varied.

        Raises:
            UsageError: if the load has no groups, or none that could feel it.
            TunableError: if the target has no such attribute.
        """
        if not (is_group_setting(asked) or asked.startswith(("io.", "blkio."))):
            return
        if not self.load.groups:
            raise UsageError(
                f"there is no {asked} to vary: no job of the load is in a control group",
                hint="a job joins one with cgroup=GROUP in its job file",
            )
        file = asked.rpartition("/")[2]
        attribute = next((one for one in KEYED if file.startswith(one)), file)
        if attribute not in self.attributes:
            version = 2 if any(one.startswith("io.") for one in self.attributes) else 1
            raise missing_attribute(version, attribute)
        raise UsageError(
            f"the load cannot feel {asked}",
            hint=f"its control groups are {join_names([one.name for one in self.load.groups])}; weights need "
            "several that compete, and none that a job file fixes",
        )

    def _cost(self) -> list[TriedSetting]:
        if self.cost is None or not self.has_cost:
            return []
        words = self._given_words(ROOT_GROUP, "io.cost.qos")
        enabled = cost_is_enabled(self.given)
        needs = None if enabled else COST_ENABLE
        found = []
        if not enabled:
            model = {} if self._given_words(ROOT_GROUP, "io.cost.model") else self.cost.coefficients
            brought = {f"/io.cost.model.{name}": str(value) for name, value in model.items()}
            found.append(TriedSetting(COST_ENABLE, (None, "1"), "0", brings=brought))
        for letter, latency_us in (("r", self.cost.rlat_us), ("w", self.cost.wlat_us)):
            if any(getattr(group, _DIRECTIONS[letter]) for group in self.load.groups):
                percentile = {} if f"{letter}pct" in words else {f"{letter}pct": str(self.cost.percentile)}
                found += _setting(
                    f"/io.cost.qos.{letter}lat",
                    [_rounded(factor * latency_us) for factor in _LATENCIES],
                    words.get(f"{letter}lat", "auto"),
                    needs=needs,
                    brings={f"/io.cost.qos.{name}": value for name, value in percentile.items()},
                )
        found += _setting(VRATE_MIN, _VRATES_LEAST, words.get("min", "auto"), needs=needs)
        found += _setting(VRATE_MAX, _VRATES_MOST, words.get("max", "auto"), needs=needs)
        return found

    def _weights(self, scheduler: str) -> list[TriedSetting]:
        of_bfq = next((one for one in ("io.bfq.weight", "blkio.bfq.weight") if one in self.attributes), None)
        attributes: list[tuple[str, str | None]] = []
        if scheduler == BFQ and of_bfq is not None:
            attributes.append((of_bfq, None))
        enabled = cost_is_enabled(self.given)
        if "io.weight" in self.attributes and (enabled or self._cost()):
            attributes.append(("io.weight", None if enabled else COST_ENABLE))
        found = []
        for attribute, needs in attributes:
            for group in self.load.weighted:
                default = self.given.get(group.name, {}).get(attribute, _WEIGHT_DEFAULT).split()[-1]
                found += _setting(f"{group.name}/{attribute}", _WEIGHTS, default, needs=needs)
        return found

    def _limits(self, vary: Sequence[str]) -> list[TriedSetting]:
        """Limits of bytes; those of measured groups only if somebody asks for that group's."""
        if "io.max" not in self.attributes or not (self.load.compete or vary):
            return []
        named = {asked.rpartition("/")[0] for asked in vary}
        found = []
        for group in self.load.groups:
            if group not in self.load.limited and group.name not in named:
                continue
            given = self._given_words(group.name, "io.max")
            for letter in _DIRECTIONS:
                moved = self.moved.get((group.name, letter), 0.0)
                values = [_rounded(part * moved) for part in _LIMITS] if moved else []
                key = f"{letter}bps"
                found += _setting(f"{group.name}/io.max.{key}", values, given.get(key, "max"))
        return found

    def _given_words(self, group: str, attribute: str) -> dict[str, str]:
        return words_of(self.given.get(group, {}).get(attribute, ""))


def names(asked: str, name: str) -> bool:
    """Whether what a person asks for means a setting: by its name, without the group, or by its file."""
    if asked == name:
        return True
    if not is_group_setting(name):
        return False
    place = parse_group_setting(name)
    group, _, file = asked.rpartition("/")
    if file not in (place.without_group, place.attribute):
        return False
    return "/" not in asked or (group or ROOT_GROUP) == place.group


def _setting(
    name: str,
    values: Sequence[int],
    default: str,
    *,
    needs: str | None = None,
    brings: Mapping[str, str] | None = None,
) -> list[TriedSetting]:
    """The setting, its default in order: ``auto`` first, ``max`` last; none without a second value."""
    number = int(float(default)) if default.replace(".", "", 1).isdigit() else None
    others = sorted({value for value in values if value != number})
    if not others:
        return []
    least = number if number is not None else (others[-1] + 1 if default == "max" else 0)
    before = [str(value) for value in others if value < least]
    after = [str(value) for value in others if value > least]
    return [TriedSetting(name, (*before, None, *after), default, brings=brings or {}, needs=needs)]


def _rounded(value: float) -> int:
    """To two digits, so that what is recommended is a round number."""
    whole = max(1, round(value))
    return max(1, round(whole, min(0, _DIGITS - len(str(whole)))))
