"""The modules that were built: find one by name, list them, remove them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from blklab.errors import KernelCacheError, UnknownNameError
from blklab.guests.kernels.cache import locked, remove_unless_pinned, replace_link
from blklab.modules.cache import module_cache
from blklab.modules.headers import running_release
from blklab.modules.record import ModuleRecord
from blklab.modules.renaming import check_module_name


@dataclass(frozen=True)
class BuiltModule:
    """A module that was built."""

    folder: Path
    record: ModuleRecord

    @property
    def file(self) -> Path:
        """The module itself."""
        return self.folder / f"{self.record.module}.ko"

    @property
    def is_intact(self) -> bool:
        """Whether the file is the one that was built."""
        try:
            return hashlib.sha256(self.file.read_bytes()).hexdigest() == self.record.sha256
        except OSError:
            return False


def find_module(name: str, release: str | None = None) -> BuiltModule:
    """Finds a module for a kernel, by default the running one.

    Raises:
        UsageError: if no module may have that name.
        UnknownNameError: if none was built for that kernel.
        KernelCacheError: if it is damaged.
    """
    wanted = release or running_release()
    link = module_cache() / "names" / wanted / check_module_name(name)
    if not link.is_symlink():
        others = [found.record.release for found in find_modules()[0] if found.record.name == name]
        known = ", ".join(sorted(path.name for path in link.parent.glob("*")))
        there = f"; it was built for Linux {', '.join(others)}" if others else ""
        raise UnknownNameError(
            f"there is no module {name} for Linux {wanted}{there}{f'; there are {known}' if known else ''}",
            hint=f"`blklab kernel module {name} --patch FILE` builds it in seconds",
        )
    return read_module(link.resolve())


def find_modules() -> tuple[list[BuiltModule], list[KernelCacheError]]:
    """All modules by kernel and name, and the errors of damaged ones."""
    found: list[BuiltModule] = []
    damaged: list[KernelCacheError] = []
    for link in sorted((module_cache() / "names").glob("*/*")):
        result = _read_or_say(link)
        if isinstance(result, BuiltModule):
            found.append(result)
        else:
            damaged.append(result)
    return found, damaged


def module_of_id(build_id: str) -> BuiltModule | None:
    """The module of that digest; None if it was not built, or is damaged."""
    folder = module_cache() / "builds" / build_id
    try:
        module = read_module(folder) if folder.is_dir() else None
    except KernelCacheError:
        return None
    return module if module is not None and module.is_intact else None


def name_module(module: BuiltModule) -> None:
    """Makes a build the one of its name for its kernel, and removes those without a name."""
    with locked(module_cache() / "store.lock"):
        link = module_cache() / "names" / module.record.release / module.record.name
        replace_link(link, module.folder)
        _remove_unnamed()


def remove_module(name: str) -> list[str]:
    """Removes the modules of a name, for all kernels.

    Returns:
        The releases that they were for.

    Raises:
        UnknownNameError: if there is none.
    """
    check_module_name(name)
    with locked(module_cache() / "store.lock"):
        links = sorted((module_cache() / "names").glob(f"*/{name}"))
        if not links:
            raise UnknownNameError(f"there is no module {name}", hint="`blklab kernel list` shows them")
        for link in links:
            link.unlink()
        _remove_unnamed()
    return [link.parent.name for link in links]


def read_module(folder: Path) -> BuiltModule:
    """Reads a module's record.

    Raises:
        KernelCacheError: if it is damaged.
    """
    try:
        record = ModuleRecord.model_validate_json((folder / "module.json").read_bytes())
    except (OSError, ValidationError, ValueError) as error:
        raise KernelCacheError(
            f"the module in {folder} cannot be read: module.json is damaged or of another version",
            hint="build it again with `blklab kernel module`",
        ) from error
    return BuiltModule(folder, record)


def _read_or_say(link: Path) -> BuiltModule | KernelCacheError:
    try:
        return read_module(link.resolve())
    except KernelCacheError as error:
        return error


def _remove_unnamed() -> None:
    root = module_cache()
    named = {link.resolve() for link in (root / "names").glob("*/*")}
    for folder in (root / "builds").glob("*"):
        if folder.resolve() not in named:
            remove_unless_pinned(folder, root / "work")
