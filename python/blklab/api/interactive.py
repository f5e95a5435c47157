"""Charts to point at, zoom and filter, with Vega-Altair, which is an extra.

A chart is a Vega-Lite document, which JupyterLab and other notebooks draw by themselves, without a network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from blklab.analysis.metrics import METRICS
from blklab.api.tables import results_table, runs_table
from blklab.errors import MissingToolError
from blklab.quantities.formatting import metric_title
from blklab.records.experiment import ExperimentRecord
from blklab.report.documents.comparison import CompareDocument
from blklab.report.drawing.palette import COLOURS, appearances

if TYPE_CHECKING:
    import altair

_VEGA_SHAPES = {
    "circle": "circle",
    "square": "square",
    "diamond": "diamond",
    "triangle": "triangle-up",
    "hexagon": "cross",  # Vega has no hexagon
}
_WIDTH, _ROW_HEIGHT, _RUNS_HEIGHT = 560, 26, 220
_FADED = 0.12


def interactive_chart(
    record: ExperimentRecord, document: CompareDocument, workload: str, metric: str
) -> altair.VConcatChart:
    """Means with intervals above the single runs; a click on a scheduler in either picks it out in both.

    Args:
        record: The experiment.
        document: Its result.
        workload: Name of one of its workloads.
        metric: Name of a metric.

    Raises:
        MissingToolError: if Altair is not installed.
    """
    try:
        import altair as alt  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingToolError(
            "an interactive chart needs Altair", hint="pip install 'blklab[altair]'"
        ) from error
    looks = appearances(record.spec.schedulers)
    names = list(looks)
    unit = METRICS[metric].unit
    title = f"{metric_title(metric)}, {unit}" if unit else metric_title(metric)
    domain = alt.Scale(domain=names, range=[COLOURS[one.slot % len(COLOURS)][0] for one in looks.values()])
    shapes = alt.Scale(domain=names, range=[_VEGA_SHAPES[one.shape] for one in looks.values()])
    in_means, in_runs = (
        alt.selection_point(name=name, fields=["scheduler"]) for name in ("picked_mean", "picked_run")
    )
    look = {
        "color": alt.Color("scheduler:N", scale=domain, legend=None),
        "opacity": alt.condition(in_means & in_runs, alt.value(1.0), alt.value(_FADED)),
    }
    scheduler = alt.Y("scheduler:N", sort=names, title=None)
    means = alt.Chart(
        alt.Data(values=_means(record, document, workload, metric)),
        width=_WIDTH,
        height=_ROW_HEIGHT * len(names),
        title=f"{workload}: {metric_title(metric)}, means with intervals",
    ).encode(y=scheduler, **look)
    scale = alt.Scale(zero=False, padding=14, nice=False)
    axis = alt.Axis(format="~s")
    interval = means.mark_rule(strokeWidth=2).encode(
        x=alt.X("ci_low:Q", scale=scale, axis=axis, title=title),
        x2="ci_high:Q",
        tooltip=[alt.Tooltip(f"{name}:Q", format=".4~s") for name in ("mean", "ci_low", "ci_high")],
    )
    mean = means.mark_point(filled=True, size=90).encode(
        x=alt.X("mean:Q", scale=scale, axis=axis, title=title),
        shape=alt.Shape("scheduler:N", scale=shapes, legend=None),
        tooltip=[
            alt.Tooltip("scheduler:N"),
            *(alt.Tooltip(f"{name}:Q", format=".4~s") for name in ("mean", "ci_low", "ci_high")),
            alt.Tooltip("n:Q", title="runs"),
        ],
    )
    runs = (
        alt.Chart(
            alt.Data(values=_runs(record, document, workload, metric)),
            width=_WIDTH,
            height=_RUNS_HEIGHT,
            title="Runs in their order: drag to move, scroll to zoom",
        )
        .mark_point(filled=True, size=60)
        .encode(
            x=alt.X("sequence:Q", scale=scale, title="run", axis=alt.Axis(tickMinStep=1, format="d")),
            y=alt.Y("value:Q", scale=scale, axis=axis, title=title),
            shape=alt.Shape("scheduler:N", scale=shapes, legend=None),
            tooltip=[
                alt.Tooltip("scheduler:N"),
                alt.Tooltip("value:Q", title=metric_title(metric), format=".4~s"),
                alt.Tooltip("block:Q"),
                alt.Tooltip("seed:N"),
                alt.Tooltip("started_at:N", title="began"),
            ],
            **look,
        )
        .add_params(alt.selection_interval(bind="scales"), in_runs)
    )
    return alt.vconcat(alt.layer(interval, mean.add_params(in_means)), runs)


def _means(
    record: ExperimentRecord, document: CompareDocument, workload: str, metric: str
) -> list[dict[str, Any]]:
    table = results_table(record, document)
    rows = [
        dict(zip(table, row, strict=True))
        for row in zip(*(one.values for one in table.values()), strict=True)
    ]
    wanted = ("scheduler", "mean", "ci_low", "ci_high", "n")
    return [
        {name: row[name] for name in wanted}
        for row in rows
        if (row["workload"], row["metric"]) == (workload, metric)
    ]


def _runs(
    record: ExperimentRecord, document: CompareDocument, workload: str, metric: str
) -> list[dict[str, Any]]:
    table = runs_table(record, document)
    values = table[metric].values if metric in table else [None] * len(table["sequence"].values)
    wanted = ("sequence", "block", "scheduler", "seed", "started_at")
    rows = zip(*(table[name].values for name in wanted), table["workload"].values, values, strict=True)
    return [
        {**dict(zip(wanted, facts, strict=False)), "value": value}
        for *facts, own, value in rows
        if own == workload and value is not None
    ]
