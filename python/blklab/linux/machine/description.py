"""Describes the machine that an experiment runs on; works without root and on other systems."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from blklab.linux.machine.kernel_files import text_or_empty
from blklab.linux.machine.processors import usable_processors
from blklab.records.samples import HOST, MachineDescription

_CPU_NAME = re.compile(r"^(?:model name|Model|cpu model|Hardware)\s*:\s*(.+)$", re.MULTILINE)
_OS_NAME = re.compile(r'^PRETTY_NAME="?([^"\n]*)"?$', re.MULTILINE)


def describe_machine() -> MachineDescription:
    """Describes this machine; unknown fields stay empty, unknown details are left out."""
    cpu_information = text_or_empty(Path("/proc/cpuinfo"))
    name = _CPU_NAME.search(cpu_information)
    details = {
        HOST: platform.node(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "distribution": _distribution(),
        "kernel build": platform.version(),
        "virtual machine": "yes"
        if re.search(r"^flags\s*:.*\bhypervisor\b", cpu_information, re.MULTILINE)
        else "",
        "product": text_or_empty(Path("/sys/class/dmi/id/product_name")),
        "frequency governor": text_or_empty(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        "power source": _power_source(),
        "load": _load(),
    }
    return MachineDescription(
        kernel=platform.release(),
        cpu=name[1].strip() if name else platform.processor() or platform.machine(),
        cpus=usable_processors(),
        memory_bytes=_memory_bytes(),
        details={key: value for key, value in details.items() if value},
    )


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 0


def _distribution() -> str:
    match = _OS_NAME.search(text_or_empty(Path("/etc/os-release")))
    return match[1] if match else ""


def _power_source() -> str:
    """``mains``, ``battery`` (which throttles a laptop), or empty if the machine reports no supply."""
    online = [text_or_empty(path) for path in Path("/sys/class/power_supply").glob("*/online")]
    if not online:
        return ""
    return "mains" if "1" in online else "battery"


def _load() -> str:
    try:
        return f"{os.getloadavg()[0]:.2f} over the last minute"
    except (OSError, AttributeError):
        return ""
