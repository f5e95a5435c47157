"""`blklab record`: record what reaches the disks beneath a path."""

from __future__ import annotations

import json
import shlex
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blklab.cli.commands import described_command
from blklab.cli.options import json_option, output_option, quiet_option
from blklab.cli.output import write_text
from blklab.errors import ExitCode, UsageError
from blklab.linux.machine.requirements import require_root
from blklab.linux.processes.ending import ending
from blklab.quantities.units import parse_duration_ns
from blklab.report.terminal import console_out, print_note
from blklab.spec.targets import PathTarget, parse_target

if TYPE_CHECKING:
    from blklab.linux.disks.resolution import Resolution
    from blklab.linux.recording.recorder import Recorded

SCHEMA = "blklab.record/1"


@described_command(
    name="record",
    examples=(
        ("a minute of what reaches the disks beneath a directory, as root", "blklab record /srv --for 1m"),
        ("as long as a program runs", "blklab record . -o build.blkrecord -- make"),
        (
            "until Ctrl-C, with all arguments of the program kept",
            "blklab record /srv --arguments -- ./nightly-backup /srv",
        ),
    ),
)
@click.argument("target", metavar="TARGET")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND…]")
@click.option("--for", "duration", metavar="TIME", help="Stop after this time. Default: at Ctrl-C.")
@output_option("File to write. Default: DISK-TIME.blkrecord in the current folder.")
@click.option(
    "--capture",
    type=click.Choice(["auto", "bpf", "tracefs"]),
    default="auto",
    help="How to record. Default: BPF where the kernel allows it, else tracefs.",
)
@click.option(
    "--arguments", is_flag=True, help="Keep all arguments of COMMAND in the file, not only its name."
)
@json_option
@quiet_option
def command(
    *,
    target: str,
    program: tuple[str, ...],
    duration: str | None,
    output: str | None,
    capture: str,
    arguments: bool,
    json_file: str | None,
    quiet: bool,
) -> int:
    """Record every I/O that reaches the disks beneath TARGET, from its queueing to its completion.

    TARGET is a directory, a file or a block device of this machine. With COMMAND the recording ends with it;
    if COMMAND fails, the recording is kept and the exit code is 5.
    Commands of tasks are recorded by name, without arguments. Nothing of the machine is changed.

    Show the recording with `blklab where FILE`.
    """
    place = parse_target(target)
    if not isinstance(place, PathTarget):
        raise UsageError(f"{target} is no path of this machine", hint="name a directory or a block device")
    seconds = None if duration is None else parse_duration_ns(duration) / 1e9
    require_root("recording I/O")
    from blklab.labs.advice.watching import usual_file  # noqa: PLC0415 - needs Linux
    from blklab.linux.disks.resolution import resolve  # noqa: PLC0415
    from blklab.linux.recording.recorder import record  # noqa: PLC0415
    from blklab.linux.recording.request import recording_request  # noqa: PLC0415

    resolution = resolve(place.path)
    file = Path(usual_file(resolution) if output is None else output)
    if not quiet:
        _note_own_writes(file, resolution)
    kept = program if arguments else [Path(name).name for name in program[:1]]
    request = recording_request(resolution.path, resolution.leaves, file, kept, capture=capture)
    if not program and not quiet:
        until = "until Ctrl-C" if duration is None else f"for {duration}; Ctrl-C ends it earlier"
        print_note(f"recording {until}")
    done = record(request, program, seconds=seconds)
    document = _document(file, resolution, done)
    if json_file is not None:
        write_text(json_file, json.dumps(document, indent=2, ensure_ascii=False))
    if json_file != "-":
        _print(document)
    if done.interrupted is not None and done.interrupted.signal_number != signal.SIGINT:
        raise done.interrupted
    # Ctrl-C ends the command too, and is no failure of it.
    if done.returncode and done.interrupted is None:
        return ExitCode.RUN_FAILED
    return ExitCode.PARTIAL if done.tally.lost else ExitCode.OK


def _note_own_writes(file: Path, resolution: Resolution) -> None:
    from blklab.errors import BlklabError  # noqa: PLC0415
    from blklab.linux.disks.resolution import resolve  # noqa: PLC0415

    try:
        below = resolve(str(file.absolute().parent)).leaves
    except BlklabError:
        return  # memory, or a network
    shared = {disk.key for disk in below} & {disk.key for disk in resolution.leaves}
    if shared:
        print_note(f"{file} is on a recorded disk: the recorder's own writes are recorded too")


def _document(file: Path, resolution: Resolution, done: Recorded) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "file": str(file),
        "disks": [disk.name for disk in resolution.leaves],
        "capture": done.capture,
        "missing": done.missing,
        "returncode": done.returncode,
        **done.tally.model_dump(),
    }


def _print(document: dict[str, Any]) -> None:
    console = console_out()
    seconds = document["span_ns"] / 1e9
    disks = ", ".join(document["disks"])
    counts = {
        "lost events": document["lost"],
        "completions without a beginning": document["unmatched"],
        "I/Os still under way": document["incomplete"],
    }
    lines = [
        f"{document['file']}: {document['ios']} I/Os of {disks} in {seconds:.1f} s ({document['capture']})",
        ", ".join(f"{name}: {count}" for name, count in counts.items()),
    ]
    if document["returncode"]:
        lines.append(ending(document["returncode"], "the command"))
    lines += [f"not recorded: {text}" for text in document["missing"]]
    for line in lines:
        console.prose(line)
    console.print(f"next: blklab where {shlex.quote(document['file'])}", soft_wrap=True)
    if document["lost"]:
        print_note("the kernel dropped events: the file lacks some I/Os, and others seem unfinished")
