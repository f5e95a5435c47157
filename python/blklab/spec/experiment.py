"""An experiment: its schedulers, workloads, number of runs, their conditions, and when to call two equal.

The fields of `ExperimentSpec` that a person can set declare an `Option` each. They are the one list of
options: `OPTIONS` collects them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from blklab.quantities.units import MOST_NS
from blklab.spec.budget import BUDGET, DEFAULT_BUDGET_BLOCKS, MAX_BLOCKS
from blklab.spec.changes import Change
from blklab.spec.command_options import CommandOptions
from blklab.spec.forms import (
    ASSIGNMENTS,
    CHANGES,
    COMMANDS,
    DURATION,
    FRACTION,
    GOAL,
    GROUP_ASSIGNMENTS,
    KERNELS,
    MACHINE,
    NUMBER,
    SCHEDULERS,
    SWEEPS,
    SWITCH,
    TARGETS,
    WORD,
    WORKLOADS,
)
from blklab.spec.goals import NAMED_GOALS, Goal
from blklab.spec.guest import GuestOptions
from blklab.spec.machines import Machine
from blklab.spec.options import Option, Topic, options_of
from blklab.spec.permits import SWITCHBACK_WITH_CHANGES
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.setting_values import check_group_value, check_queue_values
from blklab.spec.slots import SlotDecision
from blklab.spec.sweeps import TunableSweep
from blklab.spec.targets import Target, parse_target
from blklab.spec.workloads import Workload

DEFAULT_CONFIDENCE = 0.95
DEFAULT_MARGIN = 0.02
DEFAULT_SEED = 1
DEFAULT_WORKLOADS = ("random-read-4k-qd32", "reader-beside-writers")

Order = Literal["randomised", "by-scheduler"]
DesignName = Literal["auto", "runs", "switchback"]
Arrangement = Literal["drawn", "fixed"]
DEFAULT_ARRANGEMENT: Arrangement = "drawn"

EVERY_RUN = ("compare", "run")
"""Commands that take the options of a single run."""
COMPARISONS = ("compare", "tune")
"""Commands that end in a verdict on a target."""


class Conditions(BaseModel):
    """Conditions of every run of an experiment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    runtime_ns: Annotated[
        int | None,
        Field(gt=0, le=MOST_NS),
        Option(
            DURATION,
            "Length of each run of a time-based workload, such as 3s.",
            name="runtime",
            metavar="TIME",
            default_text="what the job file says",
            commands=(*EVERY_RUN, "tune", "explain"),
        ),
    ] = None
    queue: Annotated[
        dict[str, str],
        Option(
            ASSIGNMENTS,
            "Queue attribute in force during all runs, in sysfs units, such as nr_requests=64.",
            metavar="KEY=VALUE",
            default_text="as found",
            commands=(*EVERY_RUN, "tune", "explain"),
        ),
    ] = {}
    cgroups: Annotated[
        dict[str, dict[str, str]],
        Option(
            GROUP_ASSIGNMENTS,
            "Attribute of a control group that jobs join with cgroup=GROUP, such as "
            "batch:io.max=rbps=1048576; / is the root group (io.cost.qos, io.cost.model).",
            flag="--cgroup",
            metavar="GROUP:KEY=VALUE",
            commands=(*EVERY_RUN, "tune"),
        ),
    ] = {}
    changes: Annotated[
        list[Change],
        Option(
            CHANGES,
            "Change while the load runs, such as '10s reader: ionice=rt/4', '10s batch: io.weight=50', "
            "'10s nr_requests=32', '10s slice_idle=0' or '10s scheduler=kyber'.",
            name="change",
            metavar="'AT WHAT'",
            see="change-settings-mid-run.md",
            commands=(*EVERY_RUN, "explain"),
        ),
    ] = []
    """In order of their times."""
    precondition: Annotated[
        bool,
        Option(
            SWITCH,
            "Overwrite scratch space at random before the first run, so that flash performs as it does after "
            "long use.",
            see="precondition-flash.md",
            commands=COMPARISONS,
        ),
    ] = False
    allow_writes: Annotated[
        bool,
        Option(
            SWITCH,
            "Let workloads write to a raw block device. DESTROYS its data.",
            see="safety.md",
            commands=(*EVERY_RUN, "tune"),
        ),
    ] = False
    arrangement: Annotated[
        Arrangement,
        Option(
            WORD,
            "Of models: drawn lets chance decide anew in each block where files lie, when the load and its "
            "processes start, and the first tag; fixed repeats one arrangement.",
            see="experiments.md#chance-in-models",
            commands=(*EVERY_RUN, "tune", "explain"),
        ),
    ] = DEFAULT_ARRANGEMENT
    machine: Annotated[
        Machine | None,
        Option(
            MACHINE,
            "Of models: a cost table, by name or file, that says how many processors there are "
            "and what computing costs. With zero-cpu-time it costs nothing.",
            metavar="NAME|FILE",
            default_text="ordinary; zero-cpu-time in guests whose clock or kernel takes no table",
            see="processor-time.md",
            names="machines",
            commands=(*EVERY_RUN, "tune", "explain"),
        ),
    ] = None
    guest: GuestOptions = GuestOptions()
    """Of targets that run in a guest kernel."""
    rate_window_ns: int | None = Field(default=None, ge=1_000_000)
    """Length of the windows of `JobSample.rates` where the backend leaves the choice (the simulator, which
    records none otherwise)."""

    @field_validator("queue")
    @classmethod
    def _has_values_of_a_queue(cls, queue: dict[str, str]) -> dict[str, str]:
        check_queue_values(queue)
        return queue

    @field_validator("cgroups")
    @classmethod
    def _has_values_of_groups(cls, groups: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        for group, attributes in groups.items():
            for attribute, value in attributes.items():
                check_group_value(f"{group}:{attribute}", value)
        return groups

    def arrangement_seed(self, seed: int) -> int | None:
        """Seed of the arrangement of a model's run with that seed; None if it is fixed."""
        return seed if self.arrangement == "drawn" else None


class ExperimentSpec(Conditions, CommandOptions):
    """A complete experiment on one target. Holds job texts, so it repeats from the store alone."""

    target: Annotated[
        str,
        Option(
            TARGETS,
            "Directory, block device or model to test; several targets make one experiment each.",
            Topic.COMPARISON,
            name="targets",
            singular="target",
            positional=True,
            metavar="TARGET",
            default_text="as root the disk beneath the current directory, otherwise a simulated disk",
            see="experiments.md#targets",
            names="targets",
            commands=(*EVERY_RUN, "tune"),
        ),
    ]
    workloads: Annotated[
        list[Workload],
        Option(
            WORKLOADS,
            "Shipped workload, a recording (trace:FILE), or a file of your own: a job file, or a command's "
            "description (.toml). In an experiment's description, relative to that file.",
            Topic.COMPARISON,
            flag="--workload",
            short="-w",
            metavar="NAME|FILE.fio|trace:FILE",
            default_text=" and ".join(DEFAULT_WORKLOADS),
            see="experiments.md#workloads",
            names="workloads",
            commands=COMPARISONS,
        ),
        Option(
            COMMANDS,
            "Shell command as a workload, whose time decides, such as 'make -j2'; on disks of this machine.",
            Topic.COMPARISON,
            name="commands",
            singular="command",
            flag="--command",
            metavar="COMMAND",
            see="measure-a-program.md",
            commands=EVERY_RUN,
        ),
    ]
    """Job files and commands, with the options for commands applied."""
    schedulers: Annotated[
        list[SchedulerChoice],
        Option(
            SCHEDULERS,
            "Schedulers to compare, with changed tunables where wanted, such as none,bfq:slice_idle=0; all, "
            "or history for those of older kernels, which only models have.",
            Topic.COMPARISON,
            short="-s",
            metavar="A,B,…",
            default_text="all that the target offers; of a simulated one none, mq-deadline, kyber and bfq",
            see="experiments.md#schedulers",
            names="schedulers",
            commands=COMPARISONS,
        ),
    ]
    """Empty: every scheduler that the target offers, on a simulated one those of today's kernels."""
    sweeps: Annotated[
        list[TunableSweep],
        Option(
            SWEEPS,
            "Values of tunables to compare with the default, such as bfq:slice_idle=0,2,20.",
            Topic.COMPARISON,
            flag="--sweep",
            metavar="NAME:TUNABLE=V,V,…",
            see="sweep-tunables.md",
            names="schedulers",
        ),
    ] = []
    """Once settled, their cells are among the schedulers."""
    kernels: Annotated[
        list[str],
        Option(
            KERNELS,
            "Guest kernels of uml: targets; every scheduler that names none runs on each.",
            Topic.GUESTS,
            flag="--kernel",
            metavar="A,B,…",
            default_text="stock",
            see="build-kernels.md",
            names="kernels",
            commands=EVERY_RUN,
        ),
    ] = []
    stopping: Literal["fixed", "settled"] = "fixed"
    """``settled``: blocks are added until each question is settled, which the analysis must allow for."""
    blocks: Annotated[
        int | None,
        Field(ge=1, le=MAX_BLOCKS),
        Option(
            NUMBER,
            "A fixed number of blocks instead of a budget; each block runs every scheduler once.",
            Topic.DESIGN,
            short="-n",
            see="experiments.md#how-many-blocks",
            commands=COMPARISONS,
            instead_of=("budget",),
        ),
    ] = None
    """None if the samples or the budget decide."""
    budget_ns: Annotated[
        int | None,
        Field(gt=0, le=MOST_NS),
        Option(
            BUDGET,
            "Most time or blocks to spend, such as 5m or 30blocks; blocks are added until every question is "
            "settled.",
            Topic.DESIGN,
            name="budget",
            metavar="TIME|Nblocks",
            default_text=f"{DEFAULT_BUDGET_BLOCKS}blocks",
            see="experiments.md#how-many-blocks",
            commands=COMPARISONS,
            more_fields=("budget_blocks",),
            instead_of=("blocks",),
        ),
    ] = None
    budget_blocks: int | None = Field(default=None, ge=1, le=MAX_BLOCKS)
    order: Annotated[
        Order,
        Option(
            WORD,
            "by-scheduler makes all runs of one scheduler before the next, as many published experiments "
            "did; drift then passes for a difference. Needs blocks.",
            Topic.DESIGN,
            see="experiments.md#how-many-blocks",
        ),
    ] = "randomised"
    design: Annotated[
        DesignName,
        Option(
            WORD,
            "runs starts the load anew for each scheduler; switchback switches schedulers within one "
            "continuous load; auto takes switchback on a host wherever the workload permits.",
            Topic.DESIGN,
            see="switchback.md",
        ),
    ] = "auto"
    slots: dict[str, SlotDecision] = {}
    """By workload: whether and how fast its schedulers take turns. Empty until a pilot has decided."""
    seed: Annotated[
        int,
        Field(ge=0, lt=1 << 53),
        Option(
            NUMBER,
            "Seed of the order of runs, the load's random choices and the jitter of models.",
            Topic.DESIGN,
            commands=(*EVERY_RUN, "tune", "explain"),
            always_repeated=True,
        ),
    ] = DEFAULT_SEED
    confidence: Annotated[
        float,
        Field(gt=0.5, lt=1),
        Option(
            NUMBER,
            "Confidence of the intervals and the verdict.",
            Topic.VERDICT,
            see="statistics.md",
            commands=(*COMPARISONS, "report"),
        ),
    ] = DEFAULT_CONFIDENCE
    margin: Annotated[
        float,
        Field(ge=0, lt=1),
        Option(
            NUMBER,
            "Relative differences up to this fraction do not matter.",
            Topic.VERDICT,
            see="statistics.md",
            commands=(*COMPARISONS, "report"),
        ),
    ] = DEFAULT_MARGIN
    good_enough: Annotated[
        float | None,
        Field(gt=0, lt=1),
        Option(
            FRACTION,
            "Stop as soon as some scheduler is known to be at most this much worse than the best, such as "
            "10%; the one in force first. Without it experiments go on, and 5% is good enough for advice.",
            Topic.VERDICT,
            metavar="FRACTION",
            see="switchback.md#regret",
            commands=("compare", "report"),
        ),
    ] = None
    goal: Annotated[
        Goal | None,
        Option(
            GOAL,
            f"One answer for one purpose: {', '.join(NAMED_GOALS)}, or weights such as "
            "iops=0.6,latency_p99=0.4.",
            Topic.VERDICT,
            metavar="NAME|METRIC=WEIGHT,…",
            default_text="each workload's own metric",
            see="decide-for-a-goal.md",
            names="goals",
            commands=(*COMPARISONS, "report"),
        ),
    ] = None
    """None: each workload's own metric, and best in all of them."""

    @field_validator("target")
    @classmethod
    def _follows_the_grammar(cls, text: str) -> str:
        parse_target(text)
        return text

    @model_validator(mode="after")
    def _order_needs_blocks(self) -> ExperimentSpec:
        if self.order == "by-scheduler" and self.blocks is None:
            raise ValueError("the order by-scheduler needs a fixed number of blocks")
        return self

    @model_validator(mode="after")
    def _switchback_needs_a_budget(self) -> ExperimentSpec:
        if self.design == "switchback" and self.blocks is not None:
            raise ValueError("the design switchback has no fixed number of blocks: give a budget")
        return self

    @model_validator(mode="after")
    def _no_changes_between_turns(self) -> ExperimentSpec:
        if self.design == "switchback" and self.changes:
            raise ValueError(SWITCHBACK_WITH_CHANGES)
        return self

    @property
    def parsed_target(self) -> Target:
        """The target, read; its text is checked when the experiment is made."""
        return parse_target(self.target)

    @property
    def stops_when_settled(self) -> bool:
        """Whether the samples decide how many blocks there are."""
        return self.stopping == "settled"

    @property
    def switched(self) -> dict[str, SlotDecision]:
        """The workloads whose schedulers take turns within one load, with their slots."""
        return {name: decision for name, decision in self.slots.items() if decision.slot_ns is not None}

    def conditions(self) -> dict[str, Any]:
        """The fields of `Conditions`, by name."""
        return {name: getattr(self, name) for name in Conditions.model_fields}

    def with_schedulers(self, choices: list[SchedulerChoice]) -> ExperimentSpec:
        """The same experiment with its schedulers settled."""
        return self.model_copy(update={"schedulers": choices})

    def workload(self, name: str) -> Workload:
        """The workload of that name; it must be there."""
        return next(workload for workload in self.workloads if workload.name == name)


OPTIONS = options_of(ExperimentSpec)
"""Every option of an experiment, topic by topic."""


def option_named(name: str) -> Option:
    """The option with that key, such as ``seed`` or ``guest.memory``; it must be there."""
    return next(option for option in OPTIONS if option.key == name)
