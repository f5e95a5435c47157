"""Recognises the kernel's own threads in a recording, by their names."""

from __future__ import annotations

import re

_KERNEL_THREAD = re.compile(r"kworker|jbd2/|kswapd\d|md\d+_|dmcrypt_write|xfsaild/|btrfs-|loop\d+$|txg_sync$")
"""Flushers and workers, journals, md, dm-crypt, file systems' writers, loops."""


def is_kernel_thread(command: str) -> bool:
    """Whether a task of this name is one of the kernel's that do I/O for others."""
    return _KERNEL_THREAD.match(command) is not None
