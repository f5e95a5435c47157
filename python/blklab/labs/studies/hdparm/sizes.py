"""Sizes, times and numbers of runs that both hdparm studies have in their ``set-up.toml``."""

from __future__ import annotations

from blklab.labs.studies.replication.options import Scaled, TomlTable


class RunCounts(TomlTable):
    """Numbers of runs. A guest kernel's clock is exact, so a repeated run there adds no information."""

    as_printed: Scaled[int]
    """Runs of each scheduler in the published order."""
    blocks: Scaled[int]
    """Randomised blocks."""


class TimingTests(TomlTable):
    """The two tests of hdparm."""

    area: Scaled[str]
    """The area that ``-t`` may read."""
    buffered_runtime: str
    cached_runtime: Scaled[str]
    """How long ``-T`` reads."""
    host_scratch: str
    host_rest: str
    """The pause before the buffered reads on the host, as long as hdparm's own."""


class BusyDisk(TomlTable):
    """A disk with more requests waiting than it can serve, so that a scheduler has a choice."""

    device: str
    nr_requests: str
    area: Scaled[str]
    runtime: Scaled[str]
    blocks: Scaled[int]
