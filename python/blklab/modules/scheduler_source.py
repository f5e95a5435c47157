"""A scheduler's own files in a kernel's source, and patches that change these and nothing else."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from blklab.errors import KernelSourceError, PatchError, UnknownNameError, UsageError, reason_of
from blklab.guests.kernels.patches import Patch, apply_to_copies
from blklab.modules.patch_parts import without
from blklab.modules.renaming import scheduler_in, trace_systems

STOCK = {
    "mq-deadline": ("mq-deadline.c",),
    "kyber": ("kyber-iosched.c",),
    "bfq": ("bfq-iosched.c", "bfq-wf2q.c", "bfq-cgroup.c"),
}
"""The kernel's schedulers, and their files in ``block/`` that are compiled."""

_OWN = {
    "mq-deadline": re.compile(r"block/mq-deadline\.c"),
    "kyber": re.compile(r"block/kyber-iosched\.c|include/trace/events/kyber\.h"),
    "bfq": re.compile(r"block/bfq-[\w-]+\.[ch]"),
}
_LISTS = ("block/Makefile", "block/Kconfig.iosched")
"""Where a new scheduler is listed; a module needs neither, and an archive's are not unpacked."""
_HEADER = re.compile(r"(?:block|include)/.*\.h")
_FILE_NAME = re.compile(r"[A-Za-z][\w-]*\.c")
_NEW_FILE = re.compile(r"block/[\w-]+\.[ch]|include/trace/events/\w+\.h")
"""Files that a patch may add: a scheduler's own, and the header of its trace points."""


@dataclass(frozen=True)
class SchedulerSource:
    """The files of one scheduler, patched, under the names that they have in ``block/``."""

    scheduler: str
    """The scheduler that it is a variant of, or the new one's own name."""
    is_new: bool
    """Whether the kernel has no scheduler of that name, so that there is no original to compare with."""
    files: dict[str, str]
    compiled: tuple[str, ...]
    traces: dict[str, str]
    """Headers of the trace points that it defines, by system."""

    def with_traces(self, public_headers: Sequence[Path]) -> SchedulerSource:
        """The same with the headers of its trace points.

        Args:
            public_headers: The ``include`` folders of the kernel's headers, which have them.
        """
        return replace(self, traces=_traces(self.files, public_headers))


def from_file(path: Path) -> SchedulerSource:
    """A scheduler that is one file of the user's: a new one, or a stock one that was edited.

    Raises:
        UnknownNameError: if the file cannot be read.
        PatchError: if it is not one scheduler.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UnknownNameError(f"the scheduler {path} cannot be read: {reason_of(error)}") from error
    if not _FILE_NAME.fullmatch(path.name):
        raise PatchError(f"{path} cannot be compiled", hint="name it NAME.c, with letters, digits, - and _")
    files = {path.name: text}
    name = scheduler_in(files, str(path))
    return SchedulerSource(name, name not in STOCK, files, (path.name,), {})


def from_tree(
    chosen: str | None, patches: Sequence[Patch], block: Path, public_headers: Sequence[Path]
) -> SchedulerSource:
    """A scheduler of a source with patches applied; one that patches add, too.

    Args:
        chosen: The stock scheduler, as `one_scheduler_of` finds it; None for the one that patches add.
        patches: The patches, in order.
        block: The source's top folder, with ``block/``.
        public_headers: The ``include`` folders of the kernel's headers, which have those of trace points.

    Raises:
        PatchError: if a patch does not apply, or adds another scheduler.
    """
    patches = [kept for patch in patches if (kept := without(patch, _LISTS)).files]
    touched = _touched_by(patches)
    with TemporaryDirectory(prefix="blklab-module-") as name:
        copies = Path(name)
        _copy(touched, block, public_headers, copies)
        stock = list(STOCK.get(chosen or "", ()))
        _copy([f"block/{file}" for file in stock], block, public_headers, copies)
        if chosen == "bfq":
            headers = [f"block/{path.name}" for path in (block / "block").glob("bfq-*.h")]
            _copy(headers, block, public_headers, copies)
        if absent := [file for file in stock if not (copies / "block" / file).is_file()]:
            raise KernelSourceError(f"the source {block} lacks block/{absent[0]}, a file of {chosen}")
        apply_to_copies(patches, copies)
        files = {path.name: path.read_text(encoding="utf-8") for path in sorted(copies.glob("block/*.[ch]"))}
        compiled = tuple(dict.fromkeys([*stock, *(file for file in files if file.endswith(".c"))]))
        traces = _traces(files, [copies / "include", *public_headers])
    place = patches[0].place if patches and chosen is None else f"the source of {chosen}"
    found = scheduler_in(files, place)
    if chosen is not None and chosen not in STOCK and found != chosen:
        raise PatchError(f"{place} adds the scheduler {found}, not {chosen}")
    return SchedulerSource(chosen or found, chosen not in STOCK, files, compiled, traces)


def one_scheduler_of(scheduler: str | None, patches: Sequence[Patch]) -> str | None:
    """The stock scheduler that a module is a variant of; None for a new one.

    Raises:
        UsageError: if it is not clear which scheduler is meant.
        PatchError: if a patch changes anything else.
    """
    created = {path for patch in patches for path in patch.created}
    chosen = scheduler or _scheduler_of(_touched_by(patches), created)
    for patch in patches:
        _refuse_elsewhere(patch, chosen, created)
    return chosen


def schedulers_of(files: Iterable[str]) -> list[str]:
    """The stock schedulers that have one of the files, by path in the source, as their own."""
    paths = list(files)
    return [name for name, own in _OWN.items() if any(own.fullmatch(path) for path in paths)]


def private_headers(block: Path, own: Iterable[str]) -> dict[str, Path]:
    """The headers of ``block/`` that are not the scheduler's own, by name."""
    ours = set(own)
    return {path.name: path for path in sorted((block / "block").glob("*.h")) if path.name not in ours}


