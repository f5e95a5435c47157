"""Settings of control groups as commands for systemd, and io.cost's in a udev rule."""

from __future__ import annotations

import pytest

from blklab.errors import UsageError
from blklab.linux.apply.udev import assignments
from blklab.linux.apply.unit_settings import parse_units, unit_commands
from blklab.spec.schedulers import parse_scheduler_choice

BOTH = parse_scheduler_choice(
    "none:batch/io.weight=50:batch/io.max.rbps=1048576:batch/io.max.wiops=max:/io.cost.qos.enable=1"
)


def test_a_group_s_settings_become_one_command() -> None:
    (found,) = unit_commands(BOTH, "/dev/vda", {"batch": "backup.service"})
    assert found.command == (
        "systemctl set-property backup.service IOWeight=50 'IOReadBandwidthMax=/dev/vda 1048576' "
        "'IOWriteIOPSMax=/dev/vda infinity'"
    )
    assert found.text == f"left to you: {found.command}"


def test_a_group_without_a_unit_says_whose_name_is_missing() -> None:
    (found,) = unit_commands(BOTH, "/dev/vda", {})
    assert "UNIT being the unit that the group 'batch' stands for: systemctl set-property UNIT" in found.text
    named = parse_scheduler_choice("bfq:backup.slice/io.bfq.weight=50")
    (found,) = unit_commands(named, "/dev/vda", {})
    assert found.command == "systemctl set-property backup.slice IOWeight=50"


@pytest.mark.parametrize(("weight", "property_weight"), [(1, 1), (100, 100), (101, 111), (1000, 10_000)])
def test_systemd_scales_the_weight_of_bfq(weight: int, property_weight: int) -> None:
    choice = parse_scheduler_choice(f"bfq:a.slice/io.bfq.weight={weight}")
    (found,) = unit_commands(choice, "/dev/vda", {})
    assert found.command == f"systemctl set-property a.slice IOWeight={property_weight}"
    # As systemd computes it back.
    scaled = 100 - (100 - property_weight) if weight <= 100 else 100 + (property_weight - 100) * 900 // 9900
    assert scaled == weight


def test_what_systemd_cannot_say_is_said() -> None:
    choice = parse_scheduler_choice(
        "bfq:a.slice/io.weight=200:a.slice/io.bfq.weight=200:a.slice/io.prio.class=idle:a.slice/io.latency.target=75"
    )
    (found,) = unit_commands(choice, "/dev/vda", {})
    assert found.command == (
        "systemctl set-property a.slice IOWeight=200 'IODeviceLatencyTargetSec=/dev/vda 75us'"
    )
    assert found.without_property == ("io.bfq.weight = 200", "io.prio.class = idle")
    assert "write it into its control group" in found.text


@pytest.mark.parametrize("text", ["batch", "=a.service", "batch=a", "batch=a.service;reboot"])
def test_a_unit_has_a_name(text: str) -> None:
    with pytest.raises(UsageError, match="is not GROUP=UNIT"):
        parse_units((text,))


def test_a_unit_for_a_group_that_is_not_set_is_refused() -> None:
    with pytest.raises(UsageError, match="sets nothing of the group 'other'"):
        unit_commands(BOTH, "/dev/vda", parse_units(("other=a.service",)))


def test_a_rule_sets_what_belongs_to_the_disk() -> None:
    choice = parse_scheduler_choice("none:batch/io.weight=50:/io.cost.qos.enable=1:/io.cost.qos.min=50")
    assert assignments(choice) == [
        'ATTR{queue/scheduler}="none"',
        "RUN+=\"/bin/sh -c 'echo %M:%m enable=1 min=50 > /sys/fs/cgroup/io.cost.qos'\"",
    ]


def test_a_weight_that_is_no_number_is_named() -> None:
    choice = parse_scheduler_choice("bfq:a.slice/io.bfq.weight=heavy")
    with pytest.raises(UsageError, match=r"a.slice/io.bfq.weight: 'heavy' is no weight"):
        unit_commands(choice, "/dev/sda", {})
