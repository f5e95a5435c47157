"""blklab: which Linux I/O scheduler, for this disk and this work, and how sure are we?

`simulate` and `simulate_many` are for programs and notebooks; everything else is the command line's.
"""

from importlib import import_module

_PUBLIC = {
    "__version__": "blklab.version",
    "SimulationRequest": "blklab.simulation",
    "SimulationResult": "blklab.simulation",
    "simulate": "blklab.simulation",
    "simulate_many": "blklab.simulation",
    "Timeline": "blklab.timeline",
}
"""Where the public names are; imported when they are first used, so that ``blklab --help`` is quick."""

__all__ = [*_PUBLIC]  # noqa: PLE0604 - the table above is their one list


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
