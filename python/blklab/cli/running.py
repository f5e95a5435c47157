"""`blklab run`: makes the run and shows its result."""

from __future__ import annotations

import shlex
from functools import partial

from blklab.cli.output import require_writable, write_text
from blklab.errors import UsageError
from blklab.experiment.pipeline import planned_commands, run_once
from blklab.labs.gate.arms import gate_arms
from blklab.progress.experiment import ProgressDisplay
from blklab.progress.gate import GateDisplay
from blklab.quantities.notes import Note
from blklab.report.documents.comparison import run_document
from blklab.report.monitoring.openmetrics import run_metrics
from blklab.report.terminal import console_out, print_note
from blklab.report.text.comparison import render_run
from blklab.spec.forms import parse_assignments
from blklab.spec.request import SpecValues, build_specs
from blklab.spec.schedulers import SchedulerChoice, parse_scheduler_choice

MOST_NOTES = 2
"""On the load, beneath a result."""


def run_and_show(
    *,
    given: SpecValues,
    workload: str | None,
    shell_command: str | None,
    scheduler: str | None,
    tunables: tuple[str, ...],
    kernel: str | None,
    timeline_file: str | None,
    dry_run: bool,
    no_gate: bool,
    json_file: str | None,
    openmetrics_file: str | None,
    quiet: bool,
) -> None:
    """Makes the run, and prints and writes what it did."""
    choice = _choice(scheduler, parse_assignments(tunables, "--tunable"))
    if kernel is not None and "," in kernel:
        raise UsageError(f"one run has one kernel, not {kernel}", hint="`blklab compare` takes several")
    if kernel is not None and choice is not None and choice.kernel not in (None, kernel):
        raise UsageError(f"--kernel {kernel} contradicts {choice.without_label}")
    if (workload is None) == (shell_command is None):
        raise UsageError("one run has one workload", hint="name it after TARGET, or give --command COMMAND")
    work = {"workloads": [workload]} if shell_command is None else {"commands": [shell_command]}
    placed = SpecValues(**work, kernels=None if kernel is None else [kernel])
    spec = build_specs(given.overlaid_by(placed))[0].with_schedulers([choice] if choice else [])
    if dry_run:
        _, planned = planned_commands(spec, blocks=None)
        for line in (line for _, lines in planned for line in lines):
            console_out().print(line, soft_wrap=True)
        return
    require_writable(json_file, openmetrics_file)
    if not no_gate:
        gate_arms([spec], partial(GateDisplay, quiet=quiet))
    with ProgressDisplay(quiet=quiet) as display:
        sample, used, warnings = run_once(spec, display, timeline_file=timeline_file)
    for warning in warnings:
        if not isinstance(warning, Note):
            print_note(warning)
    if timeline_file is not None:
        print_note(f"timeline: {timeline_file}; `blklab explain --from {timeline_file}` draws it")
    document = run_document(
        spec.target, sample, scheduler=used.name, tunables=used.tunables, queue=spec.queue
    )
    if "-" not in (json_file, openmetrics_file):
        render_run(document, console_out())
    _print_notes([warning for warning in warnings if isinstance(warning, Note)], workload)
    if json_file is not None:
        write_text(json_file, document.model_dump_json(by_alias=True, indent=2))
    if openmetrics_file is not None:
        write_text(openmetrics_file, run_metrics(document))


def _print_notes(notes: list[str], workload: str | None) -> None:
    """Properties of the load, which make nothing wrong, beneath the result; of many only where they are."""
    if len(notes) > MOST_NOTES and workload is not None:
        print_note(f"{len(notes)} remarks on the load: blklab workloads {shlex.quote(workload)}")
        return
    for note in notes:
        print_note(note)


def _choice(scheduler: str | None, tunables: dict[str, str]) -> SchedulerChoice | None:
    """The scheduler as named, with the tunables of both spellings."""
    if scheduler is None:
        if tunables:
            raise UsageError("--tunable needs --scheduler", hint="tunables belong to a scheduler")
        return None
    named = parse_scheduler_choice(scheduler)
    twice = named.tunables.keys() & tunables.keys()
    if twice:
        raise UsageError(f"the tunable {min(twice)} is given twice")
    merged = named.model_copy(update={"tunables": named.tunables | tunables})
    return merged.model_copy(update={"label": merged.without_label})
