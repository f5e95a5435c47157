"""Comparisons for programs and notebooks.

::

    import blklab

    comparison = blklab.compare("sim:hdd-7200", workloads="many-readers", blocks=8)
    comparison.best                       # the scheduler to take
    comparison                            # in a notebook: the report
    comparison.charts()[0]                # one of its pictures
    comparison.interactive()              # means and runs, to point at and to zoom
    comparison.to_pandas("pairs")
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING

from blklab.analysis.verdict import analyse
from blklab.api.answers import ReadableVerdict, RegretBounds
from blklab.api.charts import Chart, charts_of
from blklab.api.frames import pandas_frame, polars_frame
from blklab.api.interactive import interactive_chart
from blklab.api.tables import TABLES, Table, TableName
from blklab.errors import UnknownNameError, did_you_mean
from blklab.records.experiment import ExperimentRecord
from blklab.records.store import Store
from blklab.report.documents.comparison import CompareDocument, ExperimentVerdictPart, compare_document
from blklab.report.html.comparison import render_html
from blklab.report.terminal import Terminal
from blklab.report.text.answer import answer_of
from blklab.report.text.comparison import render
from blklab.spec.arguments import checked, fraction_of, text_of
from blklab.spec.request import spec_values

if TYPE_CHECKING:
    import altair
    import pandas
    import polars

REPORT_HEIGHT = "46rem"
"""Height of the frame that shows the report in a notebook; it scrolls within."""
_TEXT_COLUMNS = 100


class Comparison:
    """An experiment with its analysis.

    Attributes:
        record: The experiment with its samples.
        document: The result, as `blklab compare --json` writes it; its fields are in the JSON reference.
    """

    def __init__(self, record: ExperimentRecord) -> None:
        """Analyses an experiment.

        Args:
            record: The experiment, finished or not.
        """
        self.record = record
        document = compare_document(record, analyse(record))
        self.document: CompareDocument = document.model_copy(
            update={"verdict": ReadableVerdict.of_document(document)}
        )

    @property
    def best(self) -> str | None:
        """The scheduler that the report recommends or finds best; None while no answer is shown.

        It is a label, such as ``bfq:slice_idle=0``. `verdict` has the reason, and the names of several that
        share the first place.
        """
        recommendation = self.verdict.recommendation
        return recommendation.scheduler if recommendation.is_shown else None

    @property
    def verdict(self) -> ExperimentVerdictPart:
        """The answer: ``status``, ``best``, ``candidates``, ``text``, ``recommendation`` and more.

        Printed, it is the report's first sentence.
        """
        return self.document.verdict

    @property
    def regret(self) -> RegretBounds:
        """By scheduler, the largest fraction that may be lost by taking it; None where that is not known.

        Printed, it says so in a line for each.
        """
        return RegretBounds(self.document)

    def table(self, name: TableName = "results") -> Table:
        """One of the tables ``results``, ``pairs``, ``verdicts`` and ``runs``, as plain columns.

        Raises:
            UnknownNameError: for another name.
        """
        if name not in TABLES:
            raise UnknownNameError(
                f"there is no table {name!r}", hint=did_you_mean(name, list(TABLES)) or _listed(TABLES)
            )
        return TABLES[name](self.record, self.document)

    def to_pandas(self, name: TableName = "results") -> pandas.DataFrame:
        """A table as a pandas frame.

        Args:
            name: ``results`` (a row for each workload, scheduler and metric), ``pairs`` (two schedulers
                within blocks), ``verdicts`` (a row for each workload and metric) or ``runs`` (a row for each
                run or slot, with a column for each metric).

        Raises:
            MissingToolError: if pandas is not installed.
            UnknownNameError: for another name.
        """
        return pandas_frame(self.table(name))

    def to_polars(self, name: TableName = "results") -> polars.DataFrame:
        """A table as a polars frame; names and errors as for `to_pandas`.

        Raises:
            MissingToolError: if polars is not installed.
            UnknownNameError: for a name that is not a table's.
        """
        return polars_frame(self.table(name))

    def charts(self, workload: str | None = None) -> list[Chart]:
        """The report's charts, those of one workload or of all.

        Raises:
            UnknownNameError: if the experiment has no such workload.
        """
        return charts_of(self.record, self.document, self._workload_names(workload))

    def interactive(self, workload: str | None = None, metric: str | None = None) -> altair.VConcatChart:
        """Means and single runs as a Vega-Altair chart: with values under the pointer, to zoom and to filter.

        Args:
            workload: Name of a workload; None for the first.
            metric: Name of a metric; None for the one that decides the workload.

        Raises:
            MissingToolError: if Altair is not installed.
            UnknownNameError: if the experiment has no such workload, or no values of the metric.
        """
        name = self._workload_names(workload)[0]
        known = list(dict.fromkeys(one.metric for one in self.document.results if one.workload == name))
        deciding = (one.metric for one in self.document.verdicts if one.workload == name and one.decides)
        chosen = metric or next(deciding, known[0] if known else None)
        if chosen is None or chosen not in known:
            raise UnknownNameError(
                f"{name} has no values of {metric or 'any metric'}",
                hint=did_you_mean(metric or "", known) or _listed(known),
            )
        return interactive_chart(self.record, self.document, name, chosen)

    def _workload_names(self, workload: str | None) -> list[str]:
        names = [one.name for one in self.record.spec.workloads]
        if workload is not None and workload not in names:
            raise UnknownNameError(
                f"there is no workload {workload!r}", hint=did_you_mean(workload, names) or _listed(names)
            )
        return names if workload is None else [workload]

    @checked
    def reanalysed(
        self,
        *,
        confidence: float | str | None = None,
        margin: float | str | None = None,
        good_enough: float | str | None = None,
        goal: str | Mapping[str, float] | None = None,
    ) -> Comparison:
        """The same samples under another confidence, margin or goal; None keeps the experiment's own.

        Args:
            confidence: Of intervals, and of all claims together.
            margin: Relative differences up to this fraction do not matter: ``0.02`` or ``"2%"``.
            good_enough: Losses up to this fraction are good enough, such as ``"10%"``.
            goal: A goal's name, or weights of metrics: ``{"iops": 0.6, "latency_p99": 0.4}``.

        Raises:
            SpecError: for a wrong value.
        """
        fractions = {"confidence": confidence, "margin": margin, "good_enough": good_enough}
        options = {name: fraction_of(name, one) for name, one in fractions.items() if one is not None}
        values = spec_values(options if goal is None else {**options, "goal": goal})
        changed = self.record.spec.model_copy(update=values.fields())
        return Comparison(self.record.model_copy(update={"spec": changed}))

    def report_html(self) -> str:
        """The HTML report, one self-contained page."""
        return render_html(self.record, self.document)

    def __str__(self) -> str:
        """The report for a terminal."""
        written = io.StringIO()
        render(self.document, Terminal(file=written, width=_TEXT_COLUMNS), verbose=True)
        return written.getvalue().strip("\n")

    def __repr__(self) -> str:
        """Name, target and verdict."""
        answer = answer_of(self.document).headline
        return f"<Comparison {self.record.run_id} of {self.record.spec.target}: {answer}>"

    def _repr_html_(self) -> str:
        # A frame keeps the page's style and script apart from the notebook's.
        page = escape(self.report_html(), quote=True)
        style = f"width:100%;height:{REPORT_HEIGHT};border:0"
        return (
            f'<iframe title="blklab report" sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'
        )


def _listed(names: Iterable[str]) -> str:
    return f"there are {', '.join(names)}"


@checked
def load(run: str = "latest", *, store: str | None = None) -> Comparison:
    """Loads a stored comparison.

    Args:
        run: Its name, an unambiguous beginning or end of it, or ``latest``.
        store: Database of runs; None for the default one.

    Raises:
        UnknownNameError: if there is none, or several match.
        StoreError: if its data are damaged.
    """
    with Store.opened(store) as opened:
        return Comparison(opened.load(text_of("run", run, "'latest'")))
