"""Cells drawn at random, so that the simulator is not mended for the matrix alone."""

from __future__ import annotations

import random
from collections.abc import Mapping

from blklab.fidelity.cells import FidelityCell, Section

_MS = 1_000_000
_LONGEST_NS = 20_000 * _MS
_WANTED_IOS = 4000

_SMALL_BLOCK_US = {
    "hdd-7200": 4000,
    "sas-15k": 2500,
    "ssd-sata": 15,
    "nvme-tlc": 6,
    "emmc": 60,
    "sd-card": 500,
}
"""About how long an I/O of 4 KiB holds each device, from which the length of a cell follows."""


def random_cells(number: int, seed: int) -> list[FidelityCell]:
    """As many cells; the same number and seed give the same cells."""
    return [
        _cell(random.Random(f"{seed}/{index}"), f"random/{seed}/{index}")  # noqa: S311 - reproducible draws
        for index in range(number)
    ]


def _cell(draw: random.Random, name: str) -> FidelityCell:
    device, io_ns = _device(draw)
    scheduler = draw.choice(("none", "mq-deadline", "kyber", "bfq"))
    jobs = _jobs(draw, scheduler)
    largest = max(_bytes(str(job["bs"])) for job in jobs.values())
    slower = 1 if largest <= 16 << 10 else 3
    runtime_ns = min(io_ns * slower * _WANTED_IOS, _LONGEST_NS)
    if io_ns >= 1 * _MS and any(job["rw"] in ("read", "write") for job in jobs.values()):
        # What a disk serves from its memory is a hundred times faster.
        runtime_ns //= 20
    return FidelityCell(
        name=f"{name}/{device.split(',')[0]}/{scheduler}",
        device=device,
        scheduler=scheduler,
        jobs=jobs,
        runtime_ns=max(runtime_ns, 100 * _MS),
        tunables=_tunables(draw, scheduler),
        # With fewer tags than tasks the order decides in which tasks happen to run.
        queue={"nr_requests": str(draw.choice((8, 64, 256, 256, 256)))} if scheduler != "none" else {},
        seed=draw.randrange(1, 1000),
    )


def _device(draw: random.Random) -> tuple[str, int]:
    """A device, and about how long an I/O holds it."""
    if draw.random() < 0.4:
        depth = draw.choice((1, 2, 4, 8, 32))
        latency_us = draw.choice((50, 100, 200, 1000, 4000))
        rotational = draw.choice((0, 0, 1))
        device = f"fixed,depth={depth},latency={latency_us}us,jitter={latency_us // 10}us"
        return f"{device},rotational={rotational}", latency_us * 1000 // min(depth, 8)
    name = draw.choice(sorted(_SMALL_BLOCK_US))
    limit: int | None = draw.choice((None, 1, 4, 16)) if name in ("hdd-7200", "sas-15k", "ssd-sata") else None
    # A queue of a thousand would need more memory than a small guest has.
    limit = 128 if name == "nvme-tlc" else limit
    return name + (f",queue_depth={limit}" if limit else ""), _SMALL_BLOCK_US[name] * 1000


def _jobs(draw: random.Random, scheduler: str) -> Mapping[str, Section]:
    number = draw.choice((1, 2, 2, 3))
    weights = scheduler == "bfq" and draw.random() < 0.3
    priorities = scheduler in ("bfq", "mq-deadline") and not weights and draw.random() < 0.3
    jobs: dict[str, Section] = {}
    for index in range(number):
        job: dict[str, str | int] = {
            "direct": 1,
            "time_based": 1,
            "runtime": "1s",
            "size": draw.choice(("128m", "1g")),
            "rw": draw.choice(("randread", "randread", "randwrite", "read", "write", "randrw")),
            "bs": draw.choice(("4k", "4k", "4k", "16k", "64k", "128k")),
        }
        if draw.random() < 0.4:
            job |= {"ioengine": "io_uring", "iodepth": draw.choice((2, 4, 8, 16, 32))}
        else:
            job["numjobs"] = draw.choice((1, 1, 2, 4, 8, 16))
            job["size"] = "128m"
            if draw.random() < 0.15:
                job["thinktime"] = draw.choice(("200us", "1ms", "3ms"))
        if weights:
            job |= {"cgroup": f"g{index}", "cgroup_weight": draw.choice((50, 100, 200, 500, 1000))}
        if priorities:
            prioclass = draw.choice((1, 2, 2, 2, 3))
            job["prioclass"] = prioclass
            if prioclass != 3:
                job["prio"] = draw.randrange(8)
        jobs[f"job{index}"] = job
    return jobs


def _tunables(draw: random.Random, scheduler: str) -> Mapping[str, str]:
    if scheduler == "bfq":
        # Raised weights hide what priorities and groups do.
        tunables = {"low_latency": draw.choice(("0", "0", "0", "1"))}
        if draw.random() < 0.3:
            tunables |= draw.choice(
                (
                    {"slice_idle": "0"},
                    {"slice_idle": "2"},
                    {"strict_guarantees": "1"},
                    {"max_budget": "1024"},
                    {"timeout_sync": "40"},
                    {"fifo_expire_sync": "20"},
                )
            )
        return tunables
    choices: Mapping[str, tuple[Mapping[str, str], ...]] = {
        "none": (),
        "mq-deadline": (
            {"fifo_batch": "1"},
            {"fifo_batch": "4", "writes_starved": "1"},
            {"read_expire": "50"},
            {"write_expire": "200"},
            {"prio_aging_expire": "200"},
            {"front_merges": "0"},
        ),
        "kyber": ({"read_lat_nsec": "500000"}, {"write_lat_nsec": "1000000"}),
    }
    return draw.choice(choices[scheduler]) if choices[scheduler] and draw.random() < 0.4 else {}


def _bytes(text: str) -> int:
    return int(text.removesuffix("k")) << 10
