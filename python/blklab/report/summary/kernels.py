"""Two guest kernels under one scheduler: the question of a patch."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.report.documents.comparison import CompareDocument

UNPATCHED = "stock"
"""Name of the guest kernel without patches of one's own (`blklab.guests.kernels.names.DEFAULT_NAME`)."""


@dataclass(frozen=True)
class KernelPair:
    """A kernel and the one that it is compared with, by the labels of the one scheduler under them."""

    base: str
    patched: str
    base_kernel: str
    kernel: str
    """Name of the second kernel."""
    scheduler: str
    """The kernel's name of the scheduler."""
    is_patch: bool
    """Whether the first kernel is the one without patches of one's own."""


def kernel_pair(document: CompareDocument) -> KernelPair | None:
    """The two kernels; None if there are more choices than one scheduler under two kernels."""
    if len(document.schedulers) != 2:
        return None
    base, patched = document.schedulers
    if patched["kernel"] in (None, UNPATCHED):
        base, patched = patched, base
    alike = all(base[key] == patched[key] for key in ("name", "tunables"))
    if not alike or patched["kernel"] is None:
        return None
    return KernelPair(
        base=str(base["label"]),
        patched=str(patched["label"]),
        base_kernel=str(base["kernel"] or UNPATCHED),
        kernel=str(patched["kernel"]),
        scheduler=str(base["name"]),
        is_patch=base["kernel"] in (None, UNPATCHED),
    )
