"""The playground's lessons: scenes that set it and say what to watch, with statements that tests check."""

from __future__ import annotations

import sys
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Side(_Part):
    """One side of a statement: a figure of a task under one of the schedulers."""

    task: str
    metric: Literal["throughput", "p50", "p99", "mean", "max"]
    lane: int = Field(default=0, ge=0, le=1)
    """0 for the first scheduler of the link, 1 for the one beside it."""


class LessonStatement(_Part):
    """A sentence, and the ratio of two figures that makes it true."""

    text: str
    left: Side
    right: Side
    least: float | None = None
    """Least ratio of ``left`` to ``right``; None for no limit."""
    most: float | None = None


class Lesson(_Part):
    """A scene of about a minute."""

    id: str = Field(pattern="^[a-z-]+$")
    title: str
    link: str = Field(pattern="^#")
    """The set-up, as in the page's address."""
    speed: float = Field(gt=0)
    """Simulated seconds per second."""
    seconds: float = Field(gt=0, le=60)
    """Simulated seconds after which the statements hold."""
    text: str
    picture: Literal["stage", "queue", "positions", "shares", "throughput", "latency"]
    """The picture that shows it, which comes first in a frame."""
    watch: str
    statements: list[LessonStatement] = Field(min_length=1)


def load_lessons() -> list[Lesson]:
    """The lessons, in their order."""
    text = files("blklab.labs.playground").joinpath("page").joinpath("lessons.toml").read_text("utf-8")
    return [Lesson.model_validate(one) for one in tomllib.loads(text)["lesson"]]
