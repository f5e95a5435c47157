"""Writes the playground: one HTML file with the simulator, its data and its script inside."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from blklab import _core
from blklab.labs.playground.bundle import bundle
from blklab.labs.playground.lessons import load_lessons
from blklab.report.drawing.palette import COLOURS
from blklab.shipped import require_playground_program
from blklab.spec.machines import shipped_machines
from blklab.spec.profiles import shipped_profiles

EXAMPLE_SCHEDULERS = ("fifo", "elevator", "fair_shares")
"""Schedulers to begin one's own with: files in ``page/schedulers``."""


def render_playground() -> str:
    """The page.

    Raises:
        MissingToolError: if this installation has no WebAssembly program.
    """
    program = require_playground_program()
    script = bundle("main", lambda name: _source(f"{name}.js"))
    environment = Environment(
        loader=PackageLoader("blklab.labs.playground", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("index.html.j2").render(
        style=Markup(_source("page.css") + _task_colours()),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own files
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        shipped=_inert_json({"devices": _devices(), "machines": _machines()}),
        lessons=_inert_json([lesson.model_dump(exclude_none=True) for lesson in load_lessons()]),
        schedulers=_inert_json({name: _source(f"schedulers/{name}.js") for name in EXAMPLE_SCHEDULERS}),
        racer=Markup(bundle("race_worker", lambda name: _source(f"{name}.js"))),  # noqa: S704 - our own files
        program=_packed(program),
    )


def _source(name: str) -> str:
    return files("blklab.labs.playground").joinpath("page").joinpath(name).read_text("utf-8")


def _packed(program: Path) -> str:
    """The program as gzip in base64; the same bytes for the same program."""
    return base64.b64encode(gzip.compress(program.read_bytes(), 9, mtime=0)).decode()


def _devices() -> dict[str, Any]:
    """The shipped profiles with the facts and figures that the page shows."""
    devices: dict[str, Any] = {}
    for name, profile in shipped_profiles().items():
        facts = json.loads(_core.check_device(profile.text or "", profile.source))
        wanted = ("kind", "capacity_bytes", "rotational", "default_scheduler", "parameters")
        devices[name] = {
            "profile": profile.text,
            "summary": profile.summary,
            **{key: facts[key] for key in wanted},
        }
    return devices


def _machines() -> dict[str, Any]:
    """The shipped machines, as the simulator takes them."""
    return {
        name: {"summary": machine.summary, "table": machine.request()}
        for name, machine in shipped_machines().items()
    }


def _task_colours() -> str:
    """Style rules with the colour of each task, those of schedulers in reports."""
    light, dark = (
        "".join(f"--task-{slot}:{pair[side]};" for slot, pair in enumerate(COLOURS)) for side in (0, 1)
    )
    swatches = "".join(f".task-{slot}{{--swatch:var(--task-{slot})}}" for slot in range(len(COLOURS)))
    return f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}{swatches}"


def _inert_json(data: Any) -> Markup:
    """JSON that cannot end the script element that holds it."""
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))  # noqa: S704
