"""Trying patches out before anything is unpacked: on the files that they touch, and nothing else.

A source is an archive of 1.5 GB that takes longer to unpack than a person wants to wait for a mistake in a
patch. Here only the files that the patches name are taken from it, or from the kept tree of that source.
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
    """Makes sure that patches apply to a source. Nothing remains of it, and the cache is only read.

    Args:
        patches: In their order; nothing is looked at if there are none.
        source: What they are to be applied to.
        tree_id: The tree that is kept of this source, if there is one.
        observer: Told what is being done.

    Raises:
        PatchError: naming patch, file and hunk of the first that does not apply.
        KernelSourceError: if the source cannot be read, or not be built.
        SpaceError: if there is no room for the copies.
    """
    if not patches:
        return
    observer.announce(f"trying {', '.join(patch.name for patch in patches)}")
    try:
        with TemporaryDirectory(prefix="blklab-patches-") as name:
            copies = Path(name)
            _collect(patches, source, tree_id, copies)
            apply_to_copies(patches, copies)
    except OSError as error:
        raise SpaceError(
            f"patches cannot be tried out: {error.filename or gettempdir()}: {reason_of(error)}",
            hint="make room, or set TMPDIR to a place that has it",
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
        # What would have been kept is not in the source, and the archive need not be read to its end for it.
        # The rest, documentation above all, may be.
        absent = [path for path in absent if not is_copied(path)]
    else:
        # A source that cannot be built at all is told before its patches are.
        absent = list(dict.fromkeys((*NEEDED_FILES, *absent)))
    if absent:
        unpack(source, copies, only=absent)
    if not checked:
        check_tree(copies, str(source.path))
