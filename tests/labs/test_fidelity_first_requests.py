"""bfq's measurement of injection, which the first request of any new queue ends, as on Linux 6.1."""

from __future__ import annotations

import json

from blklab import _core
from blklab.labs.fidelity.random_cells import random_cells
from blklab.records.samples import JobSample

FIRST_TAG, MEMORY_BYTES = 5, 502_804_480
"""Of the guest whose kernel did the I/Os below."""


def test_twenty_writers_for_eight_tags_do_what_they_do_on_the_kernel() -> None:
    """Their queues come one by one while another's first request after idling is measured."""
    cell = random_cells(26, 3)[25]
    answer = json.loads(_core.simulate(cell.request_text(FIRST_TAG, MEMORY_BYTES)))
    found = [JobSample.model_validate(job) for job in answer["jobs"]]
    writes = [
        (entry.ios, entry.latency.sum_ns)
        for job in found
        for entry in job.directions
        if entry.direction == "write"
    ]
    assert writes == [(119, 8_469_223_580), (907, 2_177_022_835)]
