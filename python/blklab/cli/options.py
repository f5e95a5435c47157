"""Flags of commands: those of an experiment, from its table of options, and a few that commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from blklab.cli.commands import HeadedOption
from blklab.cli.numbers import FractionRange, RealRange
from blklab.errors import UsageError
from blklab.spec.experiment import DEFAULT_SEED, OPTIONS, option_named
from blklab.spec.forms import FRACTION, NUMBER, WORD
from blklab.spec.options import Option, Topic, Use
from blklab.spec.request import SpecValues

if TYPE_CHECKING:
    from blklab.backends import Workers

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

STORE_HELP = (
    "Database of runs: a file or a URL (postgresql://…); default: $BLKLAB_STORE or the XDG data folder."
)


def store_option(function: Decorated) -> Decorated:
    """Adds ``--store``."""
    return click.option("--store", "store_url", metavar="URL", callback=_not_empty, help=STORE_HELP)(function)


def _not_empty(_context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Refuses the empty text that an unset variable expands to, instead of taking the default."""
    if text == "":
        raise UsageError(
            f"{parameter.opts[0]} is empty", hint=f"leave {parameter.opts[0]} out for the default"
        )
    return text


def json_option(function: Decorated) -> Decorated:
    """Adds ``--json [FILE]``."""
    return click.option(
        "--json",
        "json_file",
        metavar="FILE",
        is_flag=False,
        flag_value="-",
        help="Write the result as JSON to FILE, or to standard output for -.",
    )(function)


def _workers_at(context: click.Context, _parameter: click.Parameter, address: str | None) -> Workers | None:
    if context.resilient_parsing:  # a Tab, which runs nothing
        return None
    from blklab.backends import THIS_MACHINE  # noqa: PLC0415 - a Tab on the flags need not wait for it
    from blklab.backends.cluster.client import Cluster  # noqa: PLC0415

    return Cluster(address) if address else THIS_MACHINE


def cluster_option(function: Decorated) -> Decorated:
    """Adds ``--cluster ADDRESS``; the command gets `Workers` as ``workers``."""
    return click.option(
        "--cluster",
        "workers",
        metavar="ADDRESS",
        callback=_workers_at,
        help="Run simulations and guests on the workers of the Dask scheduler at ADDRESS, instead of here.",
    )(function)


def openmetrics_option(function: Decorated) -> Decorated:
    """Adds ``--openmetrics FILE``."""
    return click.option(
        "--openmetrics",
        "openmetrics_file",
        metavar="FILE",
        help="Write the result as OpenMetrics text for monitoring to FILE, or to standard output for -.",
    )(function)


def junit_option(function: Decorated) -> Decorated:
    """Adds ``--junit FILE``."""
    return click.option(
        "--junit",
        "junit_file",
        metavar="FILE",
        help="Write the result as JUnit XML for CI to FILE, or to standard output for -.",
    )(function)


def quiet_option(function: Decorated) -> Decorated:
    """Adds ``-q``."""
    return click.option("-q", "--quiet", is_flag=True, help="No progress.")(function)


def output_option(help_text: str, **more: Any) -> Callable[[Decorated], Decorated]:
    """Adds ``-o FILE`` for the file that a command makes; the command gets ``output``."""
    return click.option("-o", "--output", "output", metavar="FILE", help=help_text, **more)


def scheduler_option(default: str) -> Callable[[Decorated], Decorated]:
    """Adds ``-s NAME`` of commands that make one run.

    Args:
        default: The scheduler where none is named, for help.
    """
    return click.option(
        "-s", "--scheduler", "scheduler", metavar="NAME", help=f"Scheduler. Default: {default}."
    )


def open_option(function: Decorated) -> Decorated:
    """Adds ``--open``; the command gets ``opens``."""
    return click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")(function)


def seed_option(function: Decorated) -> Decorated:
    """Adds ``--seed NUMBER`` of measurements."""
    return click.option(
        "--seed", type=click.IntRange(min=0), default=DEFAULT_SEED, show_default=True, help="Seed."
    )(function)


def dry_run_option(help_text: str) -> Callable[[Decorated], Decorated]:
    """Adds ``--dry-run``."""
    return click.option("--dry-run", is_flag=True, help=help_text)


def inference_options(compared: str) -> Callable[[Decorated], Decorated]:
    """Adds ``--confidence`` and ``--margin`` of commands that analyse stored runs.

    Args:
        compared: The things that can be equal, for help.
    """
    confidence, margin = option_named("confidence"), option_named("margin")

    def decorate(function: Decorated) -> Decorated:
        for option, text in (
            (margin, f"Ratio within which {compared} count as equal."),
            (confidence, "Of intervals, and of all claims together."),
        ):
            add = click.option(
                option.flag, type=_click_type(option), default=option.default, show_default=True, help=text
            )
            function = add(function)
        return function

    return decorate


