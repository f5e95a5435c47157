"""Gives a copy of a scheduler a name of its own, so that the kernel takes it beside the original.

The kernel refuses a second scheduler of a name, control groups a second file, tracefs a second folder. So
these change: the scheduler's name and alias, the module's alias and version, files of control groups, the
system of trace points, and caches of memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from blklab.errors import PatchError, UsageError
from blklab.spec.schedulers import COPY, LONGEST_NAME

RESERVED = frozenset({"none", "mq-deadline", "kyber", "bfq", "deadline", "cfq", "noop", COPY})
"""Names of the kernel's own schedulers, of today and before, and that of the unchanged copy in choices."""

_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_ELEVATOR_NAME = re.compile(r'(\.elevator_name\s*=\s*)"([^"]+)"')
_ELEVATOR_ALIAS = re.compile(r'(\.elevator_alias\s*=\s*)"[^"]+"')
_MODULE_ALIAS = re.compile(r'MODULE_ALIAS\("[^"]*iosched"\)')
_MODULE_VERSION = re.compile(r"^MODULE_VERSION\([^)]*\);\s*$", re.MULTILINE)
_EXPORT = re.compile(r"^EXPORT_SYMBOL\w*\([^)]*\);\s*$", re.MULTILINE)
_CACHE = re.compile(r"KMEM_CACHE\(\s*(\w+)\s*,\s*([^()]+?)\s*\)")
_TRACE_INCLUDE = re.compile(r"^(\s*#\s*include\s+)<trace/events/(\w+)\.h>", re.MULTILINE)
_TRACE_SYSTEM = re.compile(r"^(\s*#\s*define\s+TRACE_SYSTEM\s+)(\w+)", re.MULTILINE)
_TRACE_DEFINITIONS = re.compile(r"^\s*#\s*include\s+<trace/define_trace\.h>", re.MULTILINE)


def check_module_name(name: str) -> str:
    """Returns a name if a scheduler in a module may have it.

    Raises:
        UsageError: if it may not.
    """
    if name in RESERVED:
        why = "stands for the unchanged copy" if name == COPY else "is a scheduler of the kernel's own"
        raise UsageError(f"a module cannot be called {name}: that {why}", hint="choose another name")
    if _NAME.fullmatch(name) is None or len(name) > LONGEST_NAME:
        raise UsageError(
            f"{name!r} cannot be the name of a scheduler",
            hint=f"use up to {LONGEST_NAME} small letters, digits, dashes and underscores, a letter first",
        )
    return name


def module_name(name: str) -> str:
    """The name of the module of a scheduler, as ``/sys/module`` has it."""
    return f"blklab_{name.replace('-', '_')}"


def scheduler_in(sources: Mapping[str, str], place: str) -> str:
    """The scheduler that files define.

    Raises:
        PatchError: if they do not define exactly one.
    """
    names = [match[1] for text in sources.values() for match in _ELEVATOR_NAME.findall(text)]
    if len(names) != 1:
        raise PatchError(
            f"{place} is not one scheduler: .elevator_name is set {len(names) or 'no'} times instead of once"
        )
    return str(names[0])


def renamed(sources: Mapping[str, str], name: str, version: str, traces: Mapping[str, str]) -> dict[str, str]:
    """A scheduler's files under another name.

    Args:
        sources: The files of the scheduler, by name.
        name: The scheduler's new name.
        version: Goes into ``/sys/module/…/version``, which tells a loaded build from others.
        traces: The headers of trace points that it has for itself, by system: those are renamed too.

    Returns:
        The files, and headers of trace points beside them.
    """
    former = scheduler_in(sources, "the module")
    result = {}
    for file, text in sources.items():
        changed = _ELEVATOR_NAME.sub(rf'\1"{name}"', text)
        changed = _ELEVATOR_ALIAS.sub(rf'\1"{name}"', changed)
        changed = _MODULE_ALIAS.sub(f'MODULE_ALIAS("{name}-iosched")', changed)
        changed = _MODULE_VERSION.sub("", changed)
        changed = _EXPORT.sub("", changed)
        changed = _CACHE.sub(
            rf'kmem_cache_create("{name}_\1", sizeof(struct \1), __alignof__(struct \1), \2, NULL)', changed
        )
        # Files of control groups: a second "bfq.weight" takes the first one's away for good.
        changed = changed.replace(f'"{former}.', f'"{name}.')
        changed = _TRACE_INCLUDE.sub(lambda match: _trace_include(match, traces), changed)
        if _ELEVATOR_NAME.search(text):
            changed += f'\nMODULE_VERSION("{version}");\n'
        result[file] = changed
    for system, text in traces.items():
        header = _trace_header(system)
        result[header] = _renamed_trace(text, name, header)
    return result


def trace_systems(sources: Mapping[str, str]) -> list[str]:
    """The systems of trace points that a scheduler defines itself: those after ``CREATE_TRACE_POINTS``."""
    found = []
    for text in sources.values():
        _, defines, rest = text.partition("#define CREATE_TRACE_POINTS")
        if defines and (match := _TRACE_INCLUDE.search(rest)):
            found.append(match[2])
    return found


def _trace_include(match: re.Match[str], traces: Mapping[str, str]) -> str:
    return f'{match[1]}"{_trace_header(match[2])}"' if match[2] in traces else match[0]


def _trace_header(system: str) -> str:
    # One word: the kernel makes a string of it, with macros expanded, and `current` is a macro.
    return f"blklab_trace_{system}.h"


def _renamed_trace(text: str, name: str, header: str) -> str:
    place = "#undef TRACE_INCLUDE_PATH\n#define TRACE_INCLUDE_PATH .\n"
    place += f"#undef TRACE_INCLUDE_FILE\n#define TRACE_INCLUDE_FILE {header.removesuffix('.h')}\n"
    renamed_system = _TRACE_SYSTEM.sub(rf"\g<1>{module_name(name)}", text)
    return _TRACE_DEFINITIONS.sub(f"{place}#include <trace/define_trace.h>", renamed_system)
