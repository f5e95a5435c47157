"""The page that shows the portraits: its pictures, and the figures below them."""

from __future__ import annotations

import functools

from blklab.quantities.units import format_duration
from blklab.report.gallery.drawing import draw_portrait
from blklab.report.gallery.scene import Portrait, portray
from blklab.report.pages.markdown import filled_places, places

_portray = functools.lru_cache(maxsize=32)(portray)


def pictures(page: str) -> dict[str, str]:
    """The pictures that a page asks for: SVG texts by file name, relative to the page."""
    return {
        _picture_name(scheduler): draw_portrait(_portray(scheduler)) for scheduler in places(page, "portrait")
    }


def filled(page: str) -> str:
    """The page with the pictures' links and figures as they should be."""
    return filled_places(page, "portrait", _shown)


def _picture_name(scheduler: str) -> str:
    return f"images/schedulers/{scheduler.split(':', maxsplit=1)[0]}.svg"


def _shown(scheduler: str) -> str:
    portrait = _portray(scheduler)
    picture = f"![Where the disk worked under {scheduler}]({_picture_name(scheduler)})"
    return f"{picture}\n\n{_sentence(portrait)}"


def _sentence(portrait: Portrait) -> str:
    first, second = (portrait.megabytes_per_second(name) for name in ("first reader", "second reader"))
    return (
        f"Readers {first:.1f} and {second:.1f} MB/s, writer {portrait.writes_per_second:.0f} requests a "
        f"second; the longest that a read took: {format_duration(portrait.longest_wait_ns)}."
    )
