"""How a run goes on in a guest kernel: what makes the load, whose clock counts, where files lie, memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from blklab.errors import SpecError
from blklab.quantities.units import format_bytes, parse_size_bytes

Generator = Literal["blkguest", "fio"]
Clock = Literal["virtual", "host"]
GuestFilesystem = Literal["ext4", "xfs", "btrfs"]
Clocks = Literal["same", "any"]

DEFAULT_MEMORY_BYTES = 512 << 20
LEAST_MEMORY_BYTES = 64 << 20
MOST_MEMORY_BYTES = 64 << 30


class GuestOptions(BaseModel):
    """Options of targets that run in a guest kernel; others take none of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    generator: Generator = "blkguest"
    """What makes the load: blklab's own guest program, or this machine's fio, copied into the guest."""
    time: Clock = "virtual"
    """Virtual time stands still while the guest computes; host time is this machine's own."""
    filesystem: GuestFilesystem | None = None
    """File system made on the modelled disk for the jobs' files; nothing puts them on the bare device."""
    clocks: Clocks = "same"
    """Whether kernels whose clocks differ may be compared: the difference may be the clocks' alone."""
    memory_bytes: int = Field(default=DEFAULT_MEMORY_BYTES, ge=LEAST_MEMORY_BYTES, le=MOST_MEMORY_BYTES)


_WORDS: dict[str, tuple[str, ...]] = {
    "generator": get_args(Generator),
    "time": get_args(Clock),
    "filesystem": get_args(GuestFilesystem),
    "clocks": get_args(Clocks),
}


def guest_options(given: Mapping[str, str]) -> GuestOptions:
    """Reads the options as flags and the ``[guest]`` table of a description have them.

    Raises:
        SpecError: for an unknown option, a word that it does not take, or an impossible amount of memory.
    """
    settled: dict[str, object] = {}
    for key, value in given.items():
        if key == "memory":
            memory_bytes = parse_size_bytes(value)
            if not LEAST_MEMORY_BYTES <= memory_bytes <= MOST_MEMORY_BYTES:
                least, most = format_bytes(LEAST_MEMORY_BYTES), format_bytes(MOST_MEMORY_BYTES)
                raise SpecError(f"a guest's memory lies between {least} and {most}, not {value}")
            settled["memory_bytes"] = memory_bytes
            continue
        if key not in _WORDS:
            raise SpecError(f"a guest has no option {key!r}", hint=f"it has {', '.join([*_WORDS, 'memory'])}")
        if value not in _WORDS[key]:
            raise SpecError(f"{key} of a guest is {' or '.join(_WORDS[key])}, not {value!r}")
        settled[key] = value
    return GuestOptions.model_validate(settled)
