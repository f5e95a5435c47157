"""Watching the machine, on trees made up like procfs and sysfs, and on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from blklab.linux.machine.monitor import MachineMonitor


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _machine(root: Path, *, stall_us: int, steal: int, sectors: tuple[int, int], khz: int = 0) -> None:
    for kind in ("io", "cpu", "memory"):
        line = f"avg10=0.00 avg60=0.00 avg300=0.00 total={stall_us}"
        _write(root / "proc/pressure" / kind, f"some {line}\nfull {line}\n")
    _write(root / "proc/stat", f"cpu  100 0 100 {800 - steal} 0 0 0 {steal} 50 0\ncpu0 1 2 3\n")
    _write(root / "disk/stat", f"  5 0 {sectors[0]} 1 7 0 {sectors[1]} 2 0 3 4\n")
    if khz:
        _write(root / "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", f"{khz}\n")
        _write(root / "sys/class/hwmon/hwmon0/temp1_input", "41500\n")
        _write(root / "sys/class/hwmon/hwmon1/temp1_input", "60000\n")
        _write(root / "sys/class/hwmon/hwmon1/temp2_input", "no reading\n")


def _monitor(root: Path, disks: list[Path] | None = None) -> MachineMonitor:
    return MachineMonitor([root / "disk"] if disks is None else disks, proc=root / "proc", sys=root / "sys")


def test_differences_of_counters(tmp_path: Path) -> None:
    _machine(tmp_path, stall_us=1_000, steal=10, sectors=(100, 200), khz=2_400_000)
    monitor = _monitor(tmp_path)
    with monitor.monitoring():
        _machine(tmp_path, stall_us=4_000, steal=10, sectors=(300, 208), khz=1_200_000)
        # 100 jiffies more in user mode and 100 stolen: guest time (50) is part of user and counts once.
        _write(tmp_path / "proc/stat", "cpu  200 0 100 790 0 0 0 110 90 0\n")
    events = monitor.events
    assert events is not None
    assert events.pressure_ns["io_full"] == 3_000_000
    assert events.steal_fraction == pytest.approx(0.5)
    assert events.frequency_mhz == 1200
    assert events.temperature_celsius == 60
    assert events.traffic is not None
    assert (events.traffic.read_bytes, events.traffic.written_bytes) == (200 * 512, 8 * 512)
    assert events.duration_ns > 0


def test_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    monitor = _monitor(tmp_path, [])
    with monitor.monitoring():
        pass
    events = monitor.events
    assert events is not None
    assert events.pressure_ns == {}
    assert (events.steal_fraction, events.frequency_mhz, events.temperature_celsius, events.traffic) == (
        None,
        None,
        None,
        None,
    )


def test_a_disk_that_was_replaced_has_no_traffic(tmp_path: Path) -> None:
    _machine(tmp_path, stall_us=0, steal=0, sectors=(1000, 1000))
    monitor = _monitor(tmp_path)
    with monitor.monitoring():
        _machine(tmp_path, stall_us=0, steal=0, sectors=(5, 5))
    assert monitor.events is not None
    assert monitor.events.traffic is None
    with monitor.monitoring():
        (tmp_path / "disk/stat").unlink()
    assert monitor.events.traffic is None


def test_thermal_zones_where_there_is_no_hwmon(tmp_path: Path) -> None:
    _write(tmp_path / "sys/class/thermal/thermal_zone0/temp", "47000\n")
    monitor = _monitor(tmp_path, [])
    with monitor.monitoring():
        pass
    assert monitor.events is not None
    assert monitor.events.temperature_celsius == 47


@pytest.mark.skipif(sys.platform != "linux", reason="counts as Linux does")
def test_what_children_write_is_own(tmp_path: Path) -> None:
    folder = Path(os.environ.get("BLKLAB_TEST_DISK_FOLDER", "/var/tmp"))
    file = folder / f"blklab-watch-{os.getpid()}"
    monitor = MachineMonitor([tmp_path])
    _write(tmp_path / "stat", "0 0 0 0 0 0 0 0\n")
    try:
        with monitor.monitoring():
            command = ["dd", "if=/dev/zero", f"of={file}", "bs=1M", "count=4", "conv=fsync"]
            subprocess.run(command, check=True, capture_output=True)
    finally:
        file.unlink(missing_ok=True)
    assert monitor.events is not None
    assert monitor.events.traffic is not None
    if monitor.events.traffic.own_written_bytes == 0:
        pytest.skip("this kernel does not account I/O by task, or the folder is in memory")
    assert monitor.events.traffic.own_written_bytes >= 4 << 20
