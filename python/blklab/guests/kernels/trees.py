"""Kept trees: the sources and objects of one build of each source, from which its variants start.

::

    trees/ID/tree/        the source, built in place: all paths in it are relative, so it can be copied
    trees/ID/originals/   files that the patches in it touched, as the source has them
    trees/ID/tree.json    what it is

A file that ends up as the kept tree has it, patches and all, keeps its time there, so that make leaves alone
what was made from it.

A variant shares the sources with the kept tree as hard links: there are 25,000 of them, a build only reads
them (they may be read-only for it), and whatever changes one here removes the link first. What a build makes
is copied, since linkers and scripts write some of it in place.
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
    """Of a person's tree: the digest of each file when it was copied."""
    patched: tuple[str, ...]
    """Files that patches touched."""
    products: tuple[str, ...] = field(repr=False)
    """Files that the build made."""
    size_bytes: int
    steps: int
    configuration: str | None
    """Digest of the options that it was built with; an earlier version did not note them."""

    def copy_originals(self, paths: Iterable[str], destination: Path) -> None:
        """Copies those of the files that it has, as they are in the source: without patches."""
        wanted, patched = dict.fromkeys(paths), set(self.patched)
        copy_files((path for path in wanted if path in patched), self.folder / "originals", destination)
        copy_files((path for path in wanted if path not in patched), self.folder / "tree", destination)


@dataclass
class WorkTree:
    """A tree being built in a work folder."""

    work: Path
    tree_id: str
    version: str
    source: KernelSource
    patched: tuple[str, ...]
    skipped: Mapping[str, str]
    """Instruments that do not apply, with what about them does not."""
    sources: frozenset[str] = field(repr=False)
    """Files that were there before the build, by path."""
    has_objects: bool
    """Whether it is a copy of a kept tree."""
    is_news: bool
    """Whether no tree of its source is kept, or one of an earlier state of it."""

    @property
    def folder(self) -> Path:
        """The source."""
        return self.work / "tree"

    def keep(self, steps: int, configuration: str, *, usual: bool) -> None:
        """Puts the tree into the cache if that serves the builds to come better than what is there.

        It does if nothing of its source is there, if the source was edited since, or if what is there was
        built with options that are no longer the usual ones: all that depends on those that changed would
        be compiled again for every variant.

        Args:
            steps: How many steps building it took.
            configuration: The options that it was built with, as a digest.
            usual: Whether these are the shipped ones, to which nothing was added for this build.
        """
        former = find_tree(self.tree_id)
        outdated = former is not None and usual and former.configuration != configuration
        if not (self.is_news or outdated):
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
    """The kept tree of that name; nothing if there is none, or none that this version wrote."""
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
    """Makes a tree in a work folder: a source with patches, with the objects of a former build if any.

    The instruments come last, so that none of them stands in the way of a person's patch.

    Raises:
        KernelSourceError: if the source cannot be read, or not be built.
        PatchError: if a patch does not apply.
        SpaceError: if the disk is full.
    """
    folder, originals = make_folder(work / "tree"), make_folder(work / "originals")
    former = find_tree(tree_id)
    with pinned(kernel_cache() / "trees" / tree_id) as there:
        if former is not None and there:
            observer.announce("copying the objects of the former build")
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
    # A patch may touch what was left out when the source was taken: its documentation above all.
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
        is_news=former is None or edited,
    )


def _copy_tree(former: CachedTree, destination: Path) -> None:
    """Makes a tree with links to the sources of a kept one and copies of its products, with their times."""
    origin = former.folder / "tree"
    result = subprocess.run(
        ["cp", "--archive", "--link", f"{origin}/.", str(destination)],
        capture_output=True,
        check=False,
        text=True,
    )
    if result.returncode:
        reason = next(iter(result.stderr.splitlines()), "no reason given")
        raise SpaceError(f"the kept tree {origin} cannot be copied: {reason}", hint="make room and try again")
    for path in former.products:
        (destination / path).unlink()
        shutil.copy2(origin / path, destination / path, follow_symlinks=False)


def _files_in(folder: Path) -> Iterator[str]:
    """Paths of all files in a folder and the folders in it."""
    for parent, _, names in os.walk(folder):
        inside = os.path.relpath(parent, folder)
        yield from (name if inside == "." else f"{inside}/{name}" for name in names)


def _restore(originals: Path, patched: Sequence[str], folder: Path) -> None:
    """Puts back what the patches of the kept tree had changed, as a change of now."""
    for path in patched:
        if (originals / path).is_file():
            _write(originals / path, folder / path)
        else:
            (folder / path).unlink(missing_ok=True)


def _follow_edits(former: Mapping[str, str], source: KernelSource, folder: Path) -> None:
    """Writes what a person changed in the tree since it was copied, and nothing else."""
    for path in former.keys() - source.digests.keys():
        (folder / path).unlink(missing_ok=True)
    changed = [path for path, digest in source.digests.items() if former.get(path) != digest]
    for path in changed:
        (folder / path).unlink(missing_ok=True)
    if changed:
        unpack(source, folder, only=changed)
    for path in changed:
        # Not the person's time: a file that was put back to an older state is new to make.
        if (folder / path).is_file():
            (folder / path).touch()


def _keep_times(former: CachedTree, paths: Iterable[str], folder: Path) -> None:
    """Gives files that are as in the kept tree their times there: its objects were made from just these."""
    for path in paths:
        kept_one, ours = former.folder / "tree" / path, folder / path
        if kept_one.is_file() and ours.is_file() and kept_one.read_bytes() == ours.read_bytes():
            shutil.copystat(kept_one, ours)


def _write(origin: Path, destination: Path) -> None:
    destination.parent.mkdir(parents=True, exist_ok=True)
    destination.unlink(missing_ok=True)
    shutil.copy(origin, destination)
