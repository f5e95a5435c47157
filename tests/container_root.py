"""Root without capabilities, as in a container."""

from __future__ import annotations

from collections.abc import Sequence

from real_devices import tool

_UNMOUNT_AND_RUN = """
set -e
awk '$3 == "tracefs" || $3 == "debugfs" { print $2 }' /proc/self/mounts | tac | while read -r folder; do
    umount --lazy "$folder"
done
exec setpriv --bounding-set=-all "$@"
"""
"""Containers have no tracefs, while this machine may have it mounted: then its owner needs no capability."""


def as_container_root(command: Sequence[str]) -> list[str]:
    """The command as that user, in a mount namespace of its own; skips the test where a tool is missing."""
    tool("setpriv", "util-linux")
    tool("unshare", "util-linux")
    return ["unshare", "--mount", "sh", "-c", _UNMOUNT_AND_RUN, "sh", *command]
