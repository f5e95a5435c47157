"""Files that a person names: reading ends, and writing is whole, in the place that was named."""

from __future__ import annotations

import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from blklab.named_files import (
    check_writable,
    is_file,
    read_bytes,
    read_text,
    written_as_it_comes,
    written_whole,
)


def _write(path: Path, content: bytes = b"new") -> None:
    with written_whole(path) as file:
        file.write(content)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/null"])
def test_devices_are_not_read(device: str) -> None:
    with pytest.raises(OSError, match="is a device, not a file"):
        read_bytes(Path(device))


def test_a_pipe_is_read_up_to_the_limit(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for content, fits in ((b"a\r\nb", True), (b"x" * 2000, False)):
        writer = threading.Thread(target=lambda: pipe.write_bytes(content))  # noqa: B023 - ends within
        writer.start()
        if fits:
            assert read_text(pipe, 1000) == "a\nb"
        else:
            with pytest.raises(OSError, match="more than 0 MiB"):
                read_bytes(pipe, 1000)
        writer.join()


def test_an_impossible_name_is_no_file() -> None:
    assert not is_file(Path("A" * 300))


def test_a_file_is_replaced_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("old")
    path.chmod(0o640)
    _write(path)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path, new = tmp_path / "x.json", tmp_path / "y.json"
    path.write_text("old")
    for place in (path, new):
        with pytest.raises(RuntimeError), written_whole(place) as file:
            file.write(b"half")
            raise RuntimeError
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "old"


@pytest.mark.parametrize("write", [written_whole, written_as_it_comes])
def test_links_lead_nowhere(tmp_path: Path, write: object) -> None:
    victim, link, dangling = tmp_path / "victim", tmp_path / "explain.html", tmp_path / "dangling"
    victim.write_text("precious")
    link.symlink_to(victim)
    dangling.symlink_to(tmp_path / "elsewhere")
    for path in (link, dangling):
        with pytest.raises(OSError, match="symbolic link"), write(path) as file:  # type: ignore[operator]
            file.write(b"own")
        with pytest.raises(OSError, match="symbolic link"):
            check_writable(path)
    assert victim.read_text() == "precious"
    assert not (tmp_path / "elsewhere").exists()


def test_a_hard_link_is_cut_not_followed(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "explain.html"
    victim.write_text("precious")
    link.hardlink_to(victim)
    _write(link)
    assert victim.read_text() == "precious"


def test_no_folder_is_made(tmp_path: Path) -> None:
    for use in (_write, check_writable):
        with pytest.raises(OSError, match=r"the folder .*/missing does not exist"):
            use(tmp_path / "missing" / "x.json")
    assert list(tmp_path.iterdir()) == []


def test_a_check_leaves_no_trace(tmp_path: Path) -> None:
    check_writable(tmp_path / "x.json")
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_or_a_pipe_is_written_to_as_it_is() -> None:
    check_writable(Path("/dev/null"))
    _write(Path("/dev/null"))
    reading, writing = os.pipe()
    _write(Path(f"/dev/fd/{writing}"))
    os.close(writing)
    with os.fdopen(reading, "rb") as end:
        assert end.read() == b"new"


def test_a_short_file_takes_no_more_memory_than_it_has(tmp_path: Path) -> None:
    """Timelines may have 4 GiB, which a machine with less memory refuses at once."""
    file = tmp_path / "short"
    file.write_bytes(b"content")
    assert read_bytes(file, sys.maxsize - 1) == b"content"


def test_a_file_may_have_all_that_is_permitted_and_no_byte_more(tmp_path: Path) -> None:
    file = tmp_path / "long"
    file.write_bytes(bytes(3 << 20))
    assert len(read_bytes(file, 3 << 20)) == 3 << 20
    with pytest.raises(OSError, match="has more than 2 MiB"):
        read_bytes(file, (3 << 20) - 1)
