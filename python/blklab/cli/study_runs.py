"""`blklab study`: lists, shows, checks and runs studies."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from blklab.backends import THIS_MACHINE, Workers
from blklab.cli.output import require_writable, write_own_text, write_text
from blklab.errors import ExitCode, InterruptedRunError, UsageError
from blklab.guests.kernels.store import find
from blklab.labs.studies import replicable_study, replicable_study_names
from blklab.labs.studies.replication.expectations import EXPECTED_FILE, expected_of
from blklab.labs.studies.replication.options import STUDY_BACKENDS, StudyKernel, StudyOptions
from blklab.labs.studies.replication.protocol import Study
from blklab.labs.studies.replication.report.document import study_document
from blklab.labs.studies.replication.report.finding import BACKEND_TITLES, StudyFinding
from blklab.labs.studies.replication.report.html import render_studies_html
from blklab.labs.studies.replication.report.monitoring import study_metrics, study_suites
from blklab.labs.studies.replication.report.short import render_short_study
from blklab.labs.studies.replication.report.text import render_study
from blklab.labs.studies.replication.run import plan_study, run_plan
from blklab.progress.experiment import ProgressDisplay
from blklab.quantities.formatting import count_of
from blklab.records.locations import default_report_folder
from blklab.records.store import Store
from blklab.report.monitoring.junit import junit_xml
from blklab.report.terminal import console_out, print_note
from blklab.report.text.printer import Printer

ALL = "all"


def list_all(*, names: tuple[str, ...], json_file: str | None) -> None:
    """Prints or writes the list."""
    entries = [_entry(name) for name in dict.fromkeys([*replicable_study_names(), *names])]
    if json_file is not None:
        content = {"schema": "blklab.studies/1", "studies": [entry.as_dict() for entry in entries]}
        write_text(json_file, json.dumps(content, indent=2, ensure_ascii=False))
        return
    printer = Printer(console_out())
    table = printer.table()
    for heading in ("study", "title", "runs on"):
        table.add_column(heading, overflow="fold")
    for entry in entries:
        table.add_row(entry.name, printer.text(entry.title), ", ".join(entry.places))
    printer.console.print(table)


@dataclass(frozen=True)
class _StudyEntry:
    name: str
    title: str
    source: str
    places: list[str]

    def as_dict(self) -> dict[str, object]:
        return {"name": self.name, "title": self.title, "source": self.source, "places": self.places}


def _entry(name: str) -> _StudyEntry:
    study = replicable_study(name)
    claims = study.files().claims
    return _StudyEntry(study.name, claims.title, claims.source, list(study.backends))


def show(*, name: str, quick: bool) -> None:
    """Prints what a study is about."""
    study = replicable_study(name)
    folder = study.files()
    printer = Printer(console_out())
    printer.line((folder.claims.title, "bold"), f" ({study.name}), from {folder.claims.source}")
    for text in (folder.claims.set_up, folder.claims.concludes):
        if text:
            printer.line(" ".join(text.split()), indent=4)
    for reading in folder.readings.claims:
        printer.line((f"{reading.status}: ", "bold"), reading.claim.says)
    for backend in study.backends:
        printer.line((f"on {BACKEND_TITLES[backend]}:", "bold"))
        for one in study.experiments(StudyOptions(backend, quick=quick), folder):
            labels = ", ".join(choice.label for choice in one.spec.schedulers) or "all schedulers"
            blocks, loads = (
                count_of(one.spec.blocks or 0, "block"),
                count_of(len(one.spec.workloads), "workload"),
            )
            printer.line(f"{one.title} ({labels}; {loads}, {blocks})", indent=4)


def check(*, names: tuple[str, ...]) -> None:
    """Reads the studies."""
    for name in names:
        study = replicable_study(name)
        folder = study.files()
        for backend in study.backends:
            if (folder.folder / EXPECTED_FILE).exists():
                expected_of(folder, backend)
            study.experiments(StudyOptions(backend, quick=True), folder)
            count = count_of(len(study.experiments(StudyOptions(backend), folder)), "experiment")
            console_out().print(f"{study.name}, {BACKEND_TITLES[backend]}: {count}", soft_wrap=True)
        claims = len(folder.readings.claims)
        console_out().print(
            f"{study.name}: no mistake; {count_of(claims, 'published claim')}", soft_wrap=True
        )


def run_and_show(
    *,
    names: tuple[str, ...],
    backend_name: str,
    quick: bool,
    seed: int,
    directory: str | None,
    kernel_name: str | None,
    workers: Workers,
    json_file: str | None,
    openmetrics_file: str | None,
    junit_file: str | None,
    html_file: str | None,
    verbose: bool,
    store_url: str | None,
    quiet: bool,
) -> ExitCode:
    """Runs the studies, and prints and writes their findings."""
    _check_backend(backend_name, directory, kernel_name, workers)
    backend = next(one for one in STUDY_BACKENDS if one == backend_name)
    options = StudyOptions(
        backend,
        quick=quick,
        seed=seed,
        directory=_folder(directory),
        directory_named=directory is not None,
        kernel=None if kernel_name is None else _kernel(kernel_name),
    )
    studies = _chosen(names)
    if ALL in names:
        for study in [one for one in studies if backend not in one.backends]:
            print_note(f"{study.name} does not run on {backend}: skipped")
            studies.remove(study)
    files = (html_file, json_file, openmetrics_file, junit_file)
    require_writable(*files)
    # All of them before the first: what is missing is said while there is time to get it.
    plans = [plan_study(study, options) for study in studies]
    for reason in (reason for plan in plans for reason in plan.left_out):
        print_note(reason)
    findings: list[StudyFinding] = []
    with Store.opened(store_url) as store:
        for plan in plans:
            try:
                with ProgressDisplay(quiet=quiet, tells_plan=False, names_runs=False) as display:
                    finding = run_plan(plan, store, display, workers=workers)
            except InterruptedRunError:
                if display.run_id is not None:
                    print_note(f"the finished runs are kept as {display.run_id} (`blklab report` shows it)")
                raise
            findings.append(finding)
            if "-" not in files:
                _print(finding, html_file, verbose=verbose)
    _write_files(findings, html_file, json_file, openmetrics_file, junit_file)
    return ExitCode.PARTIAL if any(plan.left_out for plan in plans) else ExitCode.OK


def _print(finding: StudyFinding, html_file: str | None, *, verbose: bool) -> None:
    """Prints a finding: in short with the path of its page, which is made unless one is asked for by name."""
    if verbose:
        render_study(finding, console_out())
        return
    page = html_file
    if page is None:
        own = default_report_folder() / f"study-{finding.name}.html"
        write_own_text(own, render_studies_html([finding]))
        page = str(own)
    render_short_study(finding, console_out(), shlex.quote(page))


def _write_files(
    findings: list[StudyFinding],
    html_file: str | None,
    json_file: str | None,
    openmetrics_file: str | None,
    junit_file: str | None,
) -> None:
    if html_file is not None:
        write_text(html_file, render_studies_html(findings))
        if "-" not in (html_file, json_file, openmetrics_file, junit_file):
            console_out().print(f"page: {shlex.quote(html_file)}", soft_wrap=True)
    document = study_document(findings)
    if json_file is not None:
        write_text(json_file, document.model_dump_json(by_alias=True, indent=2))
    if openmetrics_file is not None:
        write_text(openmetrics_file, study_metrics(document))
    if junit_file is not None:
        write_text(junit_file, junit_xml(study_suites(document)))


def _check_backend(backend: str, directory: str | None, kernel: str | None, workers: Workers) -> None:
    if directory is not None and backend != "host":
        raise UsageError("--target needs --on host", hint="models use no folder")
    if kernel is not None and backend != "uml":
        raise UsageError("--kernel needs --on uml", hint="only guests run on a kernel of your choice")
    if workers is not THIS_MACHINE and backend == "host":
        raise UsageError("--cluster cannot be combined with --on host", hint="a cluster runs models")


def _chosen(names: tuple[str, ...]) -> list[Study]:
    chosen = replicable_study_names() if ALL in names else dict.fromkeys(names)
    studies = [replicable_study(name) for name in chosen]
    if len({study.name for study in studies}) < len(studies):
        raise UsageError(
            "two of these studies have one name", hint="rename a folder: its name is the study's"
        )
    return studies


def _kernel(name: str) -> StudyKernel:
    return StudyKernel(name, "cfq" in find(name).schedulers)


def _folder(given: str | None) -> str:
    folder = Path(given or ".")
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder", hint="--target names the folder for scratch files")
    return str(folder)
