"""Writes one page for each study: ``python -m blklab.labs.studies.replication.pages FOLDER [NAME…]``.

Each study runs on the simulator in its quick form, with a store in memory. Its page is ``NAME.md``; pictures
are in ``images/NAME`` beside it, all values in ``tables/NAME-*.csv``. A test checks that they are up to date.
Pages omit the names of stored runs, which differ from run to run.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from pathlib import Path

from blklab.experiment.blocks import NullRunObserver
from blklab.labs.studies import replicable_study, replicable_study_names
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.report.drawing import draw
from blklab.labs.studies.replication.report.finding import StudyFinding
from blklab.labs.studies.replication.run import run_study
from blklab.quantities.formatting import count_of
from blklab.records.store import Store
from blklab.report.pages.markdown import markdown_table
from blklab.report.pages.page_files import (
    FOLDER,
    PageWithFiles,
    csv_text,
    write_csv_files,
    write_pictures,
)

IMAGES = "images"
_ON_REAL_CFQ = frozenset({"ionice", "iozone-raid10"})
"""Studies with results on Linux 4.19, in a page written by hand, since its source does not ship."""
_READ_AGAIN = "Set-up, conclusions and printed values: [five published studies](../studies.md)."
_REAL_CFQ = "Run on Linux 4.19: [the real cfq, deadline and noop](../studies-on-real-cfq.md)."


@functools.cache
def quick_finding(name: str) -> StudyFinding:
    """Runs a study on the simulator in its quick form; the result is deterministic."""
    with Store.opened("sqlite://") as store:
        return run_study(replicable_study(name), StudyOptions(quick=True), store, NullRunObserver())


def study_page(finding: StudyFinding) -> PageWithFiles:
    """Writes the page of a study: its conclusions and pictures; values are in the tables."""
    claims, result = finding.folder.claims, finding.result
    files, tables = f"{FOLDER}/{finding.name}", _tables(finding)
    parts = [
        f"# {claims.title}",
        f"From {claims.source} ([`studies/{finding.name}`](../../../studies/{finding.name})).",
        _READ_AGAIN,
        *([_REAL_CFQ] if finding.name in _ON_REAL_CFQ else []),
        f"## What the simulator finds\n\n{finding.tally()}: [all statements]({files}-statements.csv).",
        "Published conclusions, and statements of ours that do not hold:",
        markdown_table(
            ("", "Statement", "Found"),
            [
                (
                    f"**{one.outcome}**",
                    ("Published: " if one.origin == "published" else "") + one.says,
                    one.found + (f"<br>*{one.why}*" if one.why else ""),
                )
                for one in result.statements
                if one.origin == "published" or one.outcome != "holds"
            ],
        ),
    ]
    for picture in result.pictures:
        parts.append(f"**{picture.title}.** {picture.note}")
        parts.append(f"![{picture.title}]({IMAGES}/{finding.name}/{picture.name}.svg)")
    if finding.tables:
        parts.append(f"[All values]({files}-values.csv), beside the published or intended ones.")
    if result.remarks:
        parts.append("## Notes\n\n" + "\n".join(f"* {remark}" for remark in result.remarks))
    parts.append(_experiments(finding))
    pictures = {f"{one.name}.svg": f"{draw(one, standalone=True)}\n" for one in result.pictures}
    return PageWithFiles("\n\n".join(parts) + "\n", pictures, tables)


def _tables(finding: StudyFinding) -> dict[str, str]:
    statements = [
        (one.outcome, one.origin, one.says, one.found, one.why or "") for one in finding.result.statements
    ]
    tables = {
        "statements": csv_text(("outcome", "origin", "statement", "found", "why"), statements),
        "experiments": csv_text(("experiment", "target", "order", "runs"), _experiment_rows(finding)),
    }
    if finding.tables:
        tables["values"] = csv_text(
            ("table", "value, unit", "compared with", "its value", "ours", "ours over it"),
            [
                (table, name, finding.headings(table)[0], *values)
                for table in finding.tables
                for name, *values in finding.rows(table)
            ],
        )
    return {f"{finding.name}-{name}.csv": text for name, text in tables.items()}


def _experiments(finding: StudyFinding) -> str:
    rows = _experiment_rows(finding)
    command = f"```sh\nblklab study run {finding.name} --quick\n```"
    experiments = f"[{count_of(len(rows), 'experiment')}]({FOLDER}/{finding.name}-experiments.csv)"
    return f"## Run it\n\n{command}\n\n{experiments}, {count_of(sum(int(row[-1]) for row in rows), 'run')}."


def _experiment_rows(finding: StudyFinding) -> list[tuple[str, str, str, str]]:
    return [
        (one.title, record.spec.target, record.spec.order, str(len(record.samples)))
        for one in finding.experiments
        for record in [finding.records[one.name]]
    ]


def write_pages(folder: Path, names: Iterable[str]) -> None:
    """Writes pages, pictures and tables, and removes those that a page no longer shows."""
    for name in names:
        page = study_page(quick_finding(name))
        write_pictures(folder / IMAGES / name, page.pictures)
        write_csv_files(folder / f"{name}.md", name, page.tables)
        (folder / f"{name}.md").write_text(page.text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m blklab.labs.studies.replication.pages FOLDER [NAME…]")
    write_pages(Path(sys.argv[1]), sys.argv[2:] or replicable_study_names())