def _touched_by(patches: Sequence[Patch]) -> list[str]:
    return list(dict.fromkeys(path for patch in patches for path in patch.files))


def _scheduler_of(touched: Sequence[str], created: set[str]) -> str | None:
    """The stock scheduler that patches change; None for a new one."""
    changed = schedulers_of(touched)
    if len(changed) > 1:
        raise UsageError(
            f"the patches change {' and '.join(changed)}, and a module is one scheduler",
            hint="split them, and build a module of each",
        )
    if changed:
        return changed[0]
    if any(path.endswith(".c") for path in created):
        return None
    if not touched:
        raise UsageError(
            "it is not said which scheduler the module is to be",
            hint=f"give --patch, --scheduler-file, or --scheduler {'|'.join(STOCK)} for an unchanged copy",
        )
    raise PatchError(
        f"the patches change no scheduler: {', '.join(touched)}",
        hint=f"a module is one of {', '.join(STOCK)}, or a new one; for the rest build a guest kernel",
    )


def _refuse_elsewhere(patch: Patch, scheduler: str | None, created: set[str]) -> None:
    for path in patch.files:
        own = _OWN.get(scheduler or "")
        if own is not None and own.fullmatch(path):
            continue
        if path in created and _NEW_FILE.fullmatch(path):
            continue
        if path in _LISTS and created:
            continue
        raise PatchError(
            f"{patch.place} changes {path}: {_reason(path, scheduler)}",
            hint="leave that part out, or build a guest kernel: blklab kernel build NAME --patch FILE",
        )


def _reason(path: str, scheduler: str | None) -> str:
    for name, own in _OWN.items():
        if own.fullmatch(path):
            return f"it belongs to {name}, and the module is {scheduler or 'a new scheduler'}"
    if path in _LISTS:
        return "no scheduler is new here, and a module needs neither Kconfig nor block/Makefile"
    if _HEADER.fullmatch(path):
        return "the running kernel was built with that header as it was, so its structures stay as they are"
    if path.startswith("Documentation/"):
        return "a module has no documentation"
    return "it is part of the running kernel, which a module cannot change"


def _traces(files: Mapping[str, str], public_headers: Sequence[Path]) -> dict[str, str]:
    """The headers of the trace points that files define, by system."""
    found = {}
    for system in trace_systems(files):
        places = (folder / f"trace/events/{system}.h" for folder in public_headers)
        header = next((place for place in places if place.is_file()), None)
        if header is not None:
            found[system] = header.read_text(encoding="utf-8")
    return found


def _copy(paths: Iterable[str], source: Path, public_headers: Sequence[Path], copies: Path) -> None:
    """Copies files that exist; headers of trace points come from the kernel's headers."""
    for path in paths:
        places = [source / path, *(folder / path.removeprefix("include/") for folder in public_headers)]
        there = next((place for place in places if place.is_file()), None)
        if there is not None and not (copies / path).exists():
            (copies / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(there, copies / path)


def texts_of(files: Mapping[str, Path]) -> dict[str, str]:
    """The content of files."""
    return {name: path.read_text(encoding="utf-8", errors="replace") for name, path in files.items()}
