"""`blklab analyse`: analyse the output of other benchmark tools."""

from __future__ import annotations

import click

from blklab.cli.commands import described_command
from blklab.cli.options import inference_options, json_option
from blklab.cli.output import print_error, write_text
from blklab.errors import DesignError, ExitCode, UsageError
from blklab.labs.reanalysis.analysis import AnalysisRequest, analyse_files
from blklab.labs.reanalysis.design import ComparisonScale, DesignRequest
from blklab.labs.reanalysis.file_names import NamesPattern
from blklab.labs.reanalysis.readers import READERS
from blklab.labs.reanalysis.readers.protocol import ReaderOptions
from blklab.labs.reanalysis.report.document import analyse_document
from blklab.labs.reanalysis.report.html import render_analysis_html
from blklab.labs.reanalysis.report.text import render_analysis
from blklab.report.terminal import console_out

_EPILOG = "\b\nFormats:\n" + "\n".join(f"  {reader.NAME:10} {reader.SUMMARY}" for reader in READERS.values())


@described_command(
    name="analyse",
    epilog=_EPILOG,
    examples=(
        ("two files of results", "blklab analyse none.txt bfq.txt"),
        ("under labels of your own", "blklab analyse a.json b.json --label a.json=none --label b.json=bfq"),
        (
            "a table, with a page",
            "blklab analyse results.csv --value rate_MBps --factor scheduler --run session --html r.html",
        ),
    ),
)
@click.argument("files", nargs=-1, required=True, metavar="FILE|FOLDER...")
@click.option("--reader", metavar="NAME", help="Read the files as this format instead of detecting it.")
@click.option("--factor", metavar="NAME", help="Factor that was compared; `none` if there is none.")
@click.option(
    "--by", multiple=True, metavar="NAME", help="Compare only runs that agree in this factor. Repeatable."
)
@click.option(
    "--block",
    multiple=True,
    metavar="NAME",
    help="Runs that agree in this factor form a block (pairs). Repeatable.",
)
@click.option(
    "--average", multiple=True, metavar="NAME", help="Average over this factor within a block. Repeatable."
)
@click.option(
    "--pool", multiple=True, metavar="NAME", help="Ignore this factor although it varies. Repeatable."
)
@click.option("--run", metavar="NAME", help="Column that numbers the runs of a level.")
@click.option(
    "--order",
    metavar="NAME|given",
    help="Column that gives the order of the runs; `given`: the order in the file.",
)
@click.option(
    "--where",
    multiple=True,
    metavar="NAME=VALUE",
    help="Keep only runs with this value. Repeatable, also for one NAME.",
)
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME", help="Analyse only this metric. Repeatable."
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="FILE=NAME",
    help="Level that a file's figures belong to. Repeatable.",
)
@click.option(
    "--names",
    metavar="PATTERN",
    help="Factors in the files' paths, such as 'rep_{run}/qd_{depth}_sche_{scheduler}.txt'.",
)
@click.option("--value", "values", multiple=True, metavar="COLUMN", help="Column of figures in a table.")
@click.option("--unit", metavar="UNIT", help="Unit of a table's figures, such as MB/s.")
@click.option(
    "--better", type=click.Choice(["higher", "lower"]), help="Better direction of a table's figures."
)
@click.option("--decimal", type=click.Choice([".", ","]), help="Decimal sign of a table.")
@click.option("--delimiter", metavar="CHARACTER", help="Column separator of a table. Default: detected.")
@click.option(
    "--scale",
    type=click.Choice(["difference", "ratio"]),
    help="Scale of comparisons. Default: ratio within blocks, otherwise difference.",
)
@click.option("--share", is_flag=True, help="Compare shares of each block's sum.")
@inference_options("groups")
@click.option("--html", "html_file", metavar="FILE", help="Write an HTML report to FILE.")
@json_option
def command(
    *,
    files: tuple[str, ...],
    reader: str | None,
    factor: str | None,
    by: tuple[str, ...],
    block: tuple[str, ...],
    average: tuple[str, ...],
    pool: tuple[str, ...],
    run: str | None,
    order: str | None,
    where: tuple[str, ...],
    metrics: tuple[str, ...],
    labels: tuple[str, ...],
    names: str | None,
    values: tuple[str, ...],
    unit: str | None,
    better: str | None,
    decimal: str | None,
    delimiter: str | None,
    scale: str | None,
    share: bool,
    confidence: float,
    margin: float,
    html_file: str | None,
    json_file: str | None,
) -> int:
    """Analyse results in files and folders: means, all pairs, drift and the smallest detectable differences.

    Reads logs and tables of hdparm, fio, iozone, tiotest, tiobench, dd, iotop, bonnie++, sysbench, ioping,
    the Phoronix Test Suite, and plain tables. The factor and the runs follow from the data, or blklab asks
    for them; it prints them and never guesses. Exits with 7 if a value that should be there
    could not be used.
    """
    design = DesignRequest(
        factor=factor,
        by=by,
        block=block,
        average=average,
        pool=pool,
        run=run,
        order=order,
        where=_where(where),
        scale=_scale(scale),
        share=share,
    )
    options = ReaderOptions(
        value_columns=values,
        unit=unit,
        better="higher" if better == "higher" else "lower" if better == "lower" else None,
        decimal="." if decimal == "." else "," if decimal == "," else None,
        delimiter=_delimiter(delimiter),
    )
    analysis = analyse_files(
        AnalysisRequest(
            paths=files,
            design=design,
            options=options,
            reader=reader,
            labels=_labels(labels, files),
            names=_names(names, labels),
            metrics=metrics,
            confidence=confidence,
            margin=margin,
        )
    )
    if html_file is not None:
        write_text(html_file, render_analysis_html(analysis))
    if json_file is not None:
        write_text(json_file, analyse_document(analysis).model_dump_json(by_alias=True, indent=2))
    if json_file != "-" and html_file != "-":
        render_analysis(analysis, console_out())
    if analysis.complete:
        return ExitCode.OK
    first = analysis.problems[0]
    print_error(
        f"some data could not be used: {first.location}: {first.message}",
        "the result uses the rest and lists what is missing",
    )
    return ExitCode.PARTIAL


