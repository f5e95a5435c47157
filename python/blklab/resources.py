"""Where the files that ship with blklab are: workloads and device profiles."""

from __future__ import annotations

from pathlib import Path

_SHIPPED = Path(__file__).parent / "shipped"


def shipped_files(kind: str, suffix: str) -> dict[str, Path]:
    """Files of one kind (``workloads``, ``devices``) by stem, in alphabetical order."""
    return {path.stem: path for path in sorted((_SHIPPED / kind).glob(f"*{suffix}"))}
