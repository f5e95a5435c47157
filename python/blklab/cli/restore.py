"""`blklab restore`: restore settings that killed runs left changed; remove what killed recordings left."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from blklab.cli.commands import described_command
from blklab.cli.options import json_option
from blklab.cli.output import write_text
from blklab.errors import ExitCode
from blklab.linux.machine.requirements import require_linux, require_root
from blklab.report.terminal import console_out

if TYPE_CHECKING:
    from blklab.linux.journal.last_recovery import LastRecovery
    from blklab.linux.journal.recovery import RecoveryReport
    from blklab.linux.recording.support import LeftOver

SCHEMA = "blklab.restore/1"


@described_command(
    name="restore",
    examples=(
        ("what a killed run left changed, as root", "blklab restore"),
        ("what would be written", "blklab restore --dry-run"),
        ("show it as JSON", "blklab restore --dry-run --json -"),
    ),
)
@click.option("--dry-run", is_flag=True, help="Show what would be restored; change nothing.")
@click.option(
    "--force",
    is_flag=True,
    help="Use the intact part of a damaged journal, and give up settings that cannot be restored.",
)
@json_option
def command(*, dry_run: bool, force: bool, json_file: str | None) -> int:
    """Restore the settings that a killed run left changed.

    Every comparison does this when it starts. Runs in progress are left alone. The tracefs instance of a
    killed `blklab record` is removed too.
    """
    require_linux("restoring settings")
    from blklab.linux.journal.last_recovery import last_recovery  # noqa: PLC0415
    from blklab.linux.journal.recovery import any_journals, preview, recover  # noqa: PLC0415 - needs Linux
    from blklab.linux.journal.state import state_directory  # noqa: PLC0415
    from blklab.linux.recording.support import left_over  # noqa: PLC0415

    state = state_directory()
    if any_journals(state):
        require_root("restoring settings")  # only root can read the journals
    before = last_recovery(state)
    reports = preview(state) if dry_run else recover(state, force=force)
    instances = left_over(remove=not dry_run)
    if json_file is not None:
        document = _as_json(reports, instances, before, dry_run=dry_run)
        write_text(json_file, json.dumps(document, indent=2, ensure_ascii=False))
    else:
        _print(reports, instances, before, dry_run=dry_run)
    failed = ExitCode.RUN_FAILED if any(instance.error for instance in instances) else ExitCode.OK
    return next((report.error.exit_code for report in reports if report.error is not None), failed)


def _as_json(
    reports: list[RecoveryReport], instances: list[LeftOver], before: LastRecovery | None, *, dry_run: bool
) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "dry_run": dry_run,
        "journals": [
            {
                "run": report.run_id,
                "journal": str(report.path),
                "purpose": report.purpose,
                "started_at": report.started_at,
                "done": report.done,
                "notes": report.notes,
                "error": report.error.message if report.error else None,
            }
            for report in reports
        ],
        "recordings": [asdict(instance) for instance in instances],
        "last_recovery": None if before is None else asdict(before),
    }


def _print(
    reports: list[RecoveryReport], instances: list[LeftOver], before: LastRecovery | None, *, dry_run: bool
) -> None:
    console = console_out()

    def say(text: str) -> None:
        console.print(text, soft_wrap=True)

    if not reports and not instances:
        say("nothing to restore: no killed run has left anything behind")
        if before is not None:
            # Every start of a comparison restores what killed runs left, so people seldom see it.
            for run in before.runs:
                what = "; ".join(run.restored) or "every setting already had its former value"
                say(f"run {run.run_id} of {run.started_at} was restored on {before.at}: {what}")
    removed = "would be removed" if dry_run else "removed"
    for instance in instances:
        outcome = removed if instance.error is None else f"error: {instance.error}"
        say(f"tracefs instance {instance.name} of a killed recording: {outcome}")
    for report in reports:
        since = f" of {report.started_at}" if report.started_at else ""
        say(f"run {report.run_id}{since}{f' ({report.purpose})' if report.purpose else ''}")
        for line in report.done:
            say(f"  {'would be ' if dry_run else ''}restored: {line}")
        for line in report.notes:
            say(f"  note: {line}")
        if report.error is not None:
            say(f"  error: {report.error.message}")
            if report.error.hint:
                say(f"  hint: {report.error.hint}")
        elif not report.done and not dry_run:
            say("  every setting already had its former value")
