"""Writes the page of the published studies: ``python -m blklab.labs.studies.published.page FILE``.

The plots go into ``images/studies`` beside the page, levels and pairs into ``tables/studies-*.csv``. Every
number comes from the analysis; a test checks that all of them are up to date.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from blklab.labs.reanalysis.analysis import FileAnalysis
from blklab.labs.reanalysis.findings import StratumFindings
from blklab.labs.reanalysis.report.chart import stratum_chart
from blklab.labs.reanalysis.report.wording import downward, effect_text, supported_sentences, value_text
from blklab.labs.studies import replicable_study_names
from blklab.labs.studies.published.claims import ClaimReading
from blklab.labs.studies.published.study import (
    Reanalysis,
    StudyReading,
    published_study_names,
    read_published_study,
)
from blklab.quantities.formatting import rounded
from blklab.report.drawing.palette import colour_rules
from blklab.report.pages.markdown import markdown_table
from blklab.report.pages.page_files import PageWithFiles, csv_text, write_csv_files, write_pictures
from blklab.shipped import shipped_folder

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

`blklab analyse` has read the printed values of five published experiments on I/O schedulers. For each
printed conclusion, this page says whether the values printed beside it support it: **supported**, **not
supported** (the values leave it open) or **contradicted** (they show the opposite, or no difference that
matters). The page judges values and designs, not authors: a conclusion that is not supported may still be
true.

`python -m blklab.labs.studies.published.page docs/appendix/studies.md` generates this page from
`studies/*/published/*.csv` (the values as printed) and `studies/*/claims.toml` (the conclusions, and the
comparisons that would support them). [analyse.md](../reference/analyse.md) explains how values are
compared. All intervals are 95 % intervals; Holm's method corrects the pairs of a table together;
differences within 2 % count as equal. CSV files have the [evidence](tables/studies-claims.csv) for
each conclusion, every [level](tables/studies-levels.csv) (number of values, mean, standard deviation,
Kendall's trend), every [pair](tables/studies-pairs.csv) (effect, p by Holm, the difference that could be
detected), and [remarks](tables/studies-remarks.csv) on single values and designs.

You can run the experiments again. `blklab study list` lists them. `blklab study run NAME` (or `all`) runs
one as its authors did, then in a better design, and shows the published values beside ours. `--on sim` uses
the simulator, `--on uml` a real kernel in [virtual time](../explanation/virtual-time.md), `--on host` this
machine (as root; it writes only scratch files, in the folder that `--target` names). `--quick` uses smaller
sizes and fewer cases; `--html FILE` writes a page. Each study has a page with the simulator's results."""


def published_studies_page() -> PageWithFiles:
    """The page, its plots and its tables."""
    readings = [read_published_study(name) for name in published_study_names()]
    images: dict[str, str] = {}
    parts = [_INTRODUCTION, _overview(readings), *(_study(reading, images) for reading in readings)]
    cells = [
        ((reading.name, reanalysis.name, found.stratum.title), found)
        for reading in readings
        for reanalysis in reading.study.reanalyses
        for found in reading.answers[reanalysis.name].findings
    ]
    place = ("study", "question", "values")
    tables = {
        "studies-claims.csv": csv_text(
            ("study", "conclusion", "result", "evidence"),
            [claim for reading in readings for claim in _claims(reading)],
        ),
        "studies-remarks.csv": csv_text(
            (*place, "remark"),
            [(*where, _without_folders(warning)) for where, found in cells for warning in found.warnings],
        ),
        "studies-levels.csv": csv_text(
            (*place, "level", "n", "mean [95 % interval]", "unit", "sd", "trend (p)"),
            [(*where, *level) for where, found in cells for level in _levels(found)],
        ),
        "studies-pairs.csv": csv_text(
            (*place, "pair", "effect [95 % interval]", "p (Holm)", "outcome", "detectable from"),
            [(*where, *pair) for where, found in cells for pair in _pairs(found)],
        ),
    }
    return PageWithFiles("\n\n".join(parts) + "\n", images, tables)


