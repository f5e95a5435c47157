"""One colour and one shape for each scheduler, the same in every chart of a report.

The kernel's schedulers keep their slots from report to report; others take the slots that are left. No two
of the first forty share both colour and shape, so a reader need not distinguish colours. The colours were
chosen for contrast of at least 3:1 with the page (WCAG 2.1, 1.4.11) and for distance in Oklab as seen with
each of the three kinds of dichromacy; a test checks both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blklab.spec.schedulers import SchedulerChoice

PAGE_LIGHT = "#ffffff"
PAGE_DARK = "#16191d"

COLOURS: tuple[tuple[str, str], ...] = (
    ("#2450c4", "#6384ea"),
    ("#d9480f", "#d9771e"),
    ("#12928c", "#52d08c"),
    ("#762a8a", "#d79bf5"),
    ("#665800", "#ffd43b"),
    ("#3a94d8", "#7fdcff"),
    ("#8a1020", "#ee5a86"),
    ("#3d4148", "#eceff2"),
)
"""Colour on a light page, colour on a dark page."""

SHAPES = ("circle", "square", "diamond", "triangle", "hexagon")
"""Five shapes, so that shape and colour repeat together only after forty."""

DASHES = ("", "7 3", "2 3")
"""Dash patterns of lines: one for the first four schedulers, the next for four more …"""

_USUAL_SLOTS = {"none": 0, "mq-deadline": 1, "kyber": 2, "bfq": 3, "noop": 0, "deadline": 1, "cfq": 3}


@dataclass(frozen=True)
class Appearance:
    """Colour and shape of a scheduler."""

    slot: int

    @property
    def css_class(self) -> str:
        """CSS class of the colour."""
        return f"series-{self.slot % len(COLOURS)}"

    @property
    def shape(self) -> str:
        """One of `SHAPES`."""
        return SHAPES[self.slot % len(SHAPES)]

    @property
    def dashes(self) -> str:
        """Dash pattern of lines; empty for a solid one."""
        return DASHES[self.slot // 4 % len(DASHES)]


def appearances(choices: Sequence[SchedulerChoice]) -> dict[str, Appearance]:
    """Appearance of each scheduler of an experiment, by label."""
    slots: dict[str, int] = {}
    for choice in choices:
        usual = _USUAL_SLOTS.get(choice.name)
        if usual is not None and usual not in slots.values() and not choice.tunables:
            slots[choice.label] = usual
    free = (slot for slot in range(len(choices) + len(_USUAL_SLOTS)) if slot not in set(slots.values()))
    for choice in choices:
        if choice.label not in slots:
            slots[choice.label] = next(free)
    return {choice.label: Appearance(slots[choice.label]) for choice in choices}


def colour_rules() -> str:
    """Style rules that give each colour class its colour, on light and on dark pages."""
    light = "".join(f".series-{slot}{{--series:{pair[0]}}}" for slot, pair in enumerate(COLOURS))
    dark = "".join(f".series-{slot}{{--series:{pair[1]}}}" for slot, pair in enumerate(COLOURS))
    return f"{light}@media screen and (prefers-color-scheme:dark){{{dark}}}"
