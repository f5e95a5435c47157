"""Journals as killed runs leave them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from blklab.linux.disks.disk import Disk
from blklab.linux.journal import journal as journal_module
from blklab.linux.journal.file import encode_line

Edit = dict[str, Any]


def dead_journal(state: Path, run_id: str, entries: list[Edit], **header: str) -> Path:
    """A journal as a killed run leaves it."""
    folder = state / "journal"
    folder.mkdir(parents=True, exist_ok=True)
    head = {
        "kind": "header",
        "version": 1,
        "run_id": run_id,
        "purpose": "a test",
        "pid": 1,
        "boot_id": journal_module.boot_id(),
        "started_at": "2026-01-01T00:00:00+00:00",
        **header,
    }
    data, checksum = b"", ""
    for entry in [head, *({"number": number, **entry} for number, entry in enumerate(entries, start=1))]:
        line, checksum = encode_line(entry, checksum)
        data += line
    path = folder / f"{run_id}.journal"
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def file_entries(count: int) -> list[Edit]:
    return [{"kind": "file", "path": f"/x/{number}", "parent_inode": 1} for number in range(count)]


def die_with_journal(state: Path, disk: Disk, run_id: str) -> Path:
    """Lets a child change a disk's queue under a journal and kill itself."""
    program = (
        "import os, signal, sys\n"
        "from blklab.linux.disks.resolution import resolve\n"
        "from blklab.linux.journal.journal import Journal\n"
        "from blklab.linux.queue.attributes import write_attribute\n"
        "from blklab.linux.queue.schedulers import set_scheduler\n"
        "disk = resolve(sys.argv[1]).leaves[0]\n"
        "with Journal.create(sys.argv[2], 'a test') as journal:\n"
        "    journal.protect_queue(disk)\n"
        "    set_scheduler(disk, 'bfq')\n"
        "    write_attribute(disk, 'iosched/slice_idle', '0')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, disk.dev_path, run_id], check=False)
    assert ended.returncode == -signal.SIGKILL
    path = state / "journal" / f"{run_id}.journal"
    assert path.exists()
    return path
