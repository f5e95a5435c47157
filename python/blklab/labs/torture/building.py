"""The kernel to be tortured: one that was built, or a source with patches and the kernel's own checks."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.guests.kernels.building import BuildRequest, build
from blklab.guests.kernels.compilation import BuildObserver
from blklab.guests.kernels.source import DEBIAN
from blklab.shipped import shipped_files

TORTURED = "tortured"
"""Usual name of a kernel that is built to be tortured."""


def build_with_checks(
    name: str,
    observer: BuildObserver,
    *,
    patches: Sequence[str] = (),
    scheduler_files: Sequence[str] = (),
    fragments: Sequence[str] = (),
    source: str = DEBIAN,
    release: str | None = None,
) -> str:
    """Builds a kernel that notices its own mistakes (``kernel/torture.config``), and gives its name.

    Raises:
        BlklabError: if it cannot be built.
    """
    fragment = shipped_files("kernel", ".config")["torture"]
    request = BuildRequest(
        name,
        source,
        patches,
        (str(fragment), *fragments),
        scheduler_files=scheduler_files,
        release=release,
    )
    return build(request, observer)[0].name
