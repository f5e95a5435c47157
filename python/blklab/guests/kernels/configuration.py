"""Kernel configurations: fragments with the requested options, and checks of the resulting ``.config``.

A fragment is a list of ``CONFIG_NAME=value`` lines, as in the kernel's ``kernel/configs/``; an option is
switched off with ``=n`` or ``# CONFIG_NAME is not set``. The kernel's configuration program silently drops
options with unmet dependencies, so every requested option is looked up in the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import KernelConfigError, KernelLacksError, UnknownNameError, reason_of
from blklab.named_files import read_text
from blklab.shipped import shipped_files

OPTIONAL_MARK = "#: optional"

_SET = re.compile(r"(CONFIG_\w+)=(.*)")
_UNSET = re.compile(r"# (CONFIG_\w+) is not set")
_VALUE = re.compile(r'[ynm]|-?\d+|0[xX][0-9a-fA-F]+|"(?:[^"\\]|\\.)*"')
_DEFINITION = re.compile(r"^\s*(?:menu)?config\s+(\w+)\s*$", re.MULTILINE)
_ENTRY_END = re.compile(r"^\s*(?:menuconfig|config|choice|endchoice|menu|endmenu|if|endif|source|comment)\b")


@dataclass(frozen=True)
class KernelOption:
    """An option in a fragment."""

    name: str
    value: str
    """``y``, ``n``, a number or a quoted string."""
    place: str
    """``FILE:LINE``, for messages."""
    optional: bool = False
    """Whether a source may lack the option."""


@dataclass(frozen=True)
class Fragment:
    """The options of one file."""

    name: str
    options: tuple[KernelOption, ...]


def read_fragment(path: Path) -> Fragment:
    """Reads a fragment.

    Raises:
        UnknownNameError: if there is no such file.
        KernelConfigError: if a line is not an option; it gives the line.
    """
    try:
        text = read_text(path)
    except OSError as error:
        raise UnknownNameError(
            f"the configuration fragment {path} cannot be read: {reason_of(error)}"
        ) from error
    except UnicodeDecodeError as error:
        raise KernelConfigError(f"{path} is not a configuration fragment: it is not text") from error
    return Fragment(path.name, tuple(parse_options(text, str(path))))


def shipped_fragment() -> Fragment:
    """The fragment for every guest kernel, ``kernel/uml.config``."""
    return read_fragment(shipped_files("kernel", ".config")["uml"])


def parse_options(text: str, source: str) -> Iterable[KernelOption]:
    """Reads the options of a fragment; arguments and errors as for `read_fragment`."""
    optional = False
    for number, raw in enumerate(text.splitlines(), start=1):
        line, place = raw.strip(), f"{source}:{number}"
        if not line:
            optional = False
        elif line.startswith(OPTIONAL_MARK):
            optional = True
        elif match := _UNSET.fullmatch(line):
            yield KernelOption(match[1], "n", place, optional)
        elif line.startswith("#"):
            continue
        elif (match := _SET.fullmatch(line)) and _VALUE.fullmatch(match[2]):
            if match[2] == "m":
                raise KernelConfigError(
                    f"{place}: {match[1]}=m: guest kernels have no modules", hint="build it in with =y"
                )
            yield KernelOption(match[1], match[2], place, optional)
        else:
            raise KernelConfigError(
                f"{place}: {line!r} is not an option",
                hint='write CONFIG_NAME=y, =n, =NUMBER or ="TEXT", one a line; comments begin with #',
            )


def merge(fragments: Iterable[Fragment]) -> dict[str, KernelOption]:
    """Merges fragments; the last one to name an option wins."""
    return {option.name: option for fragment in fragments for option in fragment.options}


def render(options: Mapping[str, KernelOption]) -> str:
    """Writes options as a fragment for the kernel's configuration program."""
    lines = (
        f"# {option.name} is not set" if option.value == "n" else f"{option.name}={option.value}"
        for option in options.values()
    )
    return "\n".join(lines) + "\n"


def read_configuration(path: Path) -> dict[str, str]:
    """The options that a ``.config`` sets, with their values; options that are off are absent."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return {match[1]: match[2] for line in lines if (match := _SET.fullmatch(line))}


def check_configuration(
    asked: Mapping[str, KernelOption], answer: Mapping[str, str], tree: Path
) -> list[str]:
    """Compares the requested options with the resulting configuration.

    Args:
        asked: The merged fragments.
        answer: The resulting ``.config``.
        tree: The source, to tell unknown options from dropped ones.

    Returns:
        Names of optional options that the source does not know.

    Raises:
        KernelLacksError: with every option that did not take effect, and the reason.
    """
    refused = [option for option in asked.values() if answer.get(option.name, "n") != option.value]
    if not refused:
        return []
    definitions = find_definitions(tree, {option.name.removeprefix("CONFIG_") for option in refused})
    missing, complaints = [], []
    for option in refused:
        where = definitions.get(option.name.removeprefix("CONFIG_"))
        if where is None and option.optional:
            missing.append(option.name)
        elif where is None:
            complaints.append(f"{option.name}={option.value} ({option.place}): this source does not know it")
        else:
            got = answer.get(option.name, "n")
            needs = f"; it needs {' and '.join(where)}" if where and got == "n" else ""
            complaints.append(f"{option.name}={option.value} ({option.place}): it became {got}{needs}")
    if complaints:
        raise KernelLacksError(
            "this source does not support the configuration: " + " · ".join(complaints),
            hint="change the fragment, or use a source that has the option",
        )
    return missing


def find_definitions(tree: Path, names: set[str]) -> dict[str, list[str]]:
    """Finds the definitions of options in a tree's Kconfig files, as far as they apply to User-mode Linux.

    Args:
        tree: A kernel source.
        names: Options without ``CONFIG_``.

    Returns:
        The conditions of the ``depends on`` lines, for each option that is defined.
    """
    found: dict[str, list[str]] = {}
    for path in sorted(tree.rglob("Kconfig*")):
        parts = path.relative_to(tree).parts
        other_architecture = parts[0] == "arch" and len(parts) > 2 and parts[1] != "um"
        if other_architecture and parts[1:3] != ("x86", "um"):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for match in _DEFINITION.finditer(text):
            if match[1] in names:
                found.setdefault(match[1], []).extend(_dependencies(text[match.end() :]))
    return found


def _dependencies(text: str) -> Iterable[str]:
    """The ``depends on`` conditions of the Kconfig entry whose first line ends where ``text`` begins."""
    for line in text.splitlines()[1:]:
        if _ENTRY_END.match(line) or line.strip() in {"help", "---help---"}:
            return
        if line.strip().startswith("depends on "):
            yield line.strip().removeprefix("depends on ").strip()
