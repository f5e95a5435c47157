"""Replays of recordings: one process of blklab's own program for each recorded task.

Each process has an I/O context, a class and level, and a control group of its own, as the recorded task had.
The program (crates/blkguest) is the one that replays in guest kernels, with the same generator.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import ValidationError

from blklab import __version__
from blklab.linux.load.fio_output import FioReport
from blklab.linux.load.load_process import run_load_process
from blklab.linux.queue.hardware import SegmentLimits
from blklab.linux.scratch.layout import JobRegions, Region
from blklab.quantities.units import format_duration
from blklab.records.samples import JobSample
from blklab.shipped import require_guest_program
from blklab.spec.permits import Beside, require
from blklab.spec.workloads import Workload

MIB = 1 << 20
REQUEST_FILE = "replay.json"
ANSWER_FILE = "replayed.json"


@dataclass(frozen=True)
class PathOfSize:
    """A time that grows with the data, whose pages are pinned and let go."""

    fixed_ns: int = 0
    per_mib_ns: int = 0

    @classmethod
    def through(cls, small: tuple[int, int], large: tuple[int, int]) -> PathOfSize:
        """From two points, each of bytes and nanoseconds, which may be one."""
        bytes_between = large[0] - small[0]
        per_mib_ns = max(0, large[1] - small[1]) * MIB // bytes_between if bytes_between else 0
        return cls(max(0, small[1] - per_mib_ns * small[0] // MIB), per_mib_ns)

    def ns(self, size_bytes: int) -> int:
        """The time of an I/O of that size."""
        return self.fixed_ns + self.per_mib_ns * size_bytes // MIB


@dataclass(frozen=True)
class OwnPath:
    """The time that a replay itself takes between a completion and its next I/O, by what has completed."""

    read: PathOfSize = PathOfSize()
    write: PathOfSize = PathOfSize()


@dataclass(frozen=True)
class OwnPaths:
    """Of tasks that call for one I/O after the other, and of those that submit several."""

    synchronous: OwnPath = OwnPath()
    asynchronous: OwnPath = OwnPath()

    def __str__(self) -> str:
        directions = (self.synchronous, self.asynchronous)
        of_4_kib = [path.ns(4096) for both in directions for path in (both.read, both.write)]
        shortest, longest = format_duration(min(of_4_kib)), format_duration(max(of_4_kib))
        return f"{shortest} to {longest} for 4 KiB"


@dataclass(frozen=True)
class ReplayProgram:
    """The installed program."""

    path: Path
    version: str = __version__

    def command(self, folder: Path) -> list[str]:
        """The command line, for a request in that directory."""
        return [str(self.path), "replay", str(folder / REQUEST_FILE), str(folder / ANSWER_FILE)]


def find_replay_program() -> ReplayProgram:
    """Finds the program.

    Raises:
        MissingToolError: if this installation has none.
    """
    return ReplayProgram(require_guest_program())


def check_replay(workload: Workload) -> None:
    """Makes sure that this machine can replay a workload.

    Raises:
        MissingToolError: if the program is missing.
        JobFileError: if some section does not replay.
    """
    find_replay_program()
    for job in workload.jobs:
        if job.replayed_ios is None:
            require(workload, "host", beside=Beside.ANOTHER_JOB, line=job.line, job=job.name)


def replay_request(
    workload: Workload,
    regions: Sequence[JobRegions],
    *,
    folder: Path | None,
    group_files: Mapping[str, str],
    own_paths: OwnPaths,
    segment_limits: SegmentLimits | None,
) -> str:
    """The program's request as JSON.

    Args:
        workload: The recording as a workload.
        regions: The region of each clone of each job.
        folder: The directory of the regions' files; None for devices.
        group_files: For each control group, the file that takes processes.
        own_paths: Taken off the recorded think times.
        segment_limits: Of the disks' drivers; None if they are not known. The buffers of large I/Os keep to
            them, so that none is split that was not when it was recorded.
    """
    request = {
        "text": workload.text,
        "source": workload.source,
        "places": [place(region, folder) for clones in regions for region in clones],
        "groups": dict(group_files),
        "own_paths": asdict(own_paths),
        "segment_limits": None if segment_limits is None else asdict(segment_limits),
    }
    return json.dumps(request, ensure_ascii=False)


def place(region: Region, folder: Path | None) -> dict[str, str | int]:
    """The place of a clone in a request."""
    return {
        "path": region.filename if folder is None else str(folder / region.filename),
        "offset": region.offset_bytes,
        "bytes": region.size_bytes,
    }


def run_replay(program: ReplayProgram, request: str, folder: Path) -> FioReport:
    """Replays a recording; none of its processes is left when this returns or raises.

    Args:
        program: The program.
        request: As `replay_request` gives it.
        folder: A directory of the run's own.

    Returns:
        A report like fio's: one sample for each section.
    """
    (folder / REQUEST_FILE).write_text(request, encoding="utf-8")
    answer = folder / ANSWER_FILE
    answer.unlink(missing_ok=True)
    ended = run_load_process(
        program.command(folder),
        folder,
        limit_s=None,  # a replay takes as long as its disk needs
        too_long="",
    )
    text = answer.read_text(encoding="utf-8") if answer.exists() else ""
    for left in folder.glob("record-*"):
        left.unlink()
    return read_replay_report(text, messages=ended.output, returncode=ended.returncode)


def read_replay_report(text: str, *, messages: str, returncode: int) -> FioReport:
    """Reads the program's answer.

    Args:
        text: Contents of the answer; empty if there is none.
        messages: Its terminal output.
        returncode: Its exit code.
    """
    try:
        answer = json.loads(text)
        if "error" in answer:
            return FioReport([], f"the replay failed: {answer['error']['message']}", [])
        return FioReport([JobSample.model_validate(job) for job in answer["jobs"]], None, [])
    except (ValueError, KeyError, TypeError, ValidationError):
        said = " ".join(messages.split()) or "it left no answer"
        return FioReport([], f"the replay failed (exit code {returncode}): {said}", [])
