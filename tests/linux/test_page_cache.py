from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from pathlib import Path

import pytest

from blklab.errors import NotRootError
from blklab.linux.scratch.page_cache import commands, drop_page_cache
from waiting import wait_until

PAGE = mmap.PAGESIZE


def pages_in_memory(path: Path) -> int:
    """How many pages of a file the page cache holds (mincore)."""
    library = ctypes.CDLL(None, use_errno=True)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
        state = (ctypes.c_ubyte * (len(mapping) // PAGE))()
        assert library.mincore(ctypes.c_void_p(address), ctypes.c_size_t(len(mapping)), state) == 0
        return sum(value & 1 for value in state)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="dropping the page cache needs root")
def test_dirty_and_clean_pages_are_gone() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        path = Path(folder) / "file"

        def written() -> bool:
            path.write_bytes(os.urandom(256 * PAGE))
            return pages_in_memory(path) == 256

        # Another program may empty the page cache at any moment too.
        wait_until(written, "all pages of the file are in memory")
        drop_page_cache()
        assert pages_in_memory(path) == 0


def test_a_refusal_is_an_error_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(NotRootError, match="no such file"):
        drop_page_cache(tmp_path / "missing" / "drop_caches")


def test_the_commands_say_the_same() -> None:
    assert commands() == ["sync", "echo 1 > /proc/sys/vm/drop_caches"]