def file_size_option(function: Decorated) -> Decorated:
    """Adds ``--file-size SIZE`` of measurements of a disk."""
    return click.option(
        "--file-size",
        metavar="SIZE",
        help="Size of each of two test files, where the target is a directory. Default: 1g.",
    )(function)


def repetitions_option(function: Decorated) -> Decorated:
    """Adds ``--repetitions N`` of measurements with a cost table."""
    return click.option(
        "--repetitions",
        type=click.IntRange(min=1),
        default=2,
        show_default=True,
        help="Times that each load runs on this machine.",
    )(function)


def experiment_options(
    command: str, *, apart: tuple[str, ...] = (), required: tuple[str, ...] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds a subcommand's flags and target; it gets their values as ``given``.

    Args:
        command: The subcommand, as `Option.commands` names it.
        apart: Keys of options that the subcommand declares itself, since it takes them in another way.
        required: Keys of arguments that it cannot do without.
    """
    options = [option for option in OPTIONS if command in option.commands and option.key not in apart]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def collected(**arguments: Any) -> Any:
            return function(given=_gathered(options, arguments), **arguments)

        for option in reversed(options):
            collected = experiment_parameter(option, required=option.key in required)(collected)
        return collected

    return decorate


def _gathered(options: Sequence[Option], arguments: dict[str, Any]) -> SpecValues:
    """The values of an experiment, taken out of a command's arguments."""
    given: dict[str, Any] = {}
    for option in options:
        written = option.form.gather(arguments.pop(_parameter(option)), option.flag)
        if written is not None:
            place = given.setdefault(option.table, {}) if option.table else given
            place[option.name] = written
    return SpecValues(**given)


def values_of(name: str, command: click.Command, words: Sequence[str]) -> SpecValues:
    """The values that a command would get from these words.

    Args:
        name: The command's, as `Option.commands` has it.
        command: It.
        words: Its flags and arguments, without its name.

    Raises:
        click.UsageError: for words that it does not take.
    """
    context = command.make_context(name, list(words))
    return _gathered([option for option in OPTIONS if name in option.commands], dict(context.params))


def experiment_parameter(option: Option, *, required: bool = False) -> Callable[[Decorated], Decorated]:
    """The click parameter of one option; its value is None (or an empty tuple) where it is not given."""
    if option.positional:
        metavar = option.metavar if required else f"[{option.metavar}]"
        return click.argument(_parameter(option), metavar=metavar, required=required)
    kind = _click_type(option)
    return click.option(
        *option.flags,
        _parameter(option),
        cls=ExperimentFlag,
        experiment_option=option,
        type=kind,
        is_flag=option.form.use is Use.SWITCH,
        multiple=option.form.use is Use.REPEATED,
        metavar=None if isinstance(kind, click.Choice) else option.shown_metavar or None,
        default=None,
        help=flag_help(option),
    )


def flag_help(option: Option) -> str:
    """Help for the flag: its meaning, whether it can be repeated, and its default."""
    repeated = " Repeatable." if option.form.use is Use.REPEATED else ""
    default = f" Default: {option.shown_default}." if option.shown_default else ""
    return f"{option.help}{repeated}{default}"


def _parameter(option: Option) -> str:
    """The name under which click passes the value."""
    return option.key.replace(".", "_")


def _click_type(option: Option) -> click.ParamType[Any] | None:
    """The type that click checks; everything else is checked when the experiment is made."""
    if option.form not in (FRACTION, NUMBER, WORD):
        return None
    if option.choices and not option.table:
        return click.Choice(option.choices)
    if option.type is int:
        below = option.bound("lt")
        return click.IntRange(option.bound("ge"), option.bound("le") if below is None else below - 1)
    if option.type is float:
        least, most = option.bound("ge"), option.bound("le")
        return (FractionRange if option.form is FRACTION else RealRange)(
            option.bound("gt") if least is None else least,
            option.bound("lt") if most is None else most,
            min_open=least is None,
            max_open=most is None,
        )
    return None


_TOPICS = tuple(Topic)
_BRIEF = (Topic.COMPARISON, Topic.DESIGN, Topic.VERDICT)
"""Topics that help in brief shows too."""


class ExperimentFlag(HeadedOption):
    """A flag of an option of experiments; help lists it under the option's topic."""

    def __init__(self, *arguments: Any, experiment_option: Option, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.experiment_option = experiment_option
        self.heading = experiment_option.topic.value
        self.rank = _TOPICS.index(experiment_option.topic)
        self.in_brief = experiment_option.topic in _BRIEF
