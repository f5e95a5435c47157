"""`blklab advise`: the questions, the plan, the comparison and the setting."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from blklab.cli import compare
from blklab.cli.advise import WATCH_TIME
from blklab.cli.apply import apply_run
from blklab.cli.comparing import compare_and_show
from blklab.cli.options import values_of
from blklab.cli.output import require_writable, write_text
from blklab.errors import BlklabError, ExitCode, UsageError
from blklab.experiment.nearest_model import nearest_model_beneath
from blklab.experiment.outlook import Outlook
from blklab.experiment.pipeline import planned_outlook
from blklab.experiment.prerequisites import require_all
from blklab.labs.advice.budget import suggested_budget
from blklab.labs.advice.document import AdviseDocument, plan_part
from blklab.labs.advice.questions import (
    AIMS,
    USES,
    USUAL,
    USUAL_BUDGET,
    WATCH,
    Watching,
    Wish,
)
from blklab.labs.advice.watching import usual_file, watch
from blklab.linux.apply.udev import require_udev
from blklab.linux.disks.resolution import resolve
from blklab.progress.experiment import plan_text, shortage_text
from blklab.quantities.formatting import count_of, scheduler_text
from blklab.quantities.units import format_duration, parse_duration_ns
from blklab.report.documents.comparison import CompareDocument
from blklab.report.terminal import Terminal, console_err, console_out, print_note
from blklab.report.text.answer import answer_of
from blklab.spec.budget import parse_budget
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.request import build_specs
from blklab.spec.targets import ModelTarget, PathTarget, parse_target


def advise_and_show(
    *,
    target: str | None,
    use: str | None,
    watch_time: str | None,
    budget: str | None,
    aim: str | None,
    yes: bool,
    applies: bool | None,
    dry_run: bool,
    json_file: str | None,
    store_url: str | None,
    verbose: bool,
    quiet: bool,
) -> int:
    """Asks, plans, compares, and sets the best scheduler if that is wanted."""
    somebody = is_interactive()
    if not somebody:
        _require_flags(use, begins=yes or dry_run)
    # Who says yes beforehand has no wish for questions that have an answer already.
    asks = somebody and not yes
    require_writable(json_file)
    given = _Given(target, use, watch_time, budget, aim, store_url)
    wish = _settled(given, asks=asks, checks=not dry_run)
    if applies:
        require_udev()
    (spec,) = _specs(wish.words_before)
    settled, outlook = planned_outlook(spec)
    document = _document(wish, outlook)
    plan = _plan_lines(wish, settled, outlook)
    if dry_run:
        if json_file != "-":
            _print(console_out(), plan, ["the same by hand:", *wish.commands])
        return _finish(document, json_file)
    _print(console_err(), plan, [])
    if not yes and not _confirms("Begin?", default=True):
        _print(console_err(), [], ["Nothing was started. The same later:", *wish.commands])
        return _finish(document, json_file)
    if wish.watching is not None:
        _watch(wish)
    shows = json_file != "-"
    compared = compare_and_show(
        _specs(wish.words),
        store_url=store_url,
        verbose=verbose,
        quiet=quiet,
        shows=shows,
        # The plan of a replay is known only now.
        tells_plan=wish.watching is not None,
    )
    found = compared.documents[0]
    if _is_to_apply(found, applies, asks=somebody):
        apply_run(found.run, store_url, prints=shows)
        document = document.model_copy(update={"applied": True})
    return _finish(_with_answer(document, found), json_file)


@dataclass(frozen=True)
class _Given:
    """Answers by flags; None for those that are not given."""

    target: str | None
    use: str | None
    watch_time: str | None
    budget: str | None
    aim: str | None
    store_url: str | None


def is_interactive() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty()


def _require_flags(use: str | None, *, begins: bool) -> None:
    missing = ([] if use is not None else ["--for USE"]) + ([] if begins else ["--yes (or --dry-run)"])
    if missing:
        raise UsageError(
            f"standard input is no terminal, so nobody can be asked; missing: {', '.join(missing)}",
            hint=f"USE is one of {', '.join(USES)}; --budget, --goal and the directory have defaults",
        )


def _settled(given: _Given, *, asks: bool, checks: bool) -> Wish:
    """All answers: those given, then those of the person, or the defaults if nobody can be asked.

    Args:
        given: By flags.
        asks: Whether somebody can be asked.
        checks: Whether everything that the comparison needs must be there.
    """
    if given.watch_time is not None and given.use not in (None, WATCH):
        raise UsageError("--watch goes with --for watch", hint="leave one of them out")
    if given.budget is not None:
        parse_budget(given.budget)
    use = given.use or (WATCH if given.watch_time is not None else _choice("What runs here?", USES, None))
    target = _target(asks=asks) if given.target is None else given.target
    on_model = isinstance(parse_target(target), ModelTarget)
    watching = _watching(target, given.watch_time) if use == WATCH else None
    wish = Wish(use, target, watching, budget=None if on_model else USUAL_BUDGET, store=given.store_url)
    (spec,) = _specs(wish.words_before)
    if checks:
        require_all([spec])
    budget = given.budget
    if budget is None and not on_model:
        suggested = suggested_budget(spec, None if watching is None else watching.duration_ns)
        budget = _budget(suggested) if asks else suggested
    aim = given.aim or (_choice("What matters more?", AIMS, USUAL) if asks else USUAL)
    return replace(wish, budget=budget, aim=aim)


def _choice(question: str, choices: Mapping[str, str], default: str | None) -> str:
    """Asks for one of several, by its number or its name."""
    console = console_err()
    console.prose(question)
    width = max(map(len, choices))
    for number, (name, text) in enumerate(choices.items(), start=1):
        console.prose(f"  {number}  {name:{width}}  {text}")
    names = list(choices)

    def read(text: str) -> str:
        word = text.strip().lower()
        if word.isdecimal() and 1 <= int(word) <= len(names):
            return names[int(word) - 1]
        if word in names:
            return word
        raise click.UsageError(f"{text!r} is not among them; answer with a number or a name")

    return str(_prompt("Number or name", default, read))


def _prompt(text: str, default: str | None, read: Callable[[str], str]) -> str:
    """Asks until the answer can be read.

    Raises:
        UsageError: if the input ends.
    """
    try:
        return str(click.prompt(text, default=default, value_proc=read, err=True))
    except click.Abort as error:
        raise _unanswered() from error


def _target(*, asks: bool) -> str:
    """The directory: the current one as root, else a modelled disk."""
    if sys.platform == "linux" and os.geteuid() == 0:
        usual = "."
    else:
        usual = nearest_model_beneath(Path.cwd())
        print_note(f"without root this machine's disks cannot be tested; {usual} is a model of one")
    if not asks:
        return usual

    def read(text: str) -> str:
        try:
            parse_target(text)
        except BlklabError as error:
            raise click.UsageError(error.message) from error
        return text

    return _prompt("Which disk? A directory on it, or the device", usual, read)


def _watching(target: str, duration: str | None) -> Watching:
    place = parse_target(target)
    if not isinstance(place, PathTarget):
        raise UsageError(
            f"nothing runs on {target} that could be watched",
            hint="name a directory or a disk that is in use",
        )
    return Watching(usual_file(resolve(place.path)), parse_duration_ns(duration or WATCH_TIME))


def _budget(suggested: str) -> str:
    def read(text: str) -> str:
        try:
            parse_budget(text)
        except BlklabError as error:
            raise click.UsageError(error.message) from error
        return text.strip()

    return _prompt("How long may it take at most?", suggested, read)


def _specs(words: Sequence[str]) -> list[ExperimentSpec]:
    """The experiment of a `blklab compare` with these words."""
    return build_specs(values_of("compare", compare.command, words))


def _plan_lines(wish: Wish, spec: ExperimentSpec, outlook: Outlook) -> list[str]:
    """The plan: what is done in which order, for how long at most, and what it does to the machine."""
    names = ", ".join(choice.label for choice in spec.schedulers)
    lines = [f"Plan for {wish.target}:"]
    if wish.watching is not None:
        duration = format_duration(wish.watching.duration_ns)
        lines += [
            f"- record what reaches the disk for {duration}, into {wish.watching.file}",
            f"- replay it under each of {names}, in random order",
        ]
    else:
        lines.append(f"- run {', '.join(wish.workloads)} under each of {names}, in random order")
    lines.append(f"- {plan_text(outlook)}")
    if isinstance(spec.parsed_target, ModelTarget):
        lines.append("- a model: nothing of this machine is tested or changed; a few minutes as a rule")
    else:
        lines.append(
            "- the disk is busy meanwhile; files of blklab's own are written and removed, settings restored"
        )
    if outlook.shortage is not None:
        lines.append(f"- {shortage_text(outlook.shortage, outlook.schedulers)}")
    return lines


def _watch(wish: Wish) -> None:
    if wish.watching is None:
        return
    print_note(f"recording for {format_duration(wish.watching.duration_ns)}; let the usual work run")
    seen = watch(wish.target, wish.watching)
    for remark in seen.remarks:
        print_note(remark)
    print_note(f"{count_of(seen.ios, 'I/O')} recorded. {seen.waits}")


def _is_to_apply(found: CompareDocument, applies: bool | None, *, asks: bool) -> bool:
    """Whether the recommended scheduler is another one and wanted."""
    advised = found.verdict.recommendation
    if found.apply_command is None or advised.action != "use" or applies is False:
        return False
    if applies or not asks:
        return bool(applies)
    name = scheduler_text(advised.scheduler or "")
    return _confirms(f"Set {name} on this disk, now and at every boot?", default=False)


def _confirms(question: str, *, default: bool) -> bool:
    try:
        return click.confirm(question, default=default, err=True)
    except click.Abort as error:
        raise _unanswered() from error


def _unanswered() -> UsageError:
    return UsageError("the questions were not answered", hint="`blklab advise --help` has the flags")


def _document(wish: Wish, outlook: Outlook) -> AdviseDocument:
    return AdviseDocument(
        use=wish.use,
        target=wish.target,
        aim=wish.aim,
        plan=plan_part(wish, outlook),
        run=None,
        answer=None,
        recommendation=None,
        apply_command=None,
        applied=False,
    )


def _with_answer(document: AdviseDocument, found: CompareDocument) -> AdviseDocument:
    return document.model_copy(
        update={
            "run": found.run,
            "answer": answer_of(found).sentence,
            "recommendation": found.verdict.recommendation,
            "apply_command": found.apply_command,
        }
    )


def _print(console: Terminal, sentences: Sequence[str], commands: Sequence[str]) -> None:
    """Sentences are wrapped; commands are not, so that they can be copied."""
    for line in sentences:
        console.prose(line)
    for line in commands:
        console.print(line, soft_wrap=True)


def _finish(document: AdviseDocument, json_file: str | None) -> int:
    if json_file is not None:
        write_text(json_file, document.model_dump_json(by_alias=True, indent=2))
    return ExitCode.OK
