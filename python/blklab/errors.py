"""All errors of blklab in one tree, each kind with its exit code.

The command line prints a `BlklabError` as ``error: MESSAGE``, followed by ``hint: HINT`` if there is one, and
exits with `exit_code`. The codes are part of the documented interface (docs/reference/exit-codes.md); a test
checks that page against this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every `blklab` command."""

    OK = 0
    INTERNAL = 1
    """A defect in blklab itself."""
    USAGE = 2
    """The request is wrong: unknown option, target, scheduler, tunable or workload; a job file or
    specification with a mistake."""
    REQUIREMENT = 3
    """This machine lacks something: root, fio, a scheduler, space, a writable file system."""
    REFUSED = 4
    """Refused for safety: the disk is in use, writes were not allowed, another run holds the disk."""
    RUN_FAILED = 5
    """The experiment could not be completed: fio or a recorded command failed, the device vanished, a limit
    was reached."""
    DATA = 6
    """Data cannot be read: a store, journal or result is damaged or of another version, a file of results is
    in an unknown format."""
    PARTIAL = 7
    """Only part of the input could be used, and the result says which part."""
    SLOWER = 8
    """A judged kernel is slower for somebody, or fails; a run is slower than the one it was compared with."""


def reason_of(error: OSError) -> str:
    """The system's error message in lower case, for use in a sentence: ``no space left on device``."""
    return (error.strerror or str(error)).lower()


def close_names(name: str, known: Sequence[str], *, most: int = 2, cutoff: float = 0.6) -> list[str]:
    """Names that a misspelt one may stand for, the most similar first; capitals do not matter."""
    import difflib  # noqa: PLC0415 - needed after a mistake only, and the command line starts without it

    small = {one.lower(): one for one in reversed(known)}
    return [small[one] for one in difflib.get_close_matches(name.lower(), list(small), n=most, cutoff=cutoff)]


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """The question about a misspelt name, such as ``did you mean bfq?``; empty if no name is similar."""
    close = close_names(name, known)
    return f"did you mean {' or '.join(close)}?" if close else ""


class BlklabError(Exception):
    """Base of all errors that a user can cause or fix.

    Args:
        message: What was wrong and where, in one sentence without a full stop.
        hint: What to do about it; None if there is no advice.
    """

    exit_code: ExitCode = ExitCode.INTERNAL

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def reword(self, words: Callable[[str], str]) -> None:
        """Puts message and hint in other words."""
        self.message = words(self.message)
        self.args = (self.message, *self.args[1:])
        self.hint = None if self.hint is None else words(self.hint)

    def __reduce__(self) -> tuple[object, ...]:
        # Pickle would call the constructor with `args`, and constructors here have keywords of their own.
        return _restored, (type(self), self.args, self.__dict__.copy())


def _restored(kind: type[BlklabError], args: tuple[object, ...], state: dict[str, object]) -> BlklabError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class UsageError(BlklabError):
    """The request itself is wrong."""

    exit_code = ExitCode.USAGE


class UnknownNameError(UsageError):
    """There is no target, scheduler, tunable, workload, device, run or kernel of that name."""


class SpecError(UsageError):
    """A mistake in an experiment's description; the message names file and key."""


class JobFileError(UsageError):
    """A mistake or an unsupported option in a fio job file.

    Args:
        message: What is wrong.
        source: File name as the user gave it.
        line: 1-based line number; None if no single line is at fault.
        option: The option at fault; None if there is none.
        hint: What to do about it; None if there is no advice.
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
    """A tunable or queue attribute is unknown or out of range, or the kernel refused its value."""


class ProfileError(UsageError):
    """A mistake in a device profile; the message names the field."""


class PatchError(UsageError):
    """A kernel patch that cannot be read or does not apply; the source is unchanged."""


class KernelConfigError(UsageError):
    """A mistake in a fragment of a kernel configuration."""


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
    """There is too little free space, or no writable directory."""


class RefusedError(BlklabError):
    """Refused because it could harm data or another measurement."""

    exit_code = ExitCode.REFUSED


class DeviceInUseError(RefusedError):
    """The device to be written to is in use."""


class LockedError(RefusedError):
    """Another run uses one of these disks."""


class KernelInUseError(RefusedError):
    """A guest runs on the kernel to be removed."""


class RunFailedError(BlklabError):
    """The experiment could not be completed."""

    exit_code = ExitCode.RUN_FAILED


class SettingsChangedError(RunFailedError):
    """Another program changed a queue's settings."""


class DeviceVanishedError(RunFailedError):
    """A disk vanished during the run."""


class KernelMistakeError(RunFailedError):
    """The running kernel reported a mistake of its own while a module was loaded."""


class RestoreError(RunFailedError):
    """A setting could not be restored; the journal is kept."""


class KernelBuildError(RunFailedError):
    """A guest kernel could not be built: the compiler or the kernel's build system failed."""


class SimulationError(RunFailedError):
    """The simulator stopped at an event or time limit, or because of an inconsistency."""


class SchedulerCodeError(UsageError):
    """A scheduler that was registered broke a rule, or its code raised an exception (the error's cause)."""


class DataError(BlklabError):
    """Stored data cannot be used."""

    exit_code = ExitCode.DATA


class StoreError(DataError):
    """The store of runs is damaged, of another version, or unreachable."""


class JournalError(DataError):
    """A journal of settings is damaged."""


class FormatError(DataError):
    """A file of results cannot be read, or is in an unknown format."""


class DesignError(UsageError):
    """The data do not show what was compared, or what a run is; the hint says how to specify it."""


class KernelCacheError(DataError):
    """A guest kernel in the cache is damaged or of another version."""


class InterruptedRunError(BaseException):
    """A signal ended the run; its measurements are kept.

    Like KeyboardInterrupt it is no `Exception`, so that nothing that handles errors takes it for one. The
    exit code is 128 plus the signal's number, as shells expect.
    """

    def __init__(self, signal_number: int, message: str) -> None:
        super().__init__(signal_number, message)
        self.signal_number = signal_number
        self.message = message

    def __str__(self) -> str:
        return self.message
