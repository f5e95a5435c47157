"""The start of a run: the moment of the first I/O, and the first tag that the kernel looks at."""

from __future__ import annotations

import pytest

from blklab.errors import MissingToolError
from blklab.guests.programs import program_files
from blklab.spec.guest import GuestOptions

from .guest_runs import measure

pytestmark = pytest.mark.usefixtures("real_guest")

ONE_READ = "[reader]\nrw=randread\nbs=4k\ndirect=1\nnumber_ios=1\nsize=64m\n"


@pytest.mark.parametrize("guest", [GuestOptions(), GuestOptions(filesystem="ext4")])
def test_the_load_begins_at_a_tick(guest: GuestOptions) -> None:
    try:
        program_files(["mkfs.ext4"])
    except MissingToolError as error:
        pytest.skip(error.message)
    # A tick takes 10 ms; the moment within it would depend on how long the preparation took.
    engine = measure("uml:fixed,latency=100us", ONE_READ, "mq-deadline", guest=guest).engine
    assert engine["start_ns"] >= 250_000_000
    assert engine["start_ns"] % 10_000_000 == 0


@pytest.mark.parametrize("scheduler", ["mq-deadline", "kyber", "bfq"])
@pytest.mark.parametrize("nr_requests", [4, 5, 64])
def test_the_first_tag_is_one_that_there_is(scheduler: str, nr_requests: int) -> None:
    # The kernel draws among all tags that there could be, before it knows that there are fewer.
    engine = measure(
        "uml:fixed,latency=100us", ONE_READ, scheduler, queue={"nr_requests": str(nr_requests)}
    ).engine
    assert 0 <= engine["first_tag"] < nr_requests


def test_without_a_scheduler_there_is_no_first_tag() -> None:
    assert measure("uml:fixed,latency=100us", ONE_READ, "none").engine["first_tag"] is None


def test_a_guest_tells_what_the_page_cache_may_take() -> None:
    # 512 MiB, less the kernel's own memory.
    memory_bytes = measure("uml:fixed,latency=100us", ONE_READ, "none").engine["machine"]["memory"]
    assert 440 << 20 < memory_bytes < 512 << 20
