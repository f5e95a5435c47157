"""Names that change from day to day, looked up on each completion: quickly, without numpy or SQLAlchemy."""

from __future__ import annotations

from collections.abc import Callable

from blklab.guests.kernels.cache import kernel_cache
from blklab.records.run_ids import recent_run_ids


def _kernel_names() -> list[str]:
    names = kernel_cache() / "names"
    return sorted({"stock", *(path.name for path in names.glob("*"))})


LOOKUPS: dict[str, Callable[[], list[str]]] = {"runs": recent_run_ids, "kernels": _kernel_names}
"""Stored runs (the newest first) and guest kernels."""
