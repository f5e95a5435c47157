"""Draws jobs at random: their transfers, and how they issue them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from blklab.quantities.units import parse_size_bytes

Options = Mapping[str, str | int]


@dataclass(frozen=True)
class DrawnJob:
    """A section of a job file, and the properties on which the rest of its cell depends."""

    options: Options

    def having(self, options: Options) -> DrawnJob:
        """The job with further options."""
        return replace(self, options={**self.options, **options})

    @property
    def mode(self) -> str:
        """Kind of I/O without the part after a colon."""
        return str(self.options["rw"]).partition(":")[0]

    @property
    def random(self) -> bool:
        """Whether its offsets are random."""
        return self.mode.startswith("rand")

    @property
    def writes(self) -> bool:
        """Whether it writes."""
        return self.mode not in ("read", "randread")

    @property
    def mixed(self) -> bool:
        """Whether it reads and writes."""
        return self.mode.endswith("rw")

    @property
    def asynchronous(self) -> bool:
        """Whether it keeps several I/Os in flight."""
        return "iodepth" in self.options

    @property
    def buffered(self) -> bool:
        """Whether it goes through the page cache."""
        return self.options["direct"] == 0

    @property
    def in_order(self) -> bool:
        """Whether some of its offsets are sequential, so that a disk may serve them from its cache."""
        return not self.random or ":" in str(self.options["rw"]) or "percentage_random" in self.options

    @property
    def sizes(self) -> list[int]:
        """Block sizes that occur, in bytes."""
        split = self.options.get("bssplit")
        if split is None:
            return [parse_size_bytes(str(self.options["bs"]))]
        return [parse_size_bytes(entry.partition("/")[0]) for entry in str(split).split(":")]

    @property
    def largest_bytes(self) -> int:
        """The largest block size."""
        return max(self.sizes)

    @property
    def clones(self) -> int:
        """Number of the job's processes."""
        return int(self.options.get("numjobs", 1))


def draw_jobs(draw: random.Random) -> list[DrawnJob]:
    """Draws one to three jobs."""
    jobs = [_draw_job(draw) for _ in range(draw.choice((1, 2, 2, 3)))]
    if len(jobs) > 1 and draw.random() < 0.06:
        # They share the same blocks.
        jobs = [job.having({"filename": "shared"}) for job in jobs]
    return _with_priorities(draw, jobs)


def _draw_job(draw: random.Random) -> DrawnJob:
    job = DrawnJob(
        {
            "direct": 1,
            "time_based": 1,
            "runtime": "1s",
            "size": draw.choice(("128m", "1g")),
            "rw": draw.choice(("randread", "randread", "randwrite", "read", "write", "randrw", "rw")),
            "bs": draw.choice(("4k", "4k", "4k", "8k", "16k", "64k", "128k")),
        }
    )
    if draw.random() < 0.4:
        engine = draw.choice(("io_uring", "io_uring", "libaio", "posixaio"))
        job = job.having({"ioengine": engine, "iodepth": draw.choice((2, 4, 8, 16, 32))})
    else:
        sizes = ("16m", "64m", "128m", "128m", "256m")
        job = job.having({"numjobs": draw.choice((1, 1, 2, 4, 8, 16)), "size": draw.choice(sizes)})
    for chance, options in _RARE:
        # Always drawn, so that no choice shifts the later ones.
        happens, own = draw.random() < chance, random.Random(draw.random())  # noqa: S311 - reproducible draws
        if happens:
            job = job.having(options(own, job))
    return job


def _mix(draw: random.Random, job: DrawnJob) -> Options:
    percent = draw.choice((10, 30, 70, 90))
    name = "rwmixwrite" if draw.random() < 0.2 else "rwmixread"
    return {name: percent} if job.mixed else {}


def _batch(draw: random.Random, job: DrawnJob) -> Options:
    return {"iodepth_batch": draw.choice((2, 4, 8, 16))} if job.asynchronous else {}


