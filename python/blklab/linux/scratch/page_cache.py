"""Drops the page cache between runs, so that no run reads another one's data from memory."""

from __future__ import annotations

import os
from pathlib import Path

from blklab.errors import NotRootError, reason_of
from blklab.linux.machine.host_change import KernelWrite

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
PAGES = "1"
"""Clean pages only. Directory entries and inodes stay: they favor no run over another."""


def drop_page_cache(control: Path = DROP_CACHES) -> None:
    """Writes back the machine's dirty pages, then drops its clean ones; the kernel cannot drop fewer.

    Raises:
        NotRootError: if we lack the permission.
    """
    os.sync()
    try:
        KernelWrite(control, PAGES).make()
    except OSError as error:
        raise NotRootError(
            f"the page cache cannot be dropped: {control}: {reason_of(error)}",
            hint="run as root, outside of containers that mount /proc read-only",
        ) from error


def commands() -> list[str]:
    """The same as shell commands."""
    return ["sync", *KernelWrite(DROP_CACHES, PAGES).shell()]
