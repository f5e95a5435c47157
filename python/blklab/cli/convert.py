"""`blklab convert`: a recording as Parquet or NumPy."""

from __future__ import annotations

import click

from blklab.cli.commands import described_command
from blklab.recordings.export import export
from blklab.report.terminal import console_out


@described_command(
    name="convert",
    examples=(
        ("for pandas, Polars and DuckDB", "blklab convert build.blkrecord build.parquet"),
        ("for NumPy", "blklab convert build.blkrecord build.npz"),
        ("another program's trace", "blklab convert trace.csv trace.parquet"),
    ),
)
@click.argument("record", metavar="RECORD")
@click.argument("output", metavar="FILE.parquet|FILE.npz")
@click.option("--format", "format_name", metavar="NAME", help="Format of RECORD. Default: recognised.")
def command(*, record: str, output: str, format_name: str | None) -> None:
    """Convert a recording, or another program's trace, to Parquet or NumPy.

    Parquet needs pyarrow: pip install 'blklab[parquet]'.
    """
    count = export(record, output, format_name)
    console_out().print(f"{output}: {count} I/Os", soft_wrap=True)
