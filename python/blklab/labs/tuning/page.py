"""The page of `blklab tune --html`: one file that needs no network."""

from __future__ import annotations

from blklab.labs.tuning.charts import (
    front_chart,
    history_chart,
    importance_chart,
    looks_of,
    slice_charts,
)
from blklab.labs.tuning.document import TuneDocument
from blklab.labs.tuning.text import finalist_rows, headline, next_step, sentences
from blklab.report.html.page import inert_json, page_environment, page_script, page_style
from blklab.report.html.shell import with_shell


def tune_html(document: TuneDocument) -> str:
    """The page as the text of one HTML file (UTF-8)."""
    looks = looks_of(document)
    script, digest = page_script()
    charts = (importance_chart(one, looks[one.scheduler]) for one in document.searched)
    page = (
        page_environment()
        .get_template("tune.html.j2")
        .render(
            document=document,
            headline=headline(document),
            sentences=sentences(document),
            next_step=next_step(document),
            facts=_facts(document),
            finalists=finalist_rows(document),
            history=history_chart(document, looks),
            front=front_chart(document, looks),
            importances=[chart for chart in charts if chart is not None],
            slices=slice_charts(document, looks),
            style=page_style(),
            script=script,
            script_digest=digest,
            data=inert_json(document),
        )
    )
    return with_shell(page, document.target, "blklab tune")


def _facts(document: TuneDocument) -> list[tuple[str, str, str]]:
    pruned = sum(1 for one in document.trials if one.pruned)
    refused = sum(1 for one in document.trials if one.error is not None)
    return [
        ("candidates", f"{document.candidates:,}", "that there are"),
        ("trials", str(len(document.trials)), f"{pruned} given up early, {refused} refused by the model"),
        ("simulated runs", f"{document.simulated_runs:,}", f"on {document.model}"),
    ]
