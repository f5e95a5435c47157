"""The flag that leaves out the gate before the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def no_gate_option(function: Decorated) -> Decorated:
    """Adds ``--no-gate``."""
    return click.option(
        "--no-gate",
        is_flag=True,
        help="Take a patched scheduler as it is, without loads and torture in a guest first: a mistake of it "
        "is then one of the running kernel.",
    )(function)
