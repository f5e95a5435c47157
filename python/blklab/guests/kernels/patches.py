"""Patches: reads them, checks them with a dry run, and applies all of them or none."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from blklab.errors import PatchError, UnknownNameError, reason_of
from blklab.named_files import read_bytes
from blklab.shipped import shipped_folder

_OLD = re.compile(rb"^--- ([^\t\n]+)", re.MULTILINE)
_NEW = re.compile(rb"^\+\+\+ ([^\t\n]+)", re.MULTILINE)
_RENAMED = re.compile(rb"^(?:rename|copy) (?:from|to) ([^\n]+)", re.MULTILINE)
_BINARY = re.compile(rb"^(?:GIT binary patch|Binary files )", re.MULTILINE)
_HUNK = re.compile(rb"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)
_FAILED = re.compile(r"Hunk #(\d+) FAILED at (\d+)")
_PATCHING = re.compile(r"(?:checking|patching) file '?([^'\n]+?)'?(?: \(.*)?$")


@dataclass(frozen=True)
class Patch:
    """A valid patch, or another change to files of a source that can be named before it is made."""

    name: str
    path: Path
    content: bytes
    files: tuple[str, ...]
    """The files that it changes, by path in the source."""
    created: tuple[str, ...] = ()
    """Those of them that it creates, so that a source need not have them."""
    part: str = ""
    """Its place in a file of several, for messages: ``2 of 3, "subject"``."""

    @property
    def place(self) -> str:
        """Where it comes from, for messages."""
        return f"{self.path} ({self.part})" if self.part else str(self.path)

    @property
    def sha256(self) -> str:
        """SHA-256 of its content."""
        return hashlib.sha256(self.content).hexdigest()

    def complaint_about(self, folder: Path) -> str | None:
        """The parts that do not apply to a directory; None if all of it applies."""
        return _complaint_about(self, folder)

    def apply_to(self, folder: Path) -> None:
        """Applies it to a directory.

        Raises:
            PatchError: if it does not apply; the directory may be half changed then.
        """
        _apply(self, folder)


def shipped_patches() -> dict[str, Path]:
    """The patches that ship with blklab, by name."""
    folder = shipped_folder("kernel") / "patches"
    return {path.stem: path for path in sorted(folder.glob("*/*.patch"))}


def shipped_instruments() -> tuple[Patch, ...]:
    """The shipped patches that improve measurements without changing the block layer's code, in order."""
    folder = shipped_folder("kernel") / "instruments"
    return tuple(read_patch(str(path)) for path in sorted(folder.glob("*/*.patch")))


def find_patch(text: str) -> Path:
    """The file or folder of that name, or else the shipped patch.

    Raises:
        UnknownNameError: if there is none.
    """
    path = Path(text).expanduser()
    shipped = shipped_patches()
    if not path.exists() and text in shipped:
        return shipped[text]
    if path.exists():
        return path
    raise UnknownNameError(
        f"the patch {text} cannot be read: No such file or directory",
        hint=f"name a file, or one that ships with blklab: {', '.join(shipped)}",
    )


def read_patch(text: str) -> Patch:
    """Reads a unified diff as of ``git diff`` and ``diff -u``, whose paths have one leading component.

    Args:
        text: A file, or the name of a shipped patch.

    Raises:
        UnknownNameError: if there is no such file or patch.
        PatchError: if it is not a patch, or names files outside a source.
    """
    path = find_patch(text)
    return parse_patch(read_content(path), Patch(path.name, path.absolute(), b"", ()))


def read_content(path: Path) -> bytes:
    """Reads a patch's file.

    Raises:
        UnknownNameError: if that fails.
    """
    try:
        return read_bytes(path)
    except OSError as error:
        raise UnknownNameError(f"the patch {path} cannot be read: {reason_of(error)}") from error


def has_hunk(content: bytes) -> bool:
    """Whether a text holds a change at all; cover letters and replies do not."""
    return _HUNK.search(content) is not None


def parse_patch(content: bytes, origin: Patch) -> Patch:
    """Reads the content of a patch.

    Args:
        content: The diff, with any text around it.
        origin: Its name, path and place, without content.

    Raises:
        PatchError: as for `read_patch`.
    """
    place = origin.place
    if _BINARY.search(content):
        raise PatchError(f"{place} changes a binary file, which patch(1) does not support")
    if not has_hunk(content):
        raise PatchError(
            f"{place} is not a patch: it has no hunk (@@ … @@)", hint="make one with `git diff` or `diff -up`"
        )
    old = [_inside(name, place) for name in _OLD.findall(content)]
    new = [_inside(name, place) for name in _NEW.findall(content)]
    pairs = list(zip(old, new, strict=False))
    files = dict.fromkeys(name for pair in pairs for name in pair if name is not None)
    files |= {name.decode("utf-8", "surrogateescape"): None for name in _RENAMED.findall(content)}
    if not files:
        raise PatchError(f"{place} is not a patch: it names no file (--- a/… and +++ b/…)")
    created = tuple(after for before, after in pairs if before is None and after is not None)
    return replace(origin, content=content, files=tuple(files), created=created)


