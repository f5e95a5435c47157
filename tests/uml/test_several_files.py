"""Jobs with several files in guests: on the file system of a guest, and on its bare disk."""

from __future__ import annotations

import shutil

import pytest

from blklab.errors import BlklabError, MissingToolError
from blklab.guests.programs import program_files
from blklab.spec.guest import GuestOptions

from .guest_runs import measure, simulate

pytestmark = pytest.mark.usefixtures("real_guest")

DEVICE = "uml:ssd-sata"
WRITES = "[a]\nrw=randwrite\nbs=4k\ndirect=1\nsize=768k\nnrfiles=3\nfsync=8\nend_fsync=1\n"
READS = (
    "[b]\nrw=read\nbs=16k\ndirect=1\nioengine=libaio\niodepth=4\nsize=2m\n"
    "filename=x:y\nfile_service_type=sequential\n"
)


def _ios(jobs: str, filesystem: bool, generator: str = "blkguest") -> list[tuple[str, str, int]]:
    options = GuestOptions(generator=generator, filesystem="ext4" if filesystem else None)
    sample = measure(DEVICE, jobs, "mq-deadline", guest=options)
    return [(job.name, part.direction, part.ios) for job in sample.jobs for part in job.directions]


def test_a_guest_takes_several_files_of_one_job_as_a_model_does() -> None:
    modelled = [
        (job.name, part.direction, part.ios)
        for job in simulate("ssd-sata", WRITES + READS, "mq-deadline").jobs
        for part in job.directions
    ]
    # 192 writes with a sync after eight of them but the last, and one for each file at the end.
    assert modelled == [("a", "write", 192), ("a", "sync", 26), ("b", "read", 128)]
    assert _ios(WRITES + READS, filesystem=False) == modelled
    try:
        program_files(["mkfs.ext4"])
    except MissingToolError as error:
        pytest.skip(error.message)
    assert _ios(WRITES + READS, filesystem=True) == modelled


def test_fio_in_a_guest_has_the_same_files_on_its_file_system_only() -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    with pytest.raises(BlklabError, match=r"works on 3 files|several files"):
        _ios(WRITES, filesystem=False, generator="fio")
    try:
        program_files(["fio", "mkfs.ext4"])
    except MissingToolError as error:
        pytest.skip(error.message)
    (writes, (job, kind, syncs)) = _ios(WRITES, filesystem=True)
    # fio does not count the syncs of end_fsync, one for each file.
    assert _ios(WRITES, filesystem=True, generator="fio") == [writes, (job, kind, syncs - 3)]
