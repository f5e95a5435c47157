"""The public names with their types; `__init__.py` imports them when they are first used."""

from blklab.simulation import SimulationRequest as SimulationRequest
from blklab.simulation import SimulationResult as SimulationResult
from blklab.simulation import simulate as simulate
from blklab.simulation import simulate_many as simulate_many
from blklab.timeline import Timeline as Timeline
from blklab.version import __version__ as __version__
