"""Puts the page's JavaScript modules together into one script.

The modules use a small part of the language's import and export statements, which this file reads: named
imports from ``./FILE.js``, and ``export`` before a declaration. Each module becomes a function of its own, so
that private names of two modules may be equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_IMPORT = re.compile(r"^import \{([^}]*)\} from \"\./([\w-]+)\.js\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (async function|function|class|const|let) (\w+)", re.MULTILINE)
_OTHER = re.compile(r"^\s*(?:import|export)\b.*$", re.MULTILINE)


class BundleError(Exception):
    """A module uses a statement that `bundle` does not read, or modules import each other in a circle."""


@dataclass(frozen=True)
class _Module:
    name: str
    imports: list[tuple[str, str]]
    """Names and the module that they come from."""
    exports: list[str]
    body: str


def bundle(entry: str, read: Callable[[str], str]) -> str:
    """The script of a module and of everything that it imports, each module after those that it needs.

    Args:
        entry: Name of the first module, without ``.js``; it runs last.
        read: Gives the text of a module by its name.

    Raises:
        BundleError: for a circle of imports, or a form of statement that this reader does not know.
    """
    parts: list[str] = []
    done: set[str] = set()

    def add(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise BundleError(f"modules import each other: {' -> '.join([*path, name])}")
        if name in done:
            return
        module = _parse(name, read(name))
        for _, source in module.imports:
            add(source, (*path, name))
        done.add(name)
        parts.append(_wrapped(module, is_entry=name == entry))

    add(entry, ())
    return "\n".join(parts)


def _parse(name: str, text: str) -> _Module:
    imports = [(" ".join(names.split()).rstrip(", "), source) for names, source in _IMPORT.findall(text)]
    exports = [found[1] for found in _EXPORT.findall(text)]
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub("", text))
    if other := _OTHER.search(body):
        raise BundleError(
            f"{name}.js: {other[0].strip()!r} is a form of import or export that is not read here"
        )
    return _Module(name, imports, exports, body)


def _wrapped(module: _Module, *, is_entry: bool) -> str:
    names = "".join(
        f"const {{ {imported} }} = module_{_identifier(source)};\n" for imported, source in module.imports
    )
    if is_entry:
        return f"// {module.name}.js\n{names}{module.body}"
    exported = ", ".join(module.exports)
    head = f"const module_{_identifier(module.name)} = (() => {{"
    return f"// {module.name}.js\n{head}\n{names}{module.body}return {{ {exported} }};\n}})();"


def _identifier(name: str) -> str:
    return name.replace("-", "_")
