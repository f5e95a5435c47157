"""The cache of built guest kernels: find one by name, list them, remove them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from blklab.errors import KernelCacheError, KernelInUseError, UnknownNameError
from blklab.guests.kernels.build_record import BuildRecord
from blklab.guests.kernels.cache import (
    folder_size_bytes,
    kernel_cache,
    locked,
    remove_unless_pinned,
    replace_link,
)
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.guests.kernels.names import DEFAULT_NAME, check_name, kernel_names, unknown_kernel
from blklab.guests.kernels.releases import remove_fetched


def find(name: str = DEFAULT_NAME) -> KernelBuild:
    """Finds a kernel that was built.

    Raises:
        UsageError: if the name is invalid.
        UnknownNameError: if there is no kernel of that name.
        KernelCacheError: if its directory is damaged.
    """
    link = kernel_cache() / "names" / check_name(name)
    if not link.is_symlink():
        raise unknown_kernel(name)
    # Resolved now, so that it stays the same kernel if the name is given to another build meanwhile.
    return _read(name, link.resolve())


def find_all() -> tuple[list[KernelBuild], list[KernelCacheError]]:
    """All kernels in alphabetical order, and the errors of damaged ones."""
    results = [_find_or_say(name) for name in kernel_names()]
    found = [result for result in results if isinstance(result, KernelBuild)]
    damaged = [result for result in results if isinstance(result, KernelCacheError)]
    return found, damaged


def build_of_id(build_id: str, name: str) -> KernelBuild | None:
    """The build of that digest, under a name that it need not have yet; None if there is none."""
    folder = kernel_cache() / "builds" / build_id
    if not folder.is_dir():
        return None
    try:
        return _read(name, folder)
    except KernelCacheError:
        return None  # it will be rebuilt


def give_name(name: str, build_id: str) -> None:
    """Gives a name to a build, and removes builds that no longer have a name.

    The caller must hold the store's lock (`store_lock`).
    """
    root = kernel_cache()
    replace_link(root / "names" / name, root / "builds" / build_id)
    remove_unnamed()


@contextmanager
def store_lock() -> Iterator[None]:
    """Holds the store's lock while builds, names or trees change."""
    with locked(kernel_cache() / "store.lock"):
        yield


def remove(name: str) -> None:
    """Removes a name; a build is removed with its last name, and a tree with its last build.

    Raises:
        UnknownNameError: if there is no kernel of that name.
        KernelInUseError: if a guest runs on it; then nothing is removed.
    """
    link = kernel_cache() / "names" / check_name(name)
    with store_lock():
        if not link.is_symlink():
            raise unknown_kernel(name)
        build = link.resolve()
        if [other for other in kernel_names() if other != name and _target(other) == build]:
            link.unlink()
            return
        if not remove_unless_pinned(build, kernel_cache() / "work"):
            raise KernelInUseError(
                f"the kernel {name} is in use: a guest runs on it",
                hint="wait until that run has ended, or stop it; nothing was removed",
            )
        link.unlink()
        remove_unnamed()


def remove_unnamed() -> None:
    """Removes builds without a name and trees without a build, unless they are in use.

    The caller must hold the store's lock.
    """
    root = kernel_cache()
    named = {_target(name) for name in kernel_names()}
    trees: set[str] = set()
    for folder in sorted((root / "builds").glob("*")):
        if folder in named or not remove_unless_pinned(folder, root / "work"):
            try:
                trees.add(_read("", folder).record.tree_id)
            except KernelCacheError:
                continue
    for tree in sorted((root / "trees").glob("*")):
        if tree.name not in trees:
            remove_unless_pinned(tree, root / "work")


def remove_trees() -> int:
    """Removes all cached sources and objects, and returns the bytes freed; kernels stay usable."""
    root = kernel_cache()
    freed_bytes = remove_fetched()
    with store_lock():
        for tree in sorted((root / "trees").glob("*")):
            size_bytes = folder_size_bytes(tree)
            if remove_unless_pinned(tree, root / "work"):
                freed_bytes += size_bytes
    return freed_bytes


def _find_or_say(name: str) -> KernelBuild | KernelCacheError | None:
    try:
        return find(name)
    except KernelCacheError as error:
        return error
    except UnknownNameError:
        return None  # another process has just removed it


def _target(name: str) -> Path:
    return (kernel_cache() / "names" / name).resolve()


def _read(name: str, folder: Path) -> KernelBuild:
    hint = f"build it again with `blklab kernel build {name}`"
    try:
        record = BuildRecord.model_validate_json((folder / "build.json").read_bytes())
    except (OSError, ValidationError, ValueError) as error:
        reason = (
            error.strerror if isinstance(error, OSError) else "build.json is damaged or of another version"
        )
        raise KernelCacheError(
            f"the kernel {name} in {folder} cannot be read: {reason}", hint=hint
        ) from error
    if not (folder / "linux").is_file() or not (folder / "config").is_file():
        raise KernelCacheError(f"the kernel {name} in {folder} lacks its program or configuration", hint=hint)
    return KernelBuild(name, folder, record)