def _where(texts: tuple[str, ...]) -> dict[str, frozenset[str]]:
    wanted: dict[str, frozenset[str]] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not (separator and name.strip()):
            raise UsageError(f"--where {text!r} is not NAME=VALUE")
        wanted[name.strip()] = wanted.get(name.strip(), frozenset()) | {value.strip()}
    return wanted


def _labels(texts: tuple[str, ...], files: tuple[str, ...]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for text in texts:
        # A file's name may contain an equals sign, so the given names decide where it ends.
        file = next((name for name in files if text.startswith(f"{name}=")), None)
        label = "" if file is None else text[len(file) + 1 :].strip()
        if file is None or not label:
            raise DesignError(
                f"--label {text!r} is not FILE=NAME with one of the files given",
                hint="spell the file's name as in the list of files",
            )
        if labels.setdefault(file, label) != label:
            raise DesignError(f"--label names {file} twice")
    return labels


def _names(text: str | None, labels: tuple[str, ...]) -> NamesPattern | None:
    if text is None:
        return None
    if labels:
        raise UsageError("--names and --label both say which level a file is of", hint="give one of them")
    return NamesPattern.parse(text)


def _scale(text: str | None) -> ComparisonScale | None:
    return "difference" if text == "difference" else "ratio" if text == "ratio" else None


def _delimiter(text: str | None) -> str | None:
    if text is None:
        return None
    text = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(text) != 1 or text in '"\r\n':
        raise UsageError(f"--delimiter {text!r} is not one character", hint="write a tab as tab")
    return text
