"""Writes the page of the published studies and its plots: ``python -m blklab.studies.published.page``.

The argument is the page's file. The plots go into ``images/studies`` beside it. Every figure of the page
comes from the analysis; a test holds page and plots together with it.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from blklab.quantities.formatting import rounded
from blklab.reanalysis.analysis import FileAnalysis
from blklab.reanalysis.findings import ConditionFindings
from blklab.reanalysis.report.chart import cell_chart
from blklab.reanalysis.report.wording import downward, effect_text, figure_text, supported
from blklab.report.drawing.palette import colour_rules
from blklab.report.pages.markdown import markdown_table
from blklab.shipped import shipped_folder
from blklab.studies import study_names as repeatable_studies
from blklab.studies.published.claims import ClaimReading
from blklab.studies.published.study import PublishedTable, StudyReading, read_study, study_names

IMAGES = "images/studies"

_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1c2127}"
    ".tick,.axis-title{fill:#58616b;font-size:12px}"
    ".grid{stroke:#e6eaee}.baseline{stroke:#d8dde3}"
    ".dot{fill:var(--series);fill-opacity:.45}"
    ".interval{stroke:var(--series);stroke-width:3}.interval-end{stroke:var(--series);stroke-width:2}"
    ".mark{fill:var(--series)}"
    "@media (prefers-color-scheme:dark){text{fill:#e6e9ed}.tick,.axis-title{fill:#a3adb8}"
    ".grid{stroke:#2a3037}.baseline{stroke:#363d45}}"
)

_INTRODUCTION = """# Five published studies, read again

The figures of five published experiments on I/O schedulers went through `blklab analyse`. For each
conclusion that they printed, this page says whether the figures printed beside it support it: **supported**,
**not supported** (the figures leave it open) or **contradicted** (they show the opposite, or that there is no
difference worth having). This judges figures and designs, not authors: a conclusion that is not supported may
well be true.

The page is made by `python -m blklab.studies.published.page docs/studies.md` from `studies/*/published/*.csv`
(the figures as printed) and `studies/*/claims.toml` (the conclusions, and the comparisons that would support
them). [analyse.md](analyse.md) says how figures are compared. All intervals are of 95 %; pairs of a table are
corrected together by Holm's method; differences within 2 % count as equal.

