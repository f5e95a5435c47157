"""One setting that tuning varies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TriedSetting:
    """A tunable, an attribute of the queue or of a control group, with the values that are tried."""

    name: str
    values: tuple[str | None, ...]
    """In order; None is the target's default."""
    default: str
    """That default."""
    brings: Mapping[str, str] = field(default_factory=dict)
    """Settings that come with each of its values but the default, and are not varied themselves."""
    needs: str | None = None
    """The setting without which it does nothing; None if it always does something."""
