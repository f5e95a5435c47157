"""Draws control groups at random: weights, limits, latencies and costs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from blklab.labs.fidelity.random_devices import DrawnDevice
from blklab.labs.fidelity.random_jobs import DrawnJob

_SECOND_NS = 1_000_000_000

Attributes = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class DrawnGroups:
    """Jobs in their groups, and the attributes of the groups."""

    jobs: list[DrawnJob]
    attributes: Attributes = field(default_factory=dict)


def draw_groups(
    draw: random.Random, scheduler: str, device: DrawnDevice, jobs: list[DrawnJob]
) -> DrawnGroups:
    """Puts jobs into groups; most cells have none."""
    kind = draw.random()
    if kind < 0.06:
        return _limits(draw, device, jobs)
    if kind < 0.11:
        return _latencies(draw, device, jobs)
    if kind < 0.17:
        return _costs(draw, device, jobs)
    if kind < 0.4 and scheduler == "bfq":
        return _weights(draw, jobs)
    return DrawnGroups(jobs)


def _weights(draw: random.Random, jobs: list[DrawnJob]) -> DrawnGroups:
    nested = draw.random() < 0.25
    in_groups = []
    for index, job in enumerate(jobs):
        group = f"both/g{index}" if nested and index < 2 else f"g{index}"
        weight = draw.choice((50, 100, 200, 500, 1000))
        in_groups.append(job.having({"cgroup": group, "cgroup_weight": weight}))
    both = {"both": {"io.bfq.weight": str(draw.choice((100, 300)))}}
    return DrawnGroups(in_groups, both if nested else {})


def _limits(draw: random.Random, device: DrawnDevice, jobs: list[DrawnJob]) -> DrawnGroups:
    attributes: dict[str, dict[str, str]] = {}
    in_groups = []
    for index, job in enumerate(jobs):
        if index > 0 and draw.random() < 0.4:
            in_groups.append(job)
            continue
        group = draw.choice((f"g{index}", f"g{index}", f"above/g{index}"))
        ios = max(10, _SECOND_NS // device.io_ns // draw.choice((3, 10, 40)))
        of_bytes = draw.random() < 0.5
        rate = ios * job.largest_bytes if of_bytes else ios
        letters = ("r", "w") if job.mixed else ("w" if job.writes else "r")
        unit = "bps" if of_bytes else "iops"
        where = "above" if group.startswith("above") and draw.random() < 0.5 else group
        attributes[where] = {"io.max": " ".join(f"{letter}{unit}={rate}" for letter in letters)}
        in_groups.append(job.having({"cgroup": group}))
    return DrawnGroups(in_groups, attributes)


def _latencies(draw: random.Random, device: DrawnDevice, jobs: list[DrawnJob]) -> DrawnGroups:
    attributes = {}
    in_groups = []
    for index, job in enumerate(jobs):
        in_groups.append(job.having({"cgroup": f"g{index}"}))
        if index == 0 or draw.random() < 0.3:
            target_us = max(10, device.io_ns * draw.choice((1, 5, 30)) // 1000)
            attributes[f"g{index}"] = {"io.latency": f"target={target_us}"}
    return DrawnGroups(in_groups, attributes)


def _costs(draw: random.Random, device: DrawnDevice, jobs: list[DrawnJob]) -> DrawnGroups:
    root = {"io.cost.qos": "enable=1"}
    if draw.random() < 0.6:
        vrate = draw.choice(("min=100 max=100", "min=50 max=150", "min=50 max=50"))
        target_us = device.io_ns * draw.choice((4, 40)) // 1000
        targets = f" rpct=95 rlat={target_us} wpct=95 wlat={target_us}" if draw.random() < 0.5 else ""
        root["io.cost.qos"] += f" ctrl=user{targets} {vrate}"
    if draw.random() < 0.6:
        ios = max(10, _SECOND_NS // device.io_ns)
        rates = f"bps={ios * 16384} {{0}}seqiops={ios * 2} {{0}}randiops={ios}"
        both = " ".join(letter + rates.format(letter) for letter in ("r", "w"))
        root["io.cost.model"] = f"ctrl=user {both}"
    attributes: dict[str, Mapping[str, str]] = {"/": root}
    in_groups = []
    for index, job in enumerate(jobs):
        in_groups.append(job.having({"cgroup": f"g{index}"}))
        attributes[f"g{index}"] = {"io.weight": str(draw.choice((50, 100, 200, 500)))}
    return DrawnGroups(in_groups, attributes)
