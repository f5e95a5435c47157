"""Fills the gallery's page: the pictures, and a sentence with numbers below each."""

from __future__ import annotations

import functools

from blklab.quantities.units import format_duration
from blklab.report.gallery.drawing import draw_run
from blklab.report.gallery.scene import SceneRun, run_scene
from blklab.report.pages.markdown import filled_parts, parts

_cached_run = functools.lru_cache(maxsize=32)(run_scene)


def pictures(page: str) -> dict[str, str]:
    """Draws the pictures that a page names; returns SVG texts by file name relative to the page."""
    return {
        _picture_name(scheduler): draw_run(_cached_run(scheduler)) for scheduler in parts(page, "picture")
    }


def filled(page: str) -> str:
    """Returns the page with up-to-date picture links and numbers."""
    return filled_parts(page, "picture", _shown)


def _picture_name(scheduler: str) -> str:
    return f"images/schedulers/{scheduler.split(':', maxsplit=1)[0]}.svg"


def _shown(scheduler: str) -> str:
    run = _cached_run(scheduler)
    picture = f"![Where the disk worked under {scheduler}]({_picture_name(scheduler)})"
    return f"{picture}\n\n{_sentence(run)}"


def _sentence(run: SceneRun) -> str:
    first, second = (run.megabytes_per_second(name) for name in ("first reader", "second reader"))
    return (
        f"Readers {first:.1f} and {second:.1f} MB/s; writer {run.writes_per_second:.0f} requests per "
        f"second; longest read {format_duration(run.longest_wait_ns)}."
    )
