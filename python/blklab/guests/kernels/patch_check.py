"""Checks before a source is unpacked whether patches apply, using only the files that they touch.

A source has 1.5 GB, and unpacking it takes too long to learn afterwards that a patch has a mistake. The check
takes only the files that the patches name from the archive, or from the cached tree of that source.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from blklab.errors import SpaceError, reason_of
from blklab.guests.kernels.cache import pinned
from blklab.guests.kernels.compilation import BuildObserver
from blklab.guests.kernels.patches import Patch, apply_to_copies, copy_files, files_needed, files_touched
from blklab.guests.kernels.source import KernelSource, unpack
from blklab.guests.kernels.source_tree import NEEDED_FILES, check_tree, is_copied
from blklab.guests.kernels.trees import find_tree


def check_patches(
    patches: Sequence[Patch], source: KernelSource, tree_id: str, observer: BuildObserver
) -> None:
    """Makes sure that patches apply to a source. Leaves no files behind, and only reads the cache.

    Args:
        patches: The patches, in order; without any, it does nothing.
        source: The source.
        tree_id: Name of this source's tree in the cache, where there may be none.
        observer: Receives the progress.

    Raises:
        PatchError: with patch, file and hunk of the first that does not apply.
        KernelSourceError: if the source cannot be read or built.
        SpaceError: if there is too little space for the copies.
    """
    if not patches:
        return
    observer.announce(f"checking {', '.join(patch.name for patch in patches)}")
    try:
        with TemporaryDirectory(prefix="blklab-patches-") as name:
            copies = Path(name)
            _collect(patches, source, tree_id, copies)
            apply_to_copies(patches, copies)
    except OSError as error:
        raise SpaceError(
            f"patches cannot be checked: {error.filename or gettempdir()}: {reason_of(error)}",
            hint="free some space, or set TMPDIR to a directory that has enough",
        ) from error


def _collect(patches: Sequence[Patch], source: KernelSource, tree_id: str, copies: Path) -> None:
    """Copies the files that patches touch, as the source has them."""
    touched = files_touched(patches)
    if source.kind == "directory":
        check_tree(source.path, str(source.path))
        copy_files(touched, source.path, copies)
        return
    tree = find_tree(tree_id)
    checked = False
    if tree is not None:
        with pinned(tree.folder) as there:
            if there:
                tree.copy_originals(touched, copies)
                checked = True
    absent = [path for path in files_needed(patches) if not (copies / path).exists()]
    if checked:
        # Files that a build copies would be in the cached tree if the source had them, so the archive need
        # not be read for them. Others, documentation above all, may be in the archive.
        absent = [path for path in absent if not is_copied(path)]
    else:
        # If the source cannot be built at all, say that before complaining about patches.
        absent = list(dict.fromkeys((*NEEDED_FILES, *absent)))
    if absent:
        unpack(source, copies, only=absent)
    if not checked:
        check_tree(copies, str(source.path))