def apply_patches(patches: Sequence[Patch], tree: Path, scratch: Path) -> None:
    """Applies patches in order to a tree: all of them or none.

    They are applied first to copies of the files that they touch, so that a patch may build on earlier ones.

    Args:
        patches: The patches, in order.
        tree: The source. It must have the files that the patches touch, unless a patch creates them.
        scratch: An empty directory for the copies.

    Raises:
        PatchError: with patch, file and hunk of the first that does not apply; the tree is then unchanged.
    """
    touched = files_touched(patches)
    copy_files(touched, tree, scratch)
    apply_to_copies(patches, scratch)
    for path in touched:
        changed, original = scratch / path, tree / path
        if not changed.exists():
            original.unlink(missing_ok=True)
        elif not original.exists() or changed.read_bytes() != original.read_bytes():
            original.parent.mkdir(parents=True, exist_ok=True)
            original.unlink(missing_ok=True)
            # Without its timestamps: make relies on them, and the change happens now.
            shutil.copy(changed, original)


def files_touched(patches: Iterable[Patch]) -> tuple[str, ...]:
    """Paths in the source of all files that patches change, create or remove, each once."""
    return tuple(dict.fromkeys(path for patch in patches for path in patch.files))


def files_needed(patches: Iterable[Patch]) -> tuple[str, ...]:
    """Those of `files_touched` that a source must have, because no patch creates them."""
    patches = tuple(patches)
    created = {path for patch in patches for path in patch.created}
    return tuple(path for path in files_touched(patches) if path not in created)


def apply_to_copies(patches: Sequence[Patch], copies: Path) -> None:
    """Applies patches in order to copies of the files that they touch.

    Raises:
        PatchError: with patch, file and hunk of the first that does not apply; discard the copies then.
    """
    for patch in patches:
        _try(patch, copies)
        patch.apply_to(copies)


def apply_those_that_fit(patches: Sequence[Patch], tree: Path, scratch: Path) -> dict[str, str]:
    """Applies each patch to a tree as a whole, or skips it if it does not apply.

    Args:
        patches: The patches, in order.
        tree: The source.
        scratch: A directory for trial copies; created if missing.

    Returns:
        Names of the skipped patches, with the reason why each does not apply.
    """
    skipped = {}
    for patch in patches:
        copies = scratch / patch.name
        copies.mkdir(parents=True)
        copy_files(patch.files, tree, copies)
        if (complaint := patch.complaint_about(copies)) is None:
            apply_patches([patch], tree, copies)
        else:
            skipped[patch.name] = complaint
    return skipped


def copy_files(paths: Iterable[str], origin: Path, destination: Path) -> None:
    """Copies those of the files that exist, with their directories."""
    for path in paths:
        if (origin / path).is_file():
            (destination / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(origin / path, destination / path)


def _try(patch: Patch, folder: Path) -> None:
    if (complaint := patch.complaint_about(folder)) is not None:
        raise PatchError(
            f"the patch {patch.place} does not apply: {complaint}",
            hint="nothing was changed; a patch applies to the release that it was made from",
        )


def _complaint_about(patch: Patch, folder: Path) -> str | None:
    result = _run_patch(patch, folder, "--dry-run")
    if result.returncode == 0:
        return None
    current, complaints = "", []
    for line in result.stdout.splitlines() + result.stderr.splitlines():
        if match := _PATCHING.match(line):
            current = match[1]
        elif match := _FAILED.search(line):
            complaints.append(f"{current}: hunk {match[1]} at line {match[2]}")
        elif "can't find file to patch" in line:
            absent = [path for path in patch.files if not (folder / path).is_file()]
            complaints.append(f"{' and '.join(absent) or 'a file'}: not in this source")
        elif "malformed patch" in line or "Reversed (or previously applied)" in line:
            complaints.append(
                f"{current + ': ' if current else ''}{line.removeprefix('patch: **** ').strip()}"
            )
    return "; ".join(dict.fromkeys(complaints)) or (result.stderr or result.stdout).strip()


def _apply(patch: Patch, folder: Path) -> None:
    result = _run_patch(patch, folder)
    if result.returncode:
        raise PatchError(f"the patch {patch.place} does not apply: {(result.stdout + result.stderr).strip()}")


def _run_patch(patch: Patch, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Applies a patch to a directory, without fuzz: patch's default could put a hunk in the wrong place."""
    command = ["patch", "--strip=1", "--forward", "--batch", "--fuzz=0", "--no-backup-if-mismatch"]
    result = subprocess.run(
        [*command, *more, f"--directory={folder}", "--reject-file=-"],
        capture_output=True,
        check=False,
        input=patch.content,
        env={"LC_ALL": "C", "PATH": _path()},
    )
    return subprocess.CompletedProcess(
        result.args,
        result.returncode,
        result.stdout.decode(errors="replace"),
        result.stderr.decode(errors="replace"),
    )


def _path() -> str:
    found = shutil.which("patch")
    return str(Path(found).parent) if found else "/usr/bin"


def _inside(raw: bytes, patch: str) -> str | None:
    """A file's path in the source; None for ``/dev/null``, which means no file."""
    text = raw.decode("utf-8", "surrogateescape").strip().strip('"')
    if text == "/dev/null":
        return None
    parts = PurePosixPath(text).parts
    if len(parts) < 2 or parts[0] == "/" or ".." in parts:
        raise PatchError(
            f"{patch} names {text}: paths must have one leading component, as in a/block/bfq-iosched.c",
            hint="make it with `git diff`, or with `diff -up` from the directory above the source",
        )
    return "/".join(parts[1:])
