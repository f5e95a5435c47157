"""Writes one page for each study: ``python -m blklab.labs.studies.replication.pages FOLDER [NAME…]``.

Each study runs on the simulator in its quick form, with a store in memory. Its page is ``NAME.md``, with the
pictures in ``images/NAME`` beside it. A test checks that pages and pictures are up to date. Pages omit the
names of stored runs, which differ from run to run.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from pathlib import Path

from blklab.labs.studies import replicable_study, replicable_study_names
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.report.drawing import draw
from blklab.labs.studies.replication.report.finding import StudyFinding
from blklab.labs.studies.replication.run import NullRunObserver, run_study
from blklab.records.store import Store
from blklab.report.pages.markdown import markdown_table

IMAGES = "images"
_ON_REAL_CFQ = frozenset({"ionice", "iozone-raid10"})
"""Studies with results on Linux 4.19, in a page written by hand, since its source does not ship."""
_REAL_CFQ = "Run on Linux 4.19: [the real cfq, deadline and noop](../studies-on-real-cfq.md)."


@functools.cache
def quick_finding(name: str) -> StudyFinding:
    """Runs a study on the simulator in its quick form; the result is deterministic."""
    with Store.opened("sqlite://") as store:
        return run_study(replicable_study(name), StudyOptions(quick=True), store, NullRunObserver())


def page_and_images(finding: StudyFinding) -> tuple[str, dict[str, str]]:
    """Returns the page of a study, and its pictures by file name."""
    claims, result = finding.folder.claims, finding.result
    images = {f"{one.name}.svg": f"{draw(one, standalone=True)}\n" for one in result.pictures}
    parts = [
        f"# {claims.title}",
        f"From {claims.source} ([`studies/{finding.name}`](../../../studies/{finding.name})).",
        "Analysis of the published values alone: [five published studies, read again](../studies.md).",
        *([_REAL_CFQ] if finding.name in _ON_REAL_CFQ else []),
        claims.set_up.strip(),
        f"*Concludes:* {claims.concludes.strip()}",
        f"## What the simulator finds\n\n{finding.tally()}.",
        markdown_table(
            ("", "Statement", "Found"),
            [
                (
                    f"**{one.outcome}**",
                    ("Published: " if one.origin == "published" else "") + one.says,
                    one.found + (f"<br>*{one.why}*" if one.why else ""),
                )
                for one in result.statements
            ],
        ),
    ]
    for picture in result.pictures:
        parts.append(f"**{picture.title}.** {picture.note}")
        parts.append(f"![{picture.title}]({IMAGES}/{finding.name}/{picture.name}.svg)")
    for table in finding.tables:
        parts.append(f"## {table}")
        parts.append(
            markdown_table(
                ("", *(heading.capitalize() for heading in finding.headings(table))),
                finding.rows(table),
            )
        )
    if result.remarks:
        parts.append("## Notes\n\n" + "\n".join(f"* {remark}" for remark in result.remarks))
    parts.append(_experiments(finding))
    return "\n\n".join(parts) + "\n", images


def _experiments(finding: StudyFinding) -> str:
    rows = [
        (one.title, f"`{record.spec.target}`", record.spec.order, str(len(record.samples)))
        for one in finding.experiments
        for record in [finding.records[one.name]]
    ]
    command = f"```sh\nblklab study run {finding.name} --quick\n```"
    return f"## Run it\n\n{command}\n\n" + markdown_table(("Experiment", "Target", "Order", "Runs"), rows)


def write_pages(folder: Path, names: Iterable[str]) -> None:
    """Writes pages and pictures, and removes pictures that a page no longer shows."""
    for name in names:
        page, images = page_and_images(quick_finding(name))
        pictures = folder / IMAGES / name
        pictures.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(page, encoding="utf-8")
        for file, text in images.items():
            (pictures / file).write_text(text, encoding="utf-8")
        for old in pictures.glob("*.svg"):
            if old.name not in images:
                old.unlink()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m blklab.labs.studies.replication.pages FOLDER [NAME…]")
    write_pages(Path(sys.argv[1]), sys.argv[2:] or replicable_study_names())