def write_page(page_file: Path) -> None:
    """Writes the page, its plots and its tables, and removes those that it no longer has."""
    page = published_studies_page()
    write_pictures(page_file.parent / IMAGES, page.pictures)
    write_csv_files(page_file, page_file.stem, page.tables)
    page_file.write_text(page.text, encoding="utf-8")


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
    again = reading.name in replicable_study_names()
    claims = [(claim.claim.says, f"**{claim.status}**") for claim in reading.claims]
    parts = [
        f"## {study.title}",
        f"From {study.source} ([`studies/{reading.name}`](../../studies/{reading.name})).",
        *([f"Run again: [the simulator's results](studies/{reading.name}.md)."] if again else []),
        study.set_up.strip(),
        f"*Concludes:* {study.concludes.strip()}",
        markdown_table(("Conclusion", "Result"), claims),
    ]
    parts += [f"*{claim.claim.says}* {claim.claim.remark}" for claim in reading.claims if claim.claim.remark]
    for reanalysis in study.reanalyses:
        parts.append(_question(reading, reanalysis, reading.answers[reanalysis.name], images))
    return "\n\n".join(parts)


def _claims(reading: StudyReading) -> list[tuple[str, str, str, str]]:
    units = {reanalysis.name: reanalysis.unit for reanalysis in reading.study.reanalyses}
    return [(reading.name, *_claim_row(claim, units[claim.claim.reanalysis])) for claim in reading.claims]


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
    return claim.says, reading.status, "; ".join([*said, *reading.reasons])


def _question(
    reading: StudyReading, reanalysis: Reanalysis, answer: FileAnalysis, images: dict[str, str]
) -> str:
    command = shlex.join(["blklab", "analyse", *reanalysis.arguments(reading.name)])
    parts = [f"### {reanalysis.title}", f"```sh\n{command}\n```"]
    if reanalysis.remarks:
        parts.append("\n".join(f"* {remark}" for remark in reanalysis.remarks))
    for index, found in enumerate(answer.findings, start=1):
        name = f"{reading.name}-{reanalysis.name}-{index}.svg"
        images[name] = str(stratum_chart(found, standalone_style=colour_rules() + _STYLE)) + "\n"
        parts.append(_cell(found, name))
    return "\n\n".join(parts)


def _cell(found: StratumFindings, image: str) -> str:
    parts = [
        f"**{found.stratum.title}**, {found.stratum.unit or 'no unit'}",
        f"![{found.stratum.title}: every value, means and intervals]({IMAGES}/{image})",
    ]
    settled = supported_sentences(found) or ["No pair is settled."]
    parts.append("\n".join(f"* {_without_folders(sentence)}" for sentence in settled))
    return "\n\n".join(parts)


def _levels(found: StratumFindings) -> list[tuple[str, ...]]:
    return [
        (
            one.level or "(none)",
            str(one.n),
            value_text(one.mean, one.ci_low, one.ci_high),
            found.stratum.unit or "",
            "-" if one.deviation is None else rounded(one.deviation),
            "-" if one.trend is None or one.p_trend is None else f"{one.trend.tau:+.2f} ({one.p_trend:.2g})",
        )
        for one in found.levels
    ]


def _pairs(found: StratumFindings) -> list[tuple[str, ...]]:
    return [
        (
            f"{pair.first} over {pair.second}",
            effect_text(pair, found.stratum.unit),
            "-" if pair.ci_low is None else f"{pair.p_adjusted:.2g}",
            pair.outcome,
            "-"
            if pair.detectable is None
            else f"{rounded(100 * (pair.detectable - 1))} %"
            if pair.scale == "ratio"
            else f"{rounded(pair.detectable)} {found.stratum.unit}",
        )
        for pair in map(downward, found.pairs)
    ]


def _without_folders(text: str) -> str:
    """File locations without the folder in which the package is installed."""
    return text.replace(f"{shipped_folder('studies')}/", "")


def _anchor(title: str) -> str:
    kept = "".join(character for character in title.lower() if character.isalnum() or character in " -_")
    return kept.replace(" ", "-")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m blklab.labs.studies.published.page FILE")
    write_page(Path(sys.argv[1]))
