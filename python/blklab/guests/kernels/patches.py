"""Patches: read, tried out first, and applied as a whole or not at all."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from blklab.errors import PatchError, UnknownNameError, reason_of
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
    """A patch that was read and makes sense as one."""

    name: str
    path: Path
    content: bytes
    files: tuple[str, ...]
    """What it changes, by path in the source."""
    made: tuple[str, ...] = ()
    """Those among them that it makes, so that a source need not have them."""

    @property
    def sha256(self) -> str:
        """Digest of its content."""
        return hashlib.sha256(self.content).hexdigest()


def shipped_patches() -> dict[str, Path]:
    """Patches that ship with blklab, by name."""
    folder = shipped_folder("kernel") / "patches"
    return {path.stem: path for path in sorted(folder.glob("*/*.patch"))}


def shipped_instruments() -> tuple[Patch, ...]:
    """Patches that make a guest kernel measure better and leave its block layer alone, in their order."""
    folder = shipped_folder("kernel") / "instruments"
    return tuple(read_patch(str(path)) for path in sorted(folder.glob("*/*.patch")))


def read_patch(text: str) -> Patch:
    """Reads a patch, unified as ``git diff`` and ``diff -u`` write it, paths with one leading part.

    Args:
        text: A file, or the name of a shipped patch.

    Raises:
        UnknownNameError: if there is neither.
        PatchError: if it is no patch, or reaches outside a source.
    """
    path = Path(text).expanduser()
    shipped = shipped_patches()
    if not path.exists() and text in shipped:
        path = shipped[text]
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnknownNameError(
            f"the patch {text} cannot be read: {reason_of(error)}",
            hint=f"name a file, or one that ships with blklab: {', '.join(shipped)}",
        ) from error
    if _BINARY.search(content):
        raise PatchError(f"{text} changes a binary file, which patch(1) cannot do")
    if not _HUNK.search(content):
        raise PatchError(
            f"{text} is no patch: it has no hunk (@@ … @@)", hint="make one with `git diff` or `diff -up`"
        )
    old = [_inside(name, text) for name in _OLD.findall(content)]
    new = [_inside(name, text) for name in _NEW.findall(content)]
    pairs = list(zip(old, new, strict=False))
    files = dict.fromkeys(name for pair in pairs for name in pair if name is not None)
    files |= {name.decode("utf-8", "surrogateescape"): None for name in _RENAMED.findall(content)}
    if not files:
        raise PatchError(f"{text} is no patch: it names no file (--- a/… and +++ b/…)")
    made = tuple(after for before, after in pairs if before is None and after is not None)
    return Patch(path.name, path.absolute(), content, tuple(files), made)


def apply_patches(patches: Sequence[Patch], tree: Path, scratch: Path) -> None:
    """Applies patches one after the other to a tree, or none of them.

    They are tried out on copies of the files that they touch, so that a later one may build on an earlier.

    Args:
        patches: In their order.
        tree: The source; the files that the patches touch must be there, unless a patch makes them.
        scratch: An empty folder for the copies.

    Raises:
        PatchError: naming patch, file and hunk of the first that does not apply; the tree is as before.
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
            # Without its times: make goes by them, and the change happens now.
            shutil.copy(changed, original)


def files_touched(patches: Iterable[Patch]) -> tuple[str, ...]:
    """Paths in the source of all files that patches change, make or remove, each once."""
    return tuple(dict.fromkeys(path for patch in patches for path in patch.files))


def files_needed(patches: Iterable[Patch]) -> tuple[str, ...]:
    """Those of `files_touched` that a source must have: none of the patches makes them."""
    patches = tuple(patches)
    made = {path for patch in patches for path in patch.made}
    return tuple(path for path in files_touched(patches) if path not in made)


def apply_to_copies(patches: Sequence[Patch], copies: Path) -> None:
    """Applies patches one after the other to copies of the files that they touch.

    Raises:
        PatchError: naming patch, file and hunk of the first that does not apply; the copies are spoilt then.
    """
    for patch in patches:
        _try(patch, copies)
        _apply(patch, copies)


def apply_those_that_fit(patches: Sequence[Patch], tree: Path, scratch: Path) -> dict[str, str]:
    """Applies each patch to a tree as a whole, or leaves it out where it does not apply.

    Args:
        patches: In their order.
        tree: The source.
        scratch: A folder for the copies on which they are tried out; made where it is missing.

    Returns:
        Names of those that were left out, with what about them does not apply.
    """
    skipped = {}
    for patch in patches:
        copies = scratch / patch.name
        copies.mkdir(parents=True)
        copy_files(patch.files, tree, copies)
        if (complaint := _complaint_about(patch, copies)) is None:
            apply_patches([patch], tree, copies)
        else:
            skipped[patch.name] = complaint
    return skipped


def copy_files(paths: Iterable[str], origin: Path, destination: Path) -> None:
    """Copies those of the files that exist, with their folders."""
    for path in paths:
        if (origin / path).is_file():
            (destination / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(origin / path, destination / path)


def _try(patch: Patch, folder: Path) -> None:
    if (complaint := _complaint_about(patch, folder)) is not None:
        raise PatchError(
            f"the patch {patch.path} does not apply: {complaint}",
            hint="nothing was changed; a patch belongs to the release that it was made from",
        )


def _complaint_about(patch: Patch, folder: Path) -> str | None:
    """What of a patch does not apply to a folder; nothing if all of it does."""
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
        raise PatchError(f"the patch {patch.path} does not apply: {(result.stdout + result.stderr).strip()}")


def _run_patch(patch: Patch, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Applies to a folder; fuzz as ``patch`` has it by default would let a hunk land in the wrong place."""
    command = ["patch", "--strip=1", "--forward", "--batch", "--fuzz=0", "--no-backup-if-mismatch"]
    result = subprocess.run(
        [*command, *more, f"--directory={folder}", "--reject-file=-", f"--input={patch.path}"],
        capture_output=True,
        check=False,
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
    """A file's path in the source; nothing for ``/dev/null``, which stands for no file."""
    text = raw.decode("utf-8", "surrogateescape").strip().strip('"')
    if text == "/dev/null":
        return None
    parts = PurePosixPath(text).parts
    if len(parts) < 2 or parts[0] == "/" or ".." in parts:
        raise PatchError(
            f"{patch} names {text}: paths must have one leading part, as in a/block/bfq-iosched.c",
            hint="make it with `git diff`, or with `diff -up` from the folder above the source",
        )
    return "/".join(parts[1:])
