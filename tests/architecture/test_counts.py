"""A count that people read agrees with its noun: ``1 run``, ``2 runs``, made by `count_of`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "blklab"
_PLURAL = re.compile(r"^ (?:(?:of|more|other|open) )?[a-z]*[a-rt-z]s\b")
_COUNT = re.compile(r"\blen\(|\bnr_|\.(?:runs|blocks|samples|size)$|^(?:runs|left|total|number)$")
_VERBS = re.compile(r"^ (?:is|was|has|its|this|as|bytes|does|needs|takes)\b")
ALWAYS_SEVERAL = {
    "cli/apply.py: len(disks)": "one is no mistake",
    "cli/calibrate_disk.py: len(tested)": "the loads of the page, whose number is fixed",
    "cli/calibrate_processor.py: len(FITTED)": "a fixed number",
    "cli/calibrate_processor.py: len(CHECKED)": "a fixed number",
    "cli/explain.py: len(names)": "one or two are drawn",
    "cli/running.py: len(notes)": "beyond MOST_NOTES",
    "cli/torturing.py: total": "of all runs: 3/12 runs",
    "cli/tuning.py: preparation.space.size": "one candidate is nothing to search",
    "cli/workloads.py: len(uses)": "one is named",
    "experiment/prerequisites.py: len(missing)": "one is raised as it is",
    "labs/calibration/disk/drift.py: self.runs": "of all runs",
    "labs/fidelity/report.py: number": "percentage points",
    "labs/judgement/on_host.py: len(judgement.asked)": "the questions, whose number is fixed",
    "labs/reanalysis/analysis.py: len(names)": "several tell several factors apart",
    "labs/reanalysis/analysis.py: len(result.files)": "one is named",
    "labs/reanalysis/design.py: len(levels[name])": "a factor has two levels",
    "labs/reanalysis/report/text.py: len(of_reader)": "one is named",
    "labs/studies/ioband/competing.py: len(cells)": "a fixed number",
    "labs/studies/ioband/competing.py: len(single)": "a fixed number",
    "labs/studies/ionice/reading.py: disk.nr_totals": "one has no scatter",
    "labs/studies/iozone_raid10/orders.py: len(rising)": "a fixed number",
    "labs/studies/published/claims.py: len(matching)": "one is no mistake",
    "labs/studies/replication/report/monitoring.py: one.runs": "of all runs",
    "labs/reanalysis/report/text.py: len(of)": "one is named",
    "linux/disks/arrays.py: len(words[5])": "an array's",
    "linux/load/fio.py: len(names)": "fio's own list of names",
    "linux/scratch/layout.py: len(places)": "one is no mistake",
    "modules/layout.py: len(self.structures)": "a fixed number",
    "modules/layout.py: self.nr_members": "a fixed number",
    "modules/layout.py: self.nr_constants": "a fixed number",
    "progress/experiment.py: len(questions)": "one is named",
    "progress/gate.py: total": "of all seeds: 3/12 seeds",
    "records/store.py: len(matching)": "one is loaded",
    "report/sentences/answer.py: len(workloads) - _MOST_WORKLOADS + 1": "two or more",
    "report/summary/disturbed.py: len(group)": "one is not counted",
    "report/summary/failures.py: len(runs)": "one is not counted",
    "report/trace/html.py: len(members)": "an array's",
    "spec/sweeps.py: number": "too many",
}
"""Counts that are never 1 where they are printed, or of a total, with the reason."""
_APART = ("labs/reanalysis/readers", "report/pages", "guests/kernels/scheduler_files", "modules/renaming")
"""Of a file's form, whose mistakes name two counts; of the pages that are generated; ``no times``."""


def counts(source: Path) -> Iterator[str]:
    """The place and expression of each number before a plural."""
    name = str(source.relative_to(PACKAGE))
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        pairs = zip(node.values, node.values[1:], strict=False) if isinstance(node, ast.JoinedStr) else ()
        for value, text in pairs:
            if not (isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant)):
                continue
            expression, after = ast.unparse(value.value), str(text.value)
            is_count = "count_of" not in expression and _COUNT.search(expression)
            if is_count and _PLURAL.match(after) and not _VERBS.match(after):
                yield f"{name}: {expression}"


SOURCES = [
    one for one in sorted(PACKAGE.rglob("*.py")) if not str(one.relative_to(PACKAGE)).startswith(_APART)
]


def test_a_number_before_a_plural_is_a_count_of_things() -> None:
    found = {one for source in SOURCES for one in counts(source)}
    assert found - ALWAYS_SEVERAL.keys() == set(), "write count_of(NUMBER, 'run')"
    assert ALWAYS_SEVERAL.keys() - found == set(), "no longer there"


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("f'{len(runs)} runs'", True),
        ("f'after {of.nr_blocks} other blocks'", True),
        ("f'{count_of(len(runs), \"run\")} of studies'", False),
        ("f'{len(name)} is too long'", False),
    ],
)
def test_such_a_number_is_seen(
    line: str, is_found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "one.py"
    source.write_text(line, "utf-8")
    monkeypatch.setattr(f"{__name__}.PACKAGE", tmp_path)
    assert bool(list(counts(source))) == is_found
