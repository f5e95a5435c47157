"""The result of one of `blklab doctor`'s checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "lacking", "missing"]


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    subject: str
    state: State
    """``missing`` makes comparisons on this machine's own disks impossible; ``lacking`` does not."""
    text: str
    remedy: str | None = None
