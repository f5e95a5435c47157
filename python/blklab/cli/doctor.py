"""`blklab doctor`: check what this machine can do."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.console import Group
from rich.table import Table

from blklab.backends.uml_requirements import guest_findings
from blklab.cli.commands import described_command
from blklab.cli.matrix import matrix_document, matrix_text
from blklab.cli.options import json_option
from blklab.cli.output import write_text
from blklab.errors import ExitCode
from blklab.linux.doctor.doctor import examine
from blklab.linux.doctor.finding import Finding
from blklab.report.terminal import console_out, styled

SCHEMA = "blklab.doctor/1"
_STYLES = {"ok": "green", "lacking": "yellow", "missing": "red"}


@described_command(
    name="doctor",
    examples=(
        ("what works here, and what is missing", "blklab doctor"),
        ("as JSON, for programs", "blklab doctor --json -"),
        ("which loads, designs and backends go together", "blklab doctor --matrix"),
    ),
)
@click.option("--matrix", is_flag=True, help="Print which loads, designs and backends go together.")
@json_option
def command(*, matrix: bool, json_file: str | None) -> int:
    """Check what this machine can do, and say how to get the rest.

    Exit code 0: schedulers can be compared on this machine's own disks; 3: a requirement is missing.
    """
    if matrix:
        if json_file is None:
            console_out().print(matrix_text())
        else:
            write_text(json_file, matrix_document().model_dump_json(by_alias=True, indent=2))
        return ExitCode.OK
    findings = examine() + guest_findings()
    ready = all(finding.state != "missing" for finding in findings)
    if json_file is not None:
        document = {"schema": SCHEMA, "ready": ready, "findings": [asdict(finding) for finding in findings]}
        write_text(json_file, json.dumps(document, indent=2, ensure_ascii=False))
    else:
        _print(findings, ready=ready)
    return ExitCode.OK if ready else ExitCode.REQUIREMENT


def _print(findings: list[Finding], *, ready: bool) -> None:
    console = console_out()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("mark")
    table.add_column("subject", style="bold")
    table.add_column("what was found", overflow="fold")
    for finding in findings:
        mark = styled((finding.state, _STYLES[finding.state]))
        remedy = [f"→ {finding.remedy}"] if finding.remedy else []
        table.add_row(mark, finding.subject, Group(finding.text, *remedy))
    console.print(table)
    console.print()
    console.print(
        f"Schedulers {'can' if ready else 'cannot yet'} be compared on this machine's own disks."
        + ("" if ready else " Simulated disks are ready: sim:ssd-sata."),
        soft_wrap=True,
    )
