"""The kernel to be judged: one that was built, the base with patches, or a source tree as it is now."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.errors import UsageError
from blklab.guests.kernels.building import BuildRequest, build
from blklab.guests.kernels.compilation import BuildObserver
from blklab.guests.kernels.store import find

JUDGED = "judged"
"""Name of the kernel that is built to be judged; the next judgement replaces it."""


def build_patched(base: str, patches: Sequence[str], observer: BuildObserver) -> str:
    """Builds the base with patches, and gives the kernel's name.

    Raises:
        UsageError: if the base has patches or options of its own, whose files are not known any more.
        BlklabError: if it cannot be built.
    """
    record = find(base).record
    if record.patches or record.fragments:
        raise UsageError(
            f"the kernel {base} has patches or options of its own",
            hint=f"build the other one yourself and name both: --kernel {base},OTHER",
        )
    request = BuildRequest(JUDGED, record.source, patches, with_instruments=bool(record.instruments))
    return build(request, observer)[0].name


def build_source(base: str, source: str, observer: BuildObserver) -> str:
    """Builds a source tree as it is now, and gives the kernel's name.

    Raises:
        BlklabError: if it cannot be built.
    """
    instruments = bool(find(base).record.instruments)
    return build(BuildRequest(JUDGED, source, with_instruments=instruments), observer)[0].name
