"""The one kind of table of things that can be added: blklab's own entries, and those of installed packages.

A package adds an entry through an entry point of the group that the registry is named by::

    [project.entry-points."blklab.metrics"]
    latency_p90 = "my_package.latency_p90"

Own entries are imported when they are asked for, those of packages when the table is listed or a name is not
an own one. A package that cannot be loaded, or breaks the entry's contract, costs one `PluginWarning` that
names it; everything else works on.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = {
    "blklab.metrics": "metric",
    "blklab.readers": "reader",
    "blklab.backends": "backend",
    "blklab.studies": "study",
    "blklab.commands": "command",
    "blklab.schedulers": "simulated scheduler",
}
"""The groups of entry points, each with the word for one of its entries."""

Entry = TypeVar("Entry")


class PluginWarning(UserWarning):
    """An entry of another package is left out; the message names the package and the reason."""


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Entries by name: own ones in their order, then those of other packages by name.

    Args:
        group: A key of `GROUPS`.
        own: The place of each own entry, as ``module`` or ``module:attribute``, or a function that makes it.
        check: Turns a name and the imported object into an entry. It raises an exception for an object that
            breaks the contract of entries.
    """

    def __init__(
        self, group: str, own: Mapping[str, str | Callable[[], Any]], check: Callable[[str, Any], Entry]
    ) -> None:
        self.group = group
        self._own = own
        self._check = check
        self._loaded: dict[str, Entry] = {}

    def __getitem__(self, name: str) -> Entry:
        if name not in self._own:
            return self._of_packages[name]
        if name not in self._loaded:
            self._loaded[name] = self._check(name, _object_at(self._own[name]))
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self._of_packages

    def __len__(self) -> int:
        return len(self._own) + len(self._of_packages)

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._of_packages

    @functools.cached_property
    def _of_packages(self) -> dict[str, Entry]:
        found: dict[str, Entry] = {}

        def add(name: str, loaded: Any) -> None:
            if name in self._own or name in found:
                raise ValueError("there is another of that name")
            found[name] = self._check(name, loaded)

        load_from_packages(self.group, add)
        return found


def names_in_packages(group: str) -> list[str]:
    """Names that installed packages declare in a group, without loading them."""
    return [point.name for point in _entry_points(group)]


def load_from_packages(group: str, add: Callable[[str, Any], object]) -> None:
    """Hands each object that installed packages declare in a group to a function; a failure is a warning."""
    for point in _entry_points(group):
        with _warning_for_error(point):
            add(point.name, point.load())


@contextmanager
def _warning_for_error(point: EntryPoint) -> Iterator[None]:
    """Warns that an entry is left out, whatever its package raises."""
    try:
        yield
    except (Exception, SystemExit) as error:
        package = "an unnamed package" if point.dist is None else f"{point.dist.name} {point.dist.version}"
        reason = f"{type(error).__name__}: {error}".removesuffix(": ")
        entry = f"the {GROUPS[point.group]} {point.name!r} of {package}"
        warnings.warn(f"{entry} is left out: {reason}", PluginWarning, stacklevel=2)


def _object_at(place: str | Callable[[], Any]) -> Any:
    if not isinstance(place, str):
        return place()
    module, _, attribute = place.partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


@functools.cache
def _entry_points(group: str) -> list[EntryPoint]:
    """Entry points of a group by name; a distribution that is found twice on the path counts once."""
    return sorted(set(_all_entry_points().select(group=group)), key=lambda point: (point.name, point.value))


@functools.cache
def _all_entry_points() -> Any:
    # The look through all installed packages takes some 20 ms, and the import as long.
    from importlib.metadata import entry_points  # noqa: PLC0415 - not before a table is listed

    return entry_points()
