"""Cached trees: the sources and objects of one build of each source, from which its variants start.

::

    trees/ID/tree/        the source, built in place: all paths in it are relative, so it can be copied
    trees/ID/originals/   the files that its patches touched, without the patches
    trees/ID/tree.json    its description

A file that ends up identical to the one in the cached tree, patches included, keeps its timestamp there, so
that make does not rebuild what depends on it.

A variant shares the sources with the cached tree as hard links. There are 25,000 of them; a build only reads
them (they may even be read-only), and the code here removes a link before it changes the file. Build products
are copied, because linkers and scripts write some of them in place.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from blklab.errors import SpaceError
from blklab.guests.kernels.cache import (
    folder_size_bytes,
    kernel_cache,
    make_folder,
    pinned,
    remove_unless_pinned,
)
from blklab.guests.kernels.compilation import BuildObserver
from blklab.guests.kernels.patches import (
    Patch,
    apply_patches,
    apply_those_that_fit,
    copy_files,
    files_needed,
    files_touched,
)
from blklab.guests.kernels.source import KernelSource, unpack
from blklab.guests.kernels.source_tree import check_tree

_FORMAT = 2


@dataclass(frozen=True)
class CachedTree:
    """A tree in the cache."""

    folder: Path
    source_sha256: str
    digests: Mapping[str, str] = field(repr=False)
    """For a user's tree: the digest of each file when it was copied."""
    patched: tuple[str, ...]
    """Files that patches touched."""
    products: tuple[str, ...] = field(repr=False)
    """Files that the build created."""
    size_bytes: int
    steps: int
    configuration: str | None
    """Digest of the options of its build; None if an earlier version, which did not record them, built it."""

    def copy_originals(self, paths: Iterable[str], destination: Path) -> None:
        """Copies the files that it has, as they are in the source, without patches."""
        wanted, patched = dict.fromkeys(paths), set(self.patched)
        copy_files((path for path in wanted if path in patched), self.folder / "originals", destination)
        copy_files((path for path in wanted if path not in patched), self.folder / "tree", destination)


@dataclass
class WorkTree:
    """A tree being built in a work directory."""

    work: Path
    tree_id: str
    version: str
    source: KernelSource
    patched: tuple[str, ...]
    skipped: Mapping[str, str]
    """Instruments that do not apply, with the reason."""
    sources: frozenset[str] = field(repr=False)
    """Files that existed before the build, by path."""
    has_objects: bool
    """Whether it is a copy of a cached tree."""
    is_new: bool
    """Whether the cache has no tree of its source, or one of an earlier state of it."""

    @property
    def folder(self) -> Path:
        """The source."""
        return self.work / "tree"

    def save_to_cache(self, steps: int, configuration: str, *, usual: bool) -> None:
        """Puts the tree into the cache if it serves later builds better than the cached one.

        It does if the cache has no tree of its source, if the source was edited since, or if the cached tree
        was built with options that are no longer the usual ones: every variant would recompile all that
        depends on the changed options.

        Args:
            steps: The number of steps of its build.
            configuration: Digest of the options of its build.
            usual: Whether these are the shipped options, without additions for this build.
        """
        former = find_tree(self.tree_id)
        outdated = former is not None and usual and former.configuration != configuration
        if not (self.is_new or outdated):
            return
        whole = make_folder(self.work / "kept")
        for name in ("tree", "originals"):
            (self.work / name).rename(whole / name)
        content = {
            "format": _FORMAT,
            "source_sha256": self.source.sha256,
            "digests": dict(self.source.digests),
            "patched": list(self.patched),
            "products": sorted(set(_files_in(whole / "tree")) - self.sources),
            "size_bytes": folder_size_bytes(whole),
            "steps": max(steps, former.steps if former else 0),
            "configuration": configuration,
        }
        (whole / "tree.json").write_text(json.dumps(content), encoding="utf-8")
        destination = make_folder(kernel_cache() / "trees") / self.tree_id
        if remove_unless_pinned(destination, self.work / "former"):
            whole.rename(destination)


