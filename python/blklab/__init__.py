"""blklab: which Linux I/O scheduler, for this disk and this work, and how sure are we?

`compare` runs an experiment, `load` reads a stored one, `simulate` and `simulate_many` run simulations alone,
`schedulers.register` adds a scheduler of your own to them.
`BlklabError` is the base of all errors. These are for programs and notebooks; everything else is the command
line's.
"""

from importlib import import_module

TYPE_CHECKING = False  # type checkers know it by its name; typing takes as long to import as all of this

if TYPE_CHECKING:
    from blklab.api.comparison import Comparison as Comparison
    from blklab.api.comparison import load as load
    from blklab.api.experiments import compare as compare
    from blklab.errors import BlklabError as BlklabError
    from blklab.shipped.version import __version__ as __version__
    from blklab.simulator import schedulers as schedulers
    from blklab.simulator.request import SimulationRequest as SimulationRequest
    from blklab.simulator.simulation import SimulationResult as SimulationResult
    from blklab.simulator.simulation import simulate as simulate
    from blklab.simulator.simulation import simulate_many as simulate_many
    from blklab.simulator.timeline import Timeline as Timeline

_PUBLIC = {
    "__version__": "blklab.shipped.version",
    "BlklabError": "blklab.errors",
    "Comparison": "blklab.api.comparison",
    "compare": "blklab.api.experiments",
    "load": "blklab.api.comparison",
    "SimulationRequest": "blklab.simulator.request",
    "SimulationResult": "blklab.simulator.simulation",
    "simulate": "blklab.simulator.simulation",
    "simulate_many": "blklab.simulator.simulation",
    "Timeline": "blklab.simulator.timeline",
}
"""Modules of the public names, imported on first use so that ``blklab --help`` is quick."""

_PUBLIC_MODULES = {"schedulers": "blklab.simulator.schedulers"}

__all__ = [*_PUBLIC, *_PUBLIC_MODULES]  # noqa: PLE0604 - the tables above are their one list


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    if name in _PUBLIC_MODULES:
        return import_module(_PUBLIC_MODULES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, also those that are not imported yet."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
