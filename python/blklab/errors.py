"""Everything that can go wrong, in one tree, each kind with its exit code.

The command line prints a `BlklabError` as ``error: MESSAGE`` followed, where there is one, by
``hint: HINT``, and ends with `exit_code`. The codes are part of the documented interface
(docs/reference/exit-codes.md); a test holds that page and this module together.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every `blklab` command."""

    OK = 0
    INTERNAL = 1
    """A defect in blklab itself."""
    USAGE = 2
    """What was asked for makes no sense: unknown option, target, scheduler, tunable, workload, a job
    file or specification with a mistake."""
    REQUIREMENT = 3
    """This machine lacks something: root, fio, a scheduler, space, a writable file system."""
    REFUSED = 4
    """Refused for safety: the disk is in use, writes were not allowed, another run holds the disk."""
    RUN_FAILED = 5
    """The experiment could not be carried through: fio failed, the device vanished, a limit was hit."""
    DATA = 6
    """Data cannot be read: a store, journal or result of another version or damaged, a file of figures in no
    known format."""
    PARTIAL = 7
    """Done for a part only: what was given could not be used whole, and the result says which part."""


def reason_of(error: OSError) -> str:
    """What the system says went wrong, as part of a sentence: ``no space left on device``."""
    return (error.strerror or str(error)).lower()


class BlklabError(Exception):
    """Base of all errors that a person can cause or mend.

    Args:
        message: What was wrong and where, one sentence, no trailing full stop needed.
        hint: What to do about it, or nothing.
    """

    exit_code: ExitCode = ExitCode.INTERNAL

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(BlklabError):
    """The request itself is wrong."""

    exit_code = ExitCode.USAGE


class UnknownNameError(UsageError):
    """A target, scheduler, tunable, workload, device, run or kernel of that name does not exist."""


class SpecError(UsageError):
    """An experiment description has a mistake; the message names file and key."""


class JobFileError(UsageError):
    """A fio job file has a mistake or an option that is not supported.

    Args:
        message: What is wrong.
        source: File name as the person gave it.
        line: 1-based line number, where one applies.
        option: The option concerned, where there is one.
    """

    def __init__(
        self,
        message: str,
        *,
        source: str,
        line: int | None = None,
        option: str | None = None,
        hint: str | None = None,
    ) -> None:
        place = source if line is None else f"{source}:{line}"
        super().__init__(f"{place}: {message}", hint=hint)
        self.source = source
        self.line = line
        self.option = option


class TunableError(UsageError):
    """A tunable or queue attribute is unknown, out of range, or the kernel refused the value."""


class ProfileError(UsageError):
    """A device profile has a mistake; the message names the field."""


class PatchError(UsageError):
    """A patch for a kernel cannot be read or does not apply; nothing was changed."""


class KernelConfigError(UsageError):
    """A fragment of a kernel configuration has a mistake."""


class RequirementError(BlklabError):
    """This machine lacks something that the request needs."""

    exit_code = ExitCode.REQUIREMENT


class NotRootError(RequirementError):
    """Root is needed."""


class MissingToolError(RequirementError):
    """A program is missing or too old."""


class SchedulerUnavailableError(RequirementError):
    """The running kernel does not offer that scheduler for that disk."""


class KernelSourceError(RequirementError):
    """A kernel source is missing, too old, damaged, or cannot be built as User-mode Linux."""


class KernelLacksError(RequirementError):
    """A guest kernel lacks a scheduler or an option, or its source does."""


class SpaceError(RequirementError):
    """Not enough free space, or nowhere to write."""


class RefusedError(BlklabError):
    """Refused because going on could harm data or another measurement."""

    exit_code = ExitCode.REFUSED


class DeviceInUseError(RefusedError):
    """Something holds the device that writes were asked for."""


class LockedError(RefusedError):
    """Another run is on one of these disks."""


class KernelInUseError(RefusedError):
    """A guest runs on the kernel that is to be removed."""


class RunFailedError(BlklabError):
    """The experiment could not be carried through."""

    exit_code = ExitCode.RUN_FAILED


class DeviceVanishedError(RunFailedError):
    """A disk went away during the run."""


class RestoreError(RunFailedError):
    """A setting could not be put back; the journal is kept."""


class KernelBuildError(RunFailedError):
    """A guest kernel could not be built: the compiler's or the kernel's own build system failed."""


class SimulationError(RunFailedError):
    """The simulator stopped: an event or time limit, or an inconsistency."""


class DataError(BlklabError):
    """Stored data cannot be used."""

    exit_code = ExitCode.DATA


class StoreError(DataError):
    """The store of runs is damaged, of another version, or unreachable."""


class JournalError(DataError):
    """A journal of settings is damaged."""


class FormatError(DataError):
    """A file of figures cannot be read, or is in no known format."""


class DesignError(UsageError):
    """What was compared, or what a run is, does not follow from the figures; the hint tells the way out."""


class KernelCacheError(DataError):
    """A guest kernel in the cache is damaged or of another version."""


class InterruptedRunError(BlklabError):
    """A signal ended the run; what was measured is kept.

    The exit code is 128 plus the signal's number, as shells expect.
    """

    def __init__(self, signal_number: int, message: str) -> None:
        super().__init__(message)
        self.signal_number = signal_number