def find_tree(tree_id: str) -> CachedTree | None:
    """The cached tree of that name; None if there is none, or if another version wrote it."""
    folder = kernel_cache() / "trees" / tree_id
    try:
        content = json.loads((folder / "tree.json").read_bytes())
        if content["format"] != _FORMAT:
            return None
        return CachedTree(
            folder,
            content["source_sha256"],
            content["digests"],
            tuple(content["patched"]),
            tuple(content["products"]),
            content["size_bytes"],
            content["steps"],
            content.get("configuration"),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def prepare_tree(
    source: KernelSource,
    patches: Sequence[Patch],
    instruments: Sequence[Patch],
    tree_id: str,
    work: Path,
    observer: BuildObserver,
) -> WorkTree:
    """Creates a tree in a work directory: a source with patches, and the objects of an earlier build if any.

    The instruments come last, so that none of them conflicts with a user's patch.

    Raises:
        KernelSourceError: if the source cannot be read or built.
        PatchError: if a patch does not apply.
        SpaceError: if the disk is full.
    """
    folder, originals = make_folder(work / "tree"), make_folder(work / "originals")
    former = find_tree(tree_id)
    with pinned(kernel_cache() / "trees" / tree_id) as there:
        if former is not None and there:
            observer.announce("copying the objects of the previous build")
            _copy_tree(former, folder)
            _restore(former.folder / "originals", former.patched, folder)
        else:
            former = None
            observer.announce(f"unpacking {source.path}")
            unpack(source, folder)
    version = check_tree(folder, str(source.path))
    if former is not None and source.kind == "directory":
        _follow_edits(former.digests, source, folder)
    touched = files_touched((*patches, *instruments))
    # A patch may touch files that were not copied, documentation above all.
    absent = [path for path in files_needed((*patches, *instruments)) if not (folder / path).exists()]
    if absent:
        unpack(source, folder, only=absent)
    copy_files(touched, folder, originals)
    if patches:
        observer.announce(f"applying {', '.join(patch.name for patch in patches)}")
        apply_patches(patches, folder, make_folder(work / "scratch"))
    skipped = apply_those_that_fit(instruments, folder, work / "tried")
    if former is not None:
        _keep_times(former, {*former.patched, *touched}, folder)
    edited = former is not None and former.source_sha256 != source.sha256
    return WorkTree(
        work,
        tree_id,
        version,
        source,
        patched=touched,
        skipped=skipped,
        sources=frozenset(_files_in(folder)) - set(former.products if former else ()),
        has_objects=former is not None,
        is_new=former is None or edited,
    )


def _copy_tree(former: CachedTree, destination: Path) -> None:
    """Creates a tree: hard links to a cached tree's sources, copies of its products, with timestamps."""
    origin = former.folder / "tree"
    result = subprocess.run(
        ["cp", "--archive", "--link", f"{origin}/.", str(destination)],
        capture_output=True,
        check=False,
        text=True,
    )
    if result.returncode:
        reason = next(iter(result.stderr.splitlines()), "no reason given")
        raise SpaceError(
            f"the cached tree {origin} cannot be copied: {reason}", hint="free some space and try again"
        )
    for path in former.products:
        (destination / path).unlink()
        shutil.copy2(origin / path, destination / path, follow_symlinks=False)


def _files_in(folder: Path) -> Iterator[str]:
    """Paths of all files in a directory, recursively."""
    for parent, _, names in os.walk(folder):
        inside = os.path.relpath(parent, folder)
        yield from (name if inside == "." else f"{inside}/{name}" for name in names)


def _restore(originals: Path, patched: Sequence[str], folder: Path) -> None:
    """Reverts the patches of the cached tree, with new timestamps."""
    for path in patched:
        if (originals / path).is_file():
            _write(originals / path, folder / path)
        else:
            (folder / path).unlink(missing_ok=True)


def _follow_edits(former: Mapping[str, str], source: KernelSource, folder: Path) -> None:
    """Writes only the files that the user has changed in the tree since it was copied."""
    for path in former.keys() - source.digests.keys():
        (folder / path).unlink(missing_ok=True)
    changed = [path for path, digest in source.digests.items() if former.get(path) != digest]
    for path in changed:
        (folder / path).unlink(missing_ok=True)
    if changed:
        unpack(source, folder, only=changed)
    for path in changed:
        # Not the user's timestamp: a file reverted to an older state must look new to make.
        if (folder / path).is_file():
            (folder / path).touch()


def _keep_times(former: CachedTree, paths: Iterable[str], folder: Path) -> None:
    """Gives files that equal those in the cached tree their timestamps: its objects were built from them."""
    for path in paths:
        cached, ours = former.folder / "tree" / path, folder / path
        if cached.is_file() and ours.is_file() and cached.read_bytes() == ours.read_bytes():
            shutil.copystat(cached, ours)


def _write(origin: Path, destination: Path) -> None:
    destination.parent.mkdir(parents=True, exist_ok=True)
    destination.unlink(missing_ok=True)
    shutil.copy(origin, destination)