The experiments themselves can be run again: `blklab study list` names those that can be, and
`blklab study run NAME` (or `all`) runs one as its authors did and as it should have been done, and holds the
published figures beside ours. `--on sim` is the simulator, `--on uml` a real kernel in
[virtual time](virtual-time.md), `--on host` this machine (as root; only scratch files are written, in the
folder that `--target` names); `--quick` has smaller sizes and fewer cases, `--html FILE` writes a page. Each
study has a page with what the simulator finds."""


def page_and_images() -> tuple[str, dict[str, str]]:
    """The page, and its plots by file name."""
    readings = [read_study(name) for name in study_names()]
    images: dict[str, str] = {}
    parts = [_INTRODUCTION, _overview(readings), *(_study(reading, images) for reading in readings)]
    return "\n\n".join(parts) + "\n", images


def write_page(page_file: Path) -> None:
    """Writes the page and its plots; plots that are no longer part of it are removed."""
    page, images = page_and_images()
    folder = page_file.parent / IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    page_file.write_text(page, encoding="utf-8")
    for name, text in images.items():
        (folder / name).write_text(text, encoding="utf-8")
    for old in folder.glob("*.svg"):
        if old.name not in images:
            old.unlink()


def _overview(readings: Sequence[StudyReading]) -> str:
    rows = [
        (
            f"[{reading.study.title}](#{_anchor(reading.study.title)})",
            *(
                str(sum(claim.status == status for claim in reading.claims))
                for status in ("supported", "not supported", "contradicted")
            ),
        )
        for reading in readings
    ]
    return markdown_table(("Study", "Supported", "Not supported", "Contradicted"), rows)


def _study(reading: StudyReading, images: dict[str, str]) -> str:
    study = reading.study
    units = {question.name: question.unit for question in study.questions}
    again = reading.name in repeatable_studies()
    claims = [_claim_row(claim, units[claim.claim.question]) for claim in reading.claims]
    parts = [
        f"## {study.title}",
        f"From {study.source} ([`studies/{reading.name}`](../studies/{reading.name})).",
        *([f"Run again: [what the simulator finds](studies/{reading.name}.md)."] if again else []),
        study.set_up.strip(),
        f"*Concludes:* {study.concludes.strip()}",
        markdown_table(("Conclusion", "Reading", "What the figures say"), claims),
    ]
    parts += [f"*{claim.claim.says}* {claim.claim.remark}" for claim in reading.claims if claim.claim.remark]
    for question in study.questions:
        parts.append(_question(reading, question, reading.answers[question.name], images))
    return "\n\n".join(parts)


def _claim_row(reading: ClaimReading, unit: str) -> tuple[str, str, str]:
    claim = reading.claim
    said = []
    for pair in reading.pairs:
        if claim.kind in ("more-scattered", "less-scattered") and pair.spread is not None:
            low, high = pair.spread.interval(0.95)
            half = (high - low) / 2
            bounds = f"{rounded(low, half)}, {rounded(high, half)}"
            p = f", p = {pair.p_spread:.2g}" if pair.p_spread is not None else ""
            said.append(
                f"deviation {rounded(pair.spread.ratio, half)} times [{bounds}] that of {pair.second}{p}"
            )
        else:
            p = "" if pair.ci_low is None else f", p = {pair.p_adjusted:.2g}"
            said.append(f"{effect_text(pair, unit)} against {pair.second}{p}")
    return claim.says, f"**{reading.status}**", "; ".join([*said, *reading.reasons])


def _question(
    reading: StudyReading, question: PublishedTable, answer: FileAnalysis, images: dict[str, str]
) -> str:
    command = shlex.join(["blklab", "analyse", *question.arguments(reading.name)])
    parts = [f"### {question.title}", f"```sh\n{command}\n```"]
    reasons = [reason for section in answer.sections for reason in section.design.reasons]
    parts.append(f"Design: {'; '.join(dict.fromkeys(reasons))}.")
    if question.remarks:
        parts.append("\n".join(f"* {remark}" for remark in question.remarks))
    for index, found in enumerate(answer.findings, start=1):
        name = f"{reading.name}-{question.name}-{index}.svg"
        images[name] = str(cell_chart(found, standalone_style=colour_rules() + _STYLE)) + "\n"
        parts.append(_cell(found, name))
    return "\n\n".join(parts)


def _cell(found: ConditionFindings, image: str) -> str:
    unit = found.cell.unit or "no unit"
    levels = [
        (
            one.level or "(none)",
            str(one.n),
            figure_text(one.mean, one.ci_low, one.ci_high),
            "-" if one.deviation is None else rounded(one.deviation),
            "-" if one.trend is None or one.p_trend is None else f"{one.trend.tau:+.2f} ({one.p_trend:.2g})",
        )
        for one in found.levels
    ]
    pairs = [
        (
            f"{pair.first} over {pair.second}",
            effect_text(pair, found.cell.unit),
            "-" if pair.ci_low is None else f"{pair.p_adjusted:.2g}",
            pair.outcome,
            "-"
            if pair.detectable is None
            else f"{rounded(100 * (pair.detectable - 1))} %"
            if pair.scale == "ratio"
            else f"{rounded(pair.detectable)} {found.cell.unit}",
        )
        for pair in map(downward, found.pairs)
    ]
    parts = [
        f"**{found.cell.title}**, {unit}",
        f"![{found.cell.title}: every figure, means and intervals]({IMAGES}/{image})",
        markdown_table(("Level", "n", "Mean", "sd", "Trend (p)"), levels),
        markdown_table(("Pair", "Effect", "p (Holm)", "Reading", "Would have shown from"), pairs),
    ]
    settled = supported(found) or ["No pair is settled."]
    parts.append("\n".join(f"* {_without_folders(sentence)}" for sentence in [*settled, *found.warnings]))
    return "\n\n".join(parts)


def _without_folders(text: str) -> str:
    """Places without the folder in which the package lies on this machine."""
    return text.replace(f"{shipped_folder('studies')}/", "")


def _anchor(title: str) -> str:
    kept = "".join(character for character in title.lower() if character.isalnum() or character in " -_")
    return kept.replace(" ", "-")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m blklab.studies.published.page FILE")
    write_page(Path(sys.argv[1]))
