"""The report as one self-contained HTML file: no network, no library, no font.

Text from outside (labels, job files, names of disks, messages of programs) is escaped by the template or by
`blklab.report.drawing.svg`. The page's content security policy allows only its own script, by hash.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup, escape

from blklab.analysis.values import experiment_values
from blklab.quantities.formatting import confidence_text, count_of, margin_text, metric_title
from blklab.quantities.units import format_bytes, format_duration
from blklab.records.experiment import ExperimentRecord
from blklab.report.documents.comparison import CompareDocument
from blklab.report.documents.parts import OUTCOME_SIGNS
from blklab.report.drawing.palette import appearances
from blklab.report.html.findings import goal_section, sweep_sections
from blklab.report.html.page import contents_of, inert_json, page_environment, page_script, page_style
from blklab.report.html.pictures import cited
from blklab.report.html.sections import WorkloadSection, legend, workload_section
from blklab.report.html.tables import setting_tables
from blklab.report.summary.designs import conduct_sentence, most_samples, repetitions, units_in_use
from blklab.report.summary.disturbed import disturbed_rows, marked_text
from blklab.report.summary.failures import failures_of
from blklab.report.summary.model_answer import ModelAnswer
from blklab.report.summary.phases import changes_sentences
from blklab.report.summary.processors import processor_sentences
from blklab.report.summary.regret import loss_rows
from blklab.report.summary.reproduce import repeat_command
from blklab.report.summary.throughput_over_time import course_text
from blklab.report.text.advice import next_steps
from blklab.report.text.answer import answer_of, explanation
from blklab.report.text.conditions import conditions
from blklab.report.text.known import anything_settled, known_so_far
from blklab.report.text.model import TITLE, model_sentence
from blklab.report.text.why import why_lines

MOST_OPEN_WORKLOADS = 3
"""With more workloads than that only the first is unfolded when the page opens."""


@dataclass(frozen=True)
class _Fact:
    name: str
    value: str
    remark: str


def render_html(
    record: ExperimentRecord, document: CompareDocument, *, model: ModelAnswer | None = None
) -> str:
    """The report of an analysed experiment as the text of one HTML file (UTF-8).

    Args:
        record: The experiment.
        document: Its analysis in the documented form.
        model: The nearest modelled disk's answer, shown in a box of its own; the page's data leave it out.
    """
    record = record.without_uncounted_slots()
    looks = appearances(record.spec.schedulers)
    values = experiment_values(record)
    sections = [
        workload_section(record, document, values, workload, looks, f"workload-{index}")
        for index, workload in enumerate(record.spec.workloads, start=1)
    ]
    units = units_in_use(document)
    is_open = document.verdict.status == "undecided"
    known = known_so_far(document) if is_open else []
    script, digest = page_script()
    environment = page_environment()
    environment.filters["unbroken"] = _unbroken
    environment.filters["contents"] = contents_of
    environment.filters["cited"] = partial(cited, document=document, looks=looks)
    return environment.get_template("report.html.j2").render(
        document=document,
        record=record,
        headline=answer_of(document).headline,
        says=" ".join(
            [
                explanation(document),
                *processor_sentences(document.processors),
                *changes_sentences(document.changes),
            ]
        ),
        why=why_lines(document),
        facts=_facts(record, document),
        steps=next_steps(document),
        known=known,
        losses=loss_rows(document),
        conditions=conditions(document),
        known_any=anything_settled(known),
        model=model,
        model_title=TITLE,
        model_says=[] if model is None else [model_sentence(model)],
        sections=sections,
        unfolded=_unfolded(sections),
        legend=legend(looks),
        goal=goal_section(document, looks),
        sweeps=sweep_sections(document),
        settings=setting_tables(record),
        labels=list(looks),
        outcome_signs=OUTCOME_SIGNS,
        repeat=repeat_command(record.spec),
        engines=_engines(record),
        memory=format_bytes(record.machine.memory_bytes),
        confidence=confidence_text(record.spec.confidence),
        margin=margin_text(record.spec.margin),
        format_bytes=format_bytes,
        course_text=course_text,
        metric_title=metric_title,
        format_duration=format_duration,
        count_of=count_of,
        repetitions=repetitions(document),
        failures=failures_of(document),
        units=" and ".join(f"{unit.name}s" for unit in units),
        unit=" or ".join(unit.name for unit in units),
        part=" or ".join(unit.part for unit in units),
        parts=" and ".join(f"{unit.part}s" for unit in units),
        marked=marked_text(document),
        disturbed=disturbed_rows(document),
        has_slots=any(unit.slot_ns is not None for unit in units),
        has_runs=any(unit.slot_ns is None for unit in units),
        style=page_style(),
        script=script,
        script_digest=digest,
        data=inert_json(document),
    )


_INTERVAL_OR_PERCENT = re.compile(r"\[[^\[\]]{1,40}\]|\d %")


_NAME = re.compile(r"`([^`]+)`")


def _unbroken(text: str) -> Markup:
    """Keeps intervals and percentages on one line, and sets names in backticks as code."""
    joined = _INTERVAL_OR_PERCENT.sub(lambda match: match[0].replace(" ", "\u00a0"), text)
    return Markup(_NAME.sub(r"<code>\1</code>", str(escape(joined))))  # noqa: S704 - escaped just now


def _unfolded(sections: list[WorkloadSection]) -> set[str]:
    few = len(sections) <= MOST_OPEN_WORKLOADS
    return {section.anchor for section in (sections if few else sections[:1])}


def _facts(record: ExperimentRecord, document: CompareDocument) -> list[_Fact]:
    """Confidence, blocks or rounds, runs or slots, and margin, each with a remark."""
    spec = record.spec
    failed = len(document.failed_runs)
    asked = "" if spec.blocks is None or spec.blocks == document.blocks else f" of {spec.blocks}"
    how = "each runs every scheduler once, in random order"
    units = units_in_use(document)
    conduct = conduct_sentence(document)
    made = " + ".join(str(number) for number in most_samples(document).values())
    return [
        _Fact("confidence", confidence_text(spec.confidence), "sure that no false winner is named"),
        _Fact(" and ".join(f"{unit.name}s" for unit in units), f"{made}{asked}", conduct or how),
        _Fact(
            " and ".join(f"{unit.part}s" for unit in units),
            str(len(record.samples)),
            f"{failed} of them failed" if failed else "none of them failed",
        ),
        _Fact("margin", margin_text(spec.margin), "smaller differences count as equal"),
    ]


def _engines(record: ExperimentRecord) -> list[str]:
    """Names and versions of the load generators; several only if they changed during the experiment."""
    named = (
        " ".join(str(sample.engine[key]) for key in ("name", "version") if key in sample.engine)
        for sample in record.samples
    )
    return [name for name in dict.fromkeys(named) if name]
