"""The page cache: emptied between runs, so that no run reads what another one left in memory."""

from __future__ import annotations

import os
from pathlib import Path

from blklab.errors import NotRootError, reason_of

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
PAGES = "1"
"""Clean pages only. Directory entries and inodes stay: they favour no run over another one."""


def drop_page_cache(control: Path = DROP_CACHES) -> None:
    """Writes back all dirty pages, then drops all clean ones: of the whole machine, the kernel knows no less.

    Raises:
        NotRootError: if we may not.
    """
    os.sync()
    try:
        control.write_text(PAGES)
    except OSError as error:
        raise NotRootError(
            f"the page cache cannot be dropped: {control}: {reason_of(error)}",
            hint="run it as root, outside of containers that mount /proc read-only",
        ) from error


def commands() -> list[str]:
    """The same as shell commands."""
    return ["sync", f"echo {PAGES} > {DROP_CACHES}"]
