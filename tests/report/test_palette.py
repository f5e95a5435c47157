"""Colours that everyone, colour-blind people too, can tell from the page and from one another."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from blklab.report.drawing.palette import COLOURS, PAGE_DARK, PAGE_LIGHT, appearances
from blklab.testing.experiments import make_choice

Vector = npt.NDArray[np.float64]

# Machado, Oliveira, Fernandes: A Physiologically-based Model for Simulation of Color Vision Deficiency,
# IEEE TVCG 15 (2009), severity 1.0, applied to linear RGB.
SIGHT: dict[str, Vector] = {
    "full": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def _linear(colour: str) -> Vector:
    srgb = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def _contrast(one: str, other: str) -> float:
    """WCAG 2.1's contrast ratio."""
    first, second = sorted((float(_linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other)), reverse=True)
    return (first + 0.05) / (second + 0.05)


def _oklab(linear: Vector) -> Vector:
    """Ottosson's perceptual space, from linear sRGB."""
    cone = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    result: Vector = lab @ np.cbrt(cone @ np.clip(linear, 0, 1))
    return result


@pytest.mark.parametrize(("side", "page"), [(0, PAGE_LIGHT), (1, PAGE_DARK)])
def test_contrast_with_the_page(side: int, page: str) -> None:
    for pair in COLOURS:
        assert _contrast(pair[side], page) >= 3, pair


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("side", [0, 1])
def test_colours_differ(side: int, sight: str) -> None:
    seen = [_oklab(SIGHT[sight] @ _linear(pair[side])) for pair in COLOURS]
    for (i, one), (j, other) in itertools.combinations(enumerate(seen), 2):
        # The first four carry most reports; the others have their shapes besides.
        least = 0.09 if max(i, j) < 4 else 0.045
        assert float(np.linalg.norm(one - other)) >= least, (COLOURS[i][side], COLOURS[j][side])


def test_no_two_schedulers_look_alike() -> None:
    choices = [make_choice(f"s{index}=none") for index in range(40)]
    looks = appearances(choices)
    assert len({(look.css_class, look.shape) for look in looks.values()}) == 40


def test_usual_schedulers_keep_their_look_in_every_report() -> None:
    one = appearances([make_choice(text) for text in ("bfq", "none", "x=bfq:slice_idle=0")])
    other = appearances([make_choice(text) for text in ("kyber", "mq-deadline", "none", "bfq")])
    assert one["bfq"] == other["bfq"]
    assert one["none"] == other["none"]
    assert len(set(one.values())) == 3
