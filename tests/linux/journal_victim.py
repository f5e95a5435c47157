"""A program to be killed: it changes the queue of a loop device under a journal, again and again.

Arguments: node of the loop device, scratch folder, run id, seed, and how many changes it makes before it
ends by itself. Prints ``ready`` once it has begun to change things.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from blklab.errors import InterruptedRunError
from blklab.linux.disks import loop
from blklab.linux.disks.resolution import resolve
from blklab.linux.journal.journal import Journal
from blklab.linux.journal.locks import disk_locks
from blklab.linux.processes.signals import signals_as_exceptions
from blklab.linux.queue.attributes import write_attribute
from blklab.linux.queue.schedulers import set_scheduler

_SETTINGS = {
    "none": [("nr_requests", "32"), ("read_ahead_kb", "64"), ("nomerges", "2")],
    "mq-deadline": [("nr_requests", "64"), ("iosched/fifo_batch", "4"), ("wbt_lat_usec", "0")],
    "bfq": [("iosched/slice_idle", "0"), ("iosched/low_latency", "0"), ("rq_affinity", "2")],
    "kyber": [
        ("iosched/read_lat_nsec", "1000000"),
        ("max_sectors_kb", "64"),
        ("write_cache", "write through"),
    ],
}


def main(node: str, scratch: str, run_id: str, seed: str, changes: str) -> None:
    choose = random.Random(int(seed))  # noqa: S311 - not for secrets
    disk = resolve(node).leaves[0]
    with disk_locks([disk], run_id=run_id), Journal.create(run_id, "to be killed") as journal:
        journal.protect_queue(disk)
        folder = journal.own_directory(Path(scratch) / f".blklab-{run_id}")
        (folder / "data").write_bytes(bytes(4096))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        if choose.random() < 0.3:
            image = journal.own_file(Path(scratch) / f"{run_id}.img")
            with image.open("wb") as file:
                file.truncate(16 << 20)
            loop.create(journal, image)
        for _ in range(int(changes)):
            scheduler = choose.choice(list(_SETTINGS))
            set_scheduler(disk, scheduler)
            for name, value in choose.sample(_SETTINGS[scheduler], 2):
                write_attribute(disk, name, value)


if __name__ == "__main__":
    try:
        with signals_as_exceptions():
            main(*sys.argv[1:])
    except InterruptedRunError as error:
        sys.exit(128 + error.signal_number)
