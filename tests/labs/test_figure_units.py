"""Every figure that `blklab calibrate disk` prints has its unit."""

from __future__ import annotations

from itertools import chain

import pytest

from blklab.labs.calibration.disk import figure_units
from blklab.labs.calibration.disk.document import Figure
from blklab.labs.calibration.disk.figure_units import COUNTS_AND_SWITCHES, printed_interval, printed_value
from blklab.labs.calibration.disk.flash.figures import with_facts
from blklab.labs.calibration.disk.ground import DiskFacts
from blklab.labs.calibration.disk.hdd.figures import ArmDisk, Memory, SeekCurve
from blklab.labs.calibration.disk.parameters import Placement, Service, VirtualDisk
from blklab.labs.calibration.disk.profile_file import is_duration
from blklab.linux.queue.hardware import HardwareQueues

SERVICE = Service(latency_ns=1000, spread=0.1, command_ns=100, kib_ns=10)
QUEUES = HardwareQueues(number=1, depth=32, max_sectors_kb=512, volatile_cache=True)
FACTS = DiskFacts(
    name="sda",
    model="",
    capacity_bytes=1 << 40,
    space_bytes=1 << 30,
    writable=True,
    queues=QUEUES,
    rotational=True,
)
PLACES: tuple[Placement, ...] = ("batch", "any")
OF_THE_KERNEL = {"capacity": 1, "queue_depth": 1, "hw_queues": 1, "max_sectors_kb": 1, "rotational": 1}
OF_LIMITS = dict.fromkeys(
    ("io_limit", "io_burst", "rate_limit", "rate_burst", "write_drain_rate", "write_buffer"), 1
)
OF_LOOPS = {"depth": 1, "read_command_percent": 100, "write_copy_percent": 100}


def _figure(key: str, value: int | str, low: int | None = None, high: int | None = None) -> Figure:
    return Figure(key=key, value=value, low=low, high=high, how="fitted")


def _all_figures() -> list[Figure]:
    arm = ArmDisk(
        capacity_bytes=1 << 40,
        queue_depth=32,
        revolution_ns=8_333_333,
        switch_ns=1e6,
        outer_sectors=2000,
        inner_sectors=1000,
        curve=SeekCurve(near_ns=1e6, root_ns=1e4, far_from=1000, far_ns=5e6, slope_ns=10),
        write_settle_ns=1e5,
        hit_ns=1e5,
        interface_rate=3e8,
        memory=Memory(
            segments=16, segment_sectors=512, read_ahead=True, write_sectors=4096, write_extents=64
        ),
        starvation_ns=1_000_000_000,
        heads=4,
    )
    services = [VirtualDisk(SERVICE, SERVICE, 4, place, full_duplex=True, flush_ns=1000) for place in PLACES]
    parameters = chain(
        OF_THE_KERNEL.items(),
        OF_LIMITS.items(),
        OF_LOOPS.items(),
        with_facts(FACTS).parameters().items(),
        arm.parameters().items(),
        *(disk.parameters().items() for disk in services),
        {"fetch": 100, "slots": 8, "arbitration_burst": 2, "usable_spare_permille": 70}.items(),
    )
    return [_figure(key, value) for key, value in parameters]


@pytest.mark.parametrize("figure", _all_figures(), ids=lambda figure: figure.key)
def test_every_number_has_its_unit_or_is_a_count_or_a_switch(figure: Figure) -> None:
    printed = printed_value(figure, figure.value)
    if isinstance(figure.value, str):
        assert printed == figure.value
    elif figure.key in COUNTS_AND_SWITCHES:
        assert printed == str(figure.value)
        assert figure_units.unit_of(figure.key) is None
        assert not is_duration(figure.key)
    else:
        assert printed.lstrip("0123456789.").strip()


@pytest.mark.parametrize(
    ("figure", "value", "interval"),
    [
        (_figure("read_rate", 560_000_000, 550_000_000), "560000000 B/s", "at least 550000000 B/s"),
        (_figure("read_latency", 97_000, 96_000, 98_000), "97us", "96us to 98us"),
        (
            _figure("read_spread", 80, 70, 90),
            "80 \N{PER MILLE SIGN}",
            "70 \N{PER MILLE SIGN} to 90 \N{PER MILLE SIGN}",
        ),
        (_figure("flush", 0, 0, 500), "0ns", "at most 500ns"),
        (_figure("queue_depth", 32), "32 commands", "fitted"),
        (_figure("parallel", 1, 1, 2), "1 command", "1 command to 2 commands"),
    ],
)
def test_values_and_intervals_have_the_same_unit(figure: Figure, value: str, interval: str) -> None:
    assert printed_value(figure, figure.value) == value
    assert printed_interval(figure) == interval
