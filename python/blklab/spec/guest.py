"""Options of guest kernels: the generator of the load, the clock, the file system, memory."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from blklab.errors import SpecError, did_you_mean
from blklab.quantities.units import format_bytes
from blklab.spec.forms import SIZE, WORD
from blklab.spec.options import Option, Topic, options_of

Generator = Literal["blkguest", "fio"]
Clock = Literal["virtual", "host"]
GuestFilesystem = Literal["ext4", "xfs", "btrfs"]
Clocks = Literal["same", "any"]

DEFAULT_MEMORY_BYTES = 512 << 20
LEAST_MEMORY_BYTES = 64 << 20
MOST_MEMORY_BYTES = 64 << 30

_option = partial(Option, topic=Topic.GUESTS, see="guests.md", commands=("compare", "run"))
_word = partial(_option, WORD)


class GuestOptions(BaseModel):
    """Options of targets that run in a guest kernel; others take none of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    generator: Annotated[
        Generator,
        _word(
            "Generator of the load in a guest: blklab's own program, or this machine's fio with its "
            "libraries, which is slower and serves to check the other.",
        ),
    ] = "blkguest"
    """blklab's own guest program, or this machine's fio, copied into the guest."""
    time: Annotated[
        Clock,
        _word(
            "Clock of a guest. Virtual time stands still while the guest computes; in host time results are "
            "as noisy as the machine, and one guest runs at a time.",
        ),
    ] = "virtual"
    filesystem: Annotated[
        GuestFilesystem | None,
        _word(
            "New file system on the modelled disk for the jobs' files; every job then needs a size, and this "
            "machine mkfs.",
            default_text="none: files lie on the bare device",
        ),
    ] = None
    """Made on the modelled disk for the jobs' files; None puts them on the bare device."""
    clocks: Annotated[
        Clocks,
        _word(
            "same refuses to compare two kernels if only one has the exact clock, if they have different "
            "versions of it, or if they tick at different rates (CONFIG_HZ); any compares them and warns.",
        ),
    ] = "same"
    memory_bytes: Annotated[
        int,
        Field(ge=LEAST_MEMORY_BYTES, le=MOST_MEMORY_BYTES),
        _option(
            SIZE,
            "Memory of a guest, page cache included; 64 MiB or more.",
            name="memory",
            metavar="SIZE",
            default_text=f"{DEFAULT_MEMORY_BYTES >> 20}m",
        ),
    ] = DEFAULT_MEMORY_BYTES


_OPTIONS = {option.name: option for option in options_of(GuestOptions)}


def guest_options(given: Mapping[str, str]) -> GuestOptions:
    """Reads the options as flags and the ``[guest]`` table of a description have them.

    Raises:
        SpecError: for an unknown option, a word that it does not take, or an impossible amount of memory.
    """
    settled: dict[str, object] = {}
    for key, text in given.items():
        option = _OPTIONS.get(key)
        if option is None:
            raise SpecError(
                f"a guest has no option {key!r}",
                hint=did_you_mean(key, list(_OPTIONS)) or f"it has {', '.join(_OPTIONS)}",
            )
        if option.choices and text not in option.choices:
            raise SpecError(f"a guest's {key} must be {' or '.join(option.choices)}, not {text!r}")
        settled[option.field] = option.form.read(text)
    memory_bytes = settled.get("memory_bytes", DEFAULT_MEMORY_BYTES)
    if not LEAST_MEMORY_BYTES <= memory_bytes <= MOST_MEMORY_BYTES:  # type: ignore[operator]
        least, most = format_bytes(LEAST_MEMORY_BYTES), format_bytes(MOST_MEMORY_BYTES)
        raise SpecError(f"a guest's memory must be between {least} and {most}, not {given['memory']}")
    return GuestOptions.model_validate(settled)