def _split(draw: random.Random, _job: DrawnJob) -> Options:
    return {"bssplit": draw.choice(("4k/50:64k/50", "4k/80:16k/10:128k/10", "8k:32k", "512/30:4k/70"))}


def _large(draw: random.Random, _job: DrawnJob) -> Options:
    return {"bs": draw.choice(("256k", "1m", "2m"))}


def _distribution(draw: random.Random, job: DrawnJob) -> Options:
    kinds = ("zipf:0.8", "zipf:1.2", "pareto:0.2", "pareto:0.4", "normal:10", "normal:40")
    return {"random_distribution": draw.choice(kinds)} if job.random else {}


def _partly_random(draw: random.Random, job: DrawnJob) -> Options:
    return {"percentage_random": draw.choice((0, 20, 50, 90))} if job.random else {}


def _sequence(draw: random.Random, job: DrawnJob) -> Options:
    if not job.random:
        return {"rw": f"{job.mode}:{draw.choice(('64k', '1m', '-256k'))}"}
    options: Options = {"rw": f"{job.mode}:{draw.choice((2, 8))}"}
    return {**options, "rw_sequencer": "identical"} if draw.random() < 0.5 else options


def _repeating(_draw: random.Random, job: DrawnJob) -> Options:
    return {"norandommap": 1} if job.random else {}


def _aligned(draw: random.Random, job: DrawnJob) -> Options:
    return {"blockalign": draw.choice(("512", "16k", "64k"))} if job.random else {}


def _shifted(draw: random.Random, _job: DrawnJob) -> Options:
    offset, increment = draw.choice(("4k", "64m", "20%")), draw.choice(("0", "32m"))
    # A share of a file that other jobs have made short leaves no room for clones beyond it.
    return {"offset": offset, "offset_increment": "0" if offset.endswith("%") else increment}


def _seeded(draw: random.Random, _job: DrawnJob) -> Options:
    return {"randseed": draw.randrange(1, 100)}


def _durable(draw: random.Random, job: DrawnJob) -> Options:
    if not job.writes:
        return {}
    kinds: tuple[Options, ...] = (
        {"fsync": 1},
        {"fsync": 8},
        {"fdatasync": 4},
        {"sync": 1},
        {"sync": "dsync"},
        {"end_fsync": 1},
    )
    return draw.choice(kinds)


def _through_cache(draw: random.Random, job: DrawnJob) -> Options:
    if job.asynchronous or job.clones > 4:
        return {}
    options: dict[str, str | int] = {"direct": 0, "size": "1g", "invalidate": draw.choice((0, 1, 1, 1))}
    if job.writes and not {"fsync", "fdatasync", "sync"} & set(job.options):
        # Without fsync, writes into memory take no time and never end.
        options["fsync"] = draw.choice((1, 4, 16))
    if draw.random() < 0.3:
        options["fadvise_hint"] = draw.choice(("none", "random", "sequential"))
    return options


_RARE: tuple[tuple[float, Callable[[random.Random, DrawnJob], Options]], ...] = (
    (0.4, _mix),
    (0.3, _batch),
    (0.1, _split),
    (0.04, _large),
    (0.12, _distribution),
    (0.08, _partly_random),
    (0.08, _sequence),
    (0.06, _repeating),
    (0.05, _aligned),
    (0.08, _shifted),
    (0.03, _seeded),
    (0.08, _durable),
    (0.12, _through_cache),
)
"""Probability of each option, if it applies."""


def _with_priorities(draw: random.Random, jobs: list[DrawnJob]) -> list[DrawnJob]:
    kind = draw.random()
    if kind < 0.15:
        return [job.having(_priority(draw)) for job in jobs]
    if kind < 0.2:
        return [job.having({"nice": draw.choice((-20, -5, 0, 10, 19))}) for job in jobs]
    return jobs


def _priority(draw: random.Random) -> Options:
    prioclass = draw.choice((1, 2, 2, 2, 3))
    return {"prioclass": prioclass, **({"prio": draw.randrange(8)} if prioclass != 3 else {})}
