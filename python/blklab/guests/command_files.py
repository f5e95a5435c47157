"""The root of a command in a guest: a shell, the programs that its lines name, and what these need.

Programs and files lie where they are on this machine, so that paths in the line stay right. Words of the line
count as programs if PATH has them, and as files if they are absolute paths of files.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from pathlib import Path

from blklab.errors import MissingToolError, RequirementError
from blklab.guests.file_tree import FileTree

SEARCHED = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
"""PATH of commands in guests."""
DIRECTORY = "/command"
"""Working directory of a command in its root."""

_SHELL = Path("/bin/sh")
_MOUNT_POINTS = ("dev", "proc")
_TEMPORARY = ("tmp", "var/tmp", "run")
_ANYONE = 0o1777
_LOADER_CACHE = Path("/etc/ld.so.cache")
_USERS = "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"
_GROUPS = "root:x:0:\nnogroup:x:65534:\n"
_SEPARATORS = re.compile(r"[\s;&|()<>`\"'${}=,]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
# Words that the shell itself knows (dash(1)).
_OF_SHELL = frozenset(
    """
    ! . : [ alias bg break case cd command continue do done echo elif else esac eval exec exit
    export false fc fg fi for getopts hash if in jobs kill local printf pwd read readonly return
    set shift test then times trap true type ulimit umask unalias unset until wait while { }
    """.split()  # noqa: SIM905 - as the manual lists them
)


def command_root(
    lines: Iterable[str], programs: Iterable[str], files: Iterable[str], directory: Path | None
) -> FileTree:
    """Collects the root of a command.

    Args:
        lines: The shell's lines that the guest will run.
        programs: Names of further programs; those that PATH lacks are left out.
        files: Absolute paths of further files and folders, with the shell's wildcards.
        directory: What a set-up left: becomes the command's working directory. None for an empty one.

    Raises:
        MissingToolError: if a program, an interpreter or a library is missing.
        RequirementError: if a file cannot be read or copied.
    """
    tree = _skeleton()
    if directory is None:
        tree.add_folder(DIRECTORY.lstrip("/"))
    else:
        tree.add_whole_folder(directory, DIRECTORY.lstrip("/"), with_needs=False)
    for line in lines:
        _add_of_line(tree, line, directory)
    for name in programs:
        found = _in_path(name)
        if found is not None:
            tree.add_file(found)
    for pattern in files:
        found_paths = sorted(Path(found) for found in glob.glob(pattern))  # noqa: PTH207 - absolute patterns
        if not found_paths:
            raise RequirementError(f"there is no {pattern}, which the command needs in a guest")
        for path in found_paths:
            if path.is_dir():
                tree.add_whole_folder(path)
            else:
                tree.add_file(path)
    return tree


def _skeleton() -> FileTree:
    """A shell, and the files and folders that programs expect."""
    tree = FileTree()
    for name in _MOUNT_POINTS:
        tree.add_folder(name)
    for name in _TEMPORARY:
        tree.add_folder(name, _ANYONE)
    tree.add_text("etc/passwd", _USERS)
    tree.add_text("etc/group", _GROUPS)
    if _LOADER_CACHE.is_file():
        tree.add_file(_LOADER_CACHE)
    if not _SHELL.exists():
        raise MissingToolError(f"there is no {_SHELL}")
    tree.add_file(_SHELL)
    return tree


def _add_of_line(tree: FileTree, line: str, directory: Path | None) -> None:
    first = _first_word(line)
    if first is not None and first not in _OF_SHELL and _find(first, directory) is None:
        raise MissingToolError(
            f"there is no program {first} for the guest: it is neither in {', '.join(SEARCHED)} nor in the "
            "command's directory",
            hint="give its absolute path, or let --set-up put it into the directory",
        )
    for word in dict.fromkeys(filter(None, _SEPARATORS.split(line))):
        if word in _OF_SHELL:
            continue
        found = _find(word, directory)
        if found is None:
            continue
        if directory is not None and found.is_relative_to(directory):
            tree.add_needs_of(found)
        else:
            tree.add_file(found)


def _find(word: str, directory: Path | None) -> Path | None:
    """The file that a word of a line names; None if it names none."""
    if word.startswith("/"):
        path: Path | None = Path(word)
    elif "/" in word:
        path = None if directory is None else directory / word
    else:
        path = _in_path(word)
    try:
        return path if path is not None and path.is_file() else None
    except OSError:  # too long for a name
        return None


def _in_path(name: str) -> Path | None:
    places = (Path(folder) / name for folder in SEARCHED)
    try:
        return next((place for place in places if place.is_file()), None)
    except OSError:
        return None


def _first_word(line: str) -> str | None:
    """The program that a line starts, as far as it can be told; None if it cannot."""
    words = line.split()
    while words and _ASSIGNMENT.match(words[0]):
        words.pop(0)
    if not words or not re.fullmatch(r"[A-Za-z0-9_./+:\[!{}-]+;?", words[0]):
        return None
    return words[0].rstrip(";")
