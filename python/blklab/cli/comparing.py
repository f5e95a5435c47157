"""A comparison from the command line: its run, its report, and its files."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from blklab.analysis.between_runs import RunsComparison, compare_runs
from blklab.analysis.verdict import Analysis, analyse
from blklab.backends import THIS_MACHINE, Workers
from blklab.cli.kept_runs import say_what_is_kept
from blklab.cli.monitoring_files import write_monitoring
from blklab.cli.output import require_writable, write_own_text, write_text
from blklab.errors import BlklabError, ExitCode, InterruptedRunError, UsageError
from blklab.experiment.nearest_model import answer_of_nearest_model, nearest_model_beneath
from blklab.experiment.observation import is_observed_unasked, with_observed_runs
from blklab.experiment.pipeline import check_workers, compare, planned_commands
from blklab.experiment.prerequisites import require_all
from blklab.labs.gate.arms import gate_arms
from blklab.linux.scratch.space import Announce
from blklab.progress.experiment import ProgressDisplay
from blklab.progress.gate import GateDisplay
from blklab.quantities.formatting import count_of
from blklab.quantities.units import format_duration
from blklab.records.experiment import ExperimentRecord
from blklab.records.run_files import default_report_file
from blklab.records.store import Store
from blklab.report.documents.comparison import COMPARE_SCHEMA, CompareDocument, compare_document
from blklab.report.html.comparison import render_html
from blklab.report.summary.model_answer import asks_model, contradicts
from blklab.report.terminal import console_out, print_note
from blklab.report.text.between_runs import render_change
from blklab.report.text.comparison import render
from blklab.report.text.short_verdict import short_verdict
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.request import SpecValues


def load_stored(run: str, store_url: str | None) -> ExperimentRecord:
    """The record of a stored run."""
    with Store.opened(store_url) as store:
        return store.load(run)


def check_all_workers(specs: Sequence[ExperimentSpec], workers: Workers) -> None:
    """Makes sure that the workers can run the experiments.

    Raises:
        BlklabError: if they cannot.
    """
    for spec in specs:
        check_workers(spec, workers)


def with_default_target(values: SpecValues) -> SpecValues:
    """Adds the disk beneath this directory if it can be tested, otherwise a simulated one, with a note."""
    if sys.platform == "linux" and os.geteuid() == 0:
        return values.overlaid_by(SpecValues(targets=["."]))
    reason = (
        "without root this disk's scheduler cannot be changed"
        if sys.platform == "linux"
        else "this is not Linux"
    )
    model = nearest_model_beneath(Path.cwd())
    print_note(f"{reason}: the answer is for a simulated disk, {model}")
    return values.overlaid_by(SpecValues(targets=[model]))


def print_plans(specs: Sequence[ExperimentSpec]) -> None:
    """Prints every setting and command of the first block."""
    for spec in specs:
        _print_plan(spec)


def _print_plan(spec: ExperimentSpec) -> None:
    settled, planned = planned_commands(spec, blocks=1)
    console = console_out()
    console.print(
        f"# {settled.target}: {_how_often(settled)}, each with these runs in its own order",
        soft_wrap=True,
    )
    for title, commands in planned:
        console.print(f"# {title}", soft_wrap=True)
        for line in commands:
            console.print(line, soft_wrap=True)


def _how_often(spec: ExperimentSpec) -> str:
    if not spec.stops_when_settled:
        return count_of(spec.blocks, "block") if spec.blocks else "blocks until the budget is used up"
    limit = (
        count_of(spec.budget_blocks, "block") if spec.budget_blocks else format_duration(spec.budget_ns or 0)
    )
    return f"blocks until every question is settled, at most {limit}; beaten schedulers drop out"


class Compared(NamedTuple):
    """The results of comparisons, which have been printed and written as was asked for."""

    code: int
    documents: Sequence[CompareDocument]
    """One for each target."""


def compare_and_show(
    specs: Sequence[ExperimentSpec],
    *,
    resumed: ExperimentRecord | None = None,
    baseline: str | None = None,
    workers: Workers = THIS_MACHINE,
    json_file: str | None = None,
    openmetrics_file: str | None = None,
    junit_file: str | None = None,
    html_file: str | None = None,
    model_answer: bool | None = None,
    store_url: str | None = None,
    verbose: bool = False,
    quiet: bool = False,
    explains: bool | None = None,
    shows: bool = True,
    tells_plan: bool = True,
    gates: bool = True,
) -> Compared:
    """Runs comparisons, prints their reports, and writes what was asked for.

    Args:
        specs: One for each target.
        resumed: A stored run to be continued.
        baseline: A stored run to compare the result with.
        workers: Run the simulations and guests of models.
        json_file: For the documents; ``-`` for standard output, as for the others.
        openmetrics_file: For OpenMetrics.
        junit_file: For JUnit.
        html_file: For the page; None for the usual place.
        model_answer: Whether to show the nearest modelled disk's answer; None: if the disk's is not known.
        store_url: The store of runs; None for the usual one.
        verbose: Whether to print all figures.
        quiet: Whether to show no progress.
        explains: Whether to look for what made the differences; None: on models.
        shows: Whether to print reports for people.
        tells_plan: Whether to print the plan; not where it was agreed on.
        gates: Whether patched schedulers pass the gate in a guest before a disk of this machine.

    Raises:
        BlklabError: if a comparison cannot begin or go on; what it has measured is stored.
    """
    if baseline is not None and len(specs) > 1:
        raise UsageError("--against takes one target", hint="compare several with `blklab runs compare`")
    require_all(specs)
    machine_files = (json_file, openmetrics_file, junit_file)
    require_writable(html_file, *machine_files)
    if gates:
        gate_arms(specs, partial(GateDisplay, quiet=quiet))
    documents: list[CompareDocument] = []
    code: int = ExitCode.OK
    with Store.opened(store_url) as store:
        against = None if baseline is None else store.load(baseline)
        for spec in specs:
            try:
                with ProgressDisplay(quiet=quiet, tells_plan=tells_plan) as display:
                    record = compare(spec, store, display, resumed=resumed, workers=workers)
                    record, analysis = _explained(record, store, display, explains=explains)
            except (BlklabError, InterruptedRunError) as error:
                say_what_is_kept(store, display.run_id, error)
                raise
            document = compare_document(record, analysis)
            documents.append(document)
            store.note_verdict(record.run_id, short_verdict(document))
            change = None if against is None else _change(against, record)
            if len(documents) == len(specs):
                # Before the report is printed: its reader may go away (`| head`), which ends the command.
                if json_file is not None:
                    write_text(json_file, _as_json(documents))
                write_monitoring(documents, openmetrics_file, junit_file, change)
            _deliver(
                record,
                document,
                html_file,
                several=len(specs) > 1,
                writes_html=html_file is not None or json_file is None,
                prints=shows and "-" not in machine_files,
                ask_model=model_answer,
                verbose=verbose,
                announce=(lambda _: None) if quiet else print_note,
            )
            if change is not None:
                code = _report_change(change, prints=shows and "-" not in machine_files)
    return Compared(code, documents)


def _explained(
    record: ExperimentRecord, store: Store, display: ProgressDisplay, *, explains: bool | None
) -> tuple[ExperimentRecord, Analysis]:
    """The record with runs that were observed, if the differences are to be explained, and its analysis."""
    analysis = analyse(record)
    if is_observed_unasked(record) if explains is None else explains:
        record = with_observed_runs(record, analysis, store, display)
    return record, analysis


def _report_change(change: RunsComparison, *, prints: bool) -> ExitCode:
    if prints:
        render_change(change, console_out())
    return ExitCode.SLOWER if change.status in ("slower", "mixed") else ExitCode.OK


def _change(baseline: ExperimentRecord, record: ExperimentRecord) -> RunsComparison:
    """Compares with a stored run, by the rules of the new one."""
    if baseline.run_id == record.run_id:
        raise UsageError(f"run {record.run_id} cannot be compared with itself")
    spec = record.spec
    return compare_runs(baseline, record, confidence=spec.confidence, margin=spec.margin)


def _deliver(
    record: ExperimentRecord,
    document: CompareDocument,
    html_file: str | None,
    *,
    several: bool,
    writes_html: bool,
    prints: bool,
    ask_model: bool | None,
    verbose: bool,
    announce: Announce,
) -> None:
    """Writes the HTML report and prints the one for people, each if wanted."""
    destination = html_file or str(default_report_file(record.run_id))
    if html_file and several:
        path = Path(html_file)
        destination = str(path.with_name(f"{path.stem}-{record.run_id}{path.suffix}"))
    model = None
    if ask_model or (ask_model is None and asks_model(document)):
        model = answer_of_nearest_model(record, announce) if writes_html or prints else None
        if model is not None and not ask_model and contradicts(document, model):
            announce(f"{model.document.target} finds what this disk contradicts; its answer is left out")
            model = None
    if writes_html:
        page = render_html(record, document, model=model)
        if html_file:
            write_text(destination, page)
        else:
            write_own_text(Path(destination), page)
    if prints:
        report_file = shlex.quote(destination) if writes_html else None
        render(document, console_out(), model=model, report_file=report_file, verbose=verbose)


def _as_json(documents: list[CompareDocument]) -> str:
    """One document for one target; several targets become a list under ``documents``."""
    plain = [document.model_dump(mode="json", by_alias=True) for document in documents]
    content = plain[0] if len(plain) == 1 else {"schema": f"{COMPARE_SCHEMA}+list", "documents": plain}
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
