"""The questions of `blklab advise`, and the comparison that their answers ask for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.quantities.units import exact_duration
from blklab.spec.purposes import PURPOSES, workloads_for
from blklab.spec.replays import PREFIX
from blklab.spec.workloads import shipped_workloads

WATCH = "watch"
"""In place of a purpose: record what runs now, and replay it."""
USES = {**PURPOSES, WATCH: "what is running now: it is recorded for a minute and replayed"}
"""The answers to what runs here, each in a line."""
USUAL = "usual"
AIMS = {
    USUAL: "each load by what counts for it, such as commits for a database's log",
    "latency": "short waits, also in the worst hundredth",
    "throughput": "much work done in all",
}
"""The answers to what matters more; all but the first are goals."""
USUAL_BUDGET = "10m"
GOOD_ENOUGH = "5%"
"""Nobody changes a server's scheduler for less."""
_STAND_IN = ["random-read-4k-qd32"]


@dataclass(frozen=True)
class Watching:
    """A recording that is to be made before the comparison."""

    file: str
    duration_ns: int


@dataclass(frozen=True)
class Wish:
    """The answers."""

    use: str
    target: str
    watching: Watching | None
    """None unless the use is `WATCH`."""
    budget: str | None = None
    """None for the default of `blklab compare`, as for models, whose time is not ours."""
    aim: str = USUAL
    store: str | None = None

    @property
    def workloads(self) -> list[str]:
        """Those that stand for the use: job files, since programs need to be installed."""
        if self.watching is not None:
            return [f"{PREFIX}{self.watching.file}"]
        jobs = shipped_workloads()
        return [name for name in workloads_for(self.use) if name in jobs]

    @property
    def words(self) -> list[str]:
        """The flags and arguments of the `blklab compare` that gives the answer."""
        return self._words(self.workloads)

    @property
    def words_before(self) -> list[str]:
        """The same before the recording is made: a shipped load stands for it."""
        return self._words(_STAND_IN if self.watching is not None else self.workloads)

    @property
    def commands(self) -> list[str]:
        """Commands that do the same, as lines for a shell."""
        lines = []
        if self.watching is not None:
            duration = exact_duration(self.watching.duration_ns)
            lines.append(["blklab", "record", self.target, "--for", duration, "-o", self.watching.file])
        lines.append(["blklab", "compare", *self.words])
        return [shlex.join(line) for line in lines]

    def _words(self, workloads: Sequence[str]) -> list[str]:
        flags = [word for name in workloads for word in ("-w", name)]
        if self.aim != USUAL:
            flags += ["--goal", self.aim]
        flags += ["--good-enough", GOOD_ENOUGH]
        if self.budget is not None:
            flags += ["--budget", self.budget]
        if self.store is not None:
            flags += ["--store", self.store]
        return [self.target, *flags]
