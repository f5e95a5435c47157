"""Renders replicated studies as one HTML file, in the style of all reports."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from blklab.labs.studies.replication.report.document import study_document
from blklab.labs.studies.replication.report.drawing import draw
from blklab.labs.studies.replication.report.finding import STATEMENT_SIGNS, StudyFinding, ValueRow
from blklab.quantities.formatting import count_of
from blklab.report.drawing.picture_frame import NARROW, WIDE
from blklab.report.html.page import inert_json, page_environment, page_script, page_style
from blklab.report.html.shell import with_shell

_CHIPS = {"holds": "best", "fails": "warning", "undecided": "undecided"}


@dataclass(frozen=True)
class _Picture:
    title: str
    note: str
    drawings: list[Markup]


@dataclass(frozen=True)
class _Table:
    title: str
    headings: tuple[str, str, str]
    rows: list[ValueRow]


@dataclass(frozen=True)
class _StudySection:
    """One study, prepared for the template."""

    finding: StudyFinding
    anchor: str
    backend: str
    tables: list[_Table]
    pictures: list[_Picture]


def render_studies_html(findings: list[StudyFinding]) -> str:
    """Returns the report as the text of one HTML file (UTF-8)."""
    script, digest = page_script()
    single = len(findings) == 1
    page = (
        page_environment()
        .get_template("studies.html.j2")
        .render(
            headline=findings[0].title if single else f"{len(findings)} published studies, run again",
            single=single,
            parts=[_study_section(finding) for finding in findings],
            signs=STATEMENT_SIGNS,
            chips=_CHIPS,
            count_of=count_of,
            style=page_style(),
            script=script,
            script_digest=digest,
            data=inert_json(study_document(findings)),
        )
    )
    return with_shell(page, findings[0].title if single else "published studies", "blklab study")


def _study_section(finding: StudyFinding) -> _StudySection:
    return _StudySection(
        finding=finding,
        anchor=f"study-{finding.name}",
        backend=finding.place,
        tables=[_Table(table, finding.headings(table), finding.rows(table)) for table in finding.tables],
        pictures=[
            _Picture(one.title, one.note, [draw(one, width=width) for width in (WIDE, NARROW)])
            for one in finding.result.pictures
        ],
    )
