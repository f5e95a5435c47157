"""The queue attributes that experiments may set are the same on the host and in guests, in the same order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blklab.linux.queue.attributes import QUEUE_ATTRIBUTES

GUEST_SOURCE = Path(__file__).parents[2] / "crates" / "blkguest" / "src" / "queue.rs"


def test_host_and_guests_set_the_same_attributes_in_the_same_order() -> None:
    """A guest is a program of its own in another language; this test keeps its list equal to the host's."""
    if not GUEST_SOURCE.exists():
        pytest.skip("the sources of blkguest are not here")
    found = re.search(r"const ATTRIBUTES: &\[&str\] = &\[(.*?)\];", GUEST_SOURCE.read_text(), re.DOTALL)
    assert found is not None, f"{GUEST_SOURCE} has no list ATTRIBUTES any more"
    assert tuple(re.findall(r'"(\w+)"', found[1])) == QUEUE_ATTRIBUTES
