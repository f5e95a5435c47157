"""Block devices stacked on others, as sysfs shows them."""

from __future__ import annotations

from pathlib import Path


def devices_above(folder: Path) -> list[Path]:
    """Partitions of a block device, and all devices stacked on it or on them: directories in sysfs."""
    found: dict[Path, None] = {}
    waiting = [folder]
    while waiting:
        device = waiting.pop()
        partitions = sorted(entry.parent for entry in device.glob("*/partition"))
        holders = sorted(link.resolve() for link in (device / "holders").glob("*"))
        for above in [*partitions, *holders]:
            if above not in found:
                found[above] = None
                waiting.append(above)
    return list(found)
