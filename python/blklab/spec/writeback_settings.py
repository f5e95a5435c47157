"""Settings of writeback that belong to a scheduler's choice: ``none:vm.dirty_bytes=67108864``.

A name is ``vm.`` and the file in /proc/sys/vm, a value is in the kernel's unit: bytes, percent of the memory
that can be dirty, or hundredths of a second. They decide how much buffered data waits in memory, and so how
much of it reaches the disk at a time. They hold for the whole machine, so `blklab apply` leaves them alone.

Source: Documentation/admin-guide/sysctl/vm.rst and ``mm/page-writeback.c``, Linux 6.1.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from blklab.errors import UsageError

PREFIX = "vm."
NAME_PATTERN = r"vm\.[a-z_]+"
"""Of a name, as a regular expression."""
_LEAST = {
    "dirty_bytes": 8192,
    "dirty_background_bytes": 1,
    "dirty_ratio": 1,
    "dirty_background_ratio": 0,
    "dirty_expire_centisecs": 1,
    "dirty_writeback_centisecs": 1,
}
"""By file of /proc/sys/vm: its least value here. The kernel takes no limit below two pages; a period of 0
would stop the flusher."""
_MOST = {"dirty_ratio": 100, "dirty_background_ratio": 100}
_LARGEST = (1 << 63) - 1
PAIRS = (("dirty_ratio", "dirty_bytes"), ("dirty_background_ratio", "dirty_background_bytes"))
"""Two spellings of one limit: writing one sets the other to 0."""


def is_writeback_setting(name: str) -> bool:
    """Whether a setting of a choice is one of writeback, by its name."""
    return name.startswith(PREFIX)


def writeback_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of writeback among a choice's, by file of /proc/sys/vm."""
    return {
        name.removeprefix(PREFIX): value for name, value in settings.items() if is_writeback_setting(name)
    }


def writeback_names() -> Iterable[str]:
    """All names of such settings, as choices spell them."""
    return (f"{PREFIX}{name}" for name in _LEAST)


def check_writeback_settings(settings: Mapping[str, str]) -> None:
    """Checks those among a choice's settings.

    Raises:
        UsageError: for an unknown name, a value that the kernel would refuse, or both spellings of a limit.
    """
    given = writeback_settings(settings)
    for name, text in given.items():
        if name not in _LEAST:
            raise UsageError(
                f"{PREFIX}{name} is no setting of writeback",
                hint=_hint_for(name),
            )
        if not text.isascii() or not text.isdigit():
            unit = "bytes, a whole number such as 67108864" if name.endswith("bytes") else "a whole number"
            raise UsageError(f"{PREFIX}{name}={text}: the kernel takes {unit}")
        least, most = _LEAST[name], _MOST.get(name, _LARGEST)
        if not least <= int(text) <= most:
            allowed = f"from {least} to {most}" if name in _MOST else f"{least} or more"
            raise UsageError(f"{PREFIX}{name}={text}: it must be {allowed}")
    for ratio, size in PAIRS:
        if ratio in given and size in given:
            raise UsageError(
                f"{PREFIX}{ratio} and {PREFIX}{size} are one limit: the kernel keeps the one written last",
                hint="give one of them",
            )


def settings_cancelled_by(name: str) -> str | None:
    """The file of /proc/sys/vm that a write to another sets to 0."""
    for ratio, size in PAIRS:
        if name in (ratio, size):
            return size if name == ratio else ratio
    return None


def _hint_for(name: str) -> str:
    close = difflib.get_close_matches(name, _LEAST, n=2)
    if close:
        return f"did you mean {' or '.join(f'{PREFIX}{one}' for one in close)}?"
    return f"there are {', '.join(writeback_names())}"
