"""The options of `blklab study run`, and set-up values that depend on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, model_validator

from blklab.spec.experiment import DEFAULT_SEED

StudyBackend = Literal["sim", "uml", "host"]
"""Where a study runs: on the simulator, on a kernel in virtual time, or on this machine."""

STUDY_BACKENDS: tuple[StudyBackend, ...] = get_args(StudyBackend)

Value = TypeVar("Value", int, str, list[int], list[str])


@dataclass(frozen=True)
class StudyKernel:
    """The guest kernel of the backend ``uml``, if it is not the stock one."""

    name: str
    has_legacy_schedulers: bool
    """Whether it offers cfq, deadline and noop, which Linux had up to 4.20."""


@dataclass(frozen=True)
class StudyOptions:
    """How to run a study again."""

    backend: StudyBackend = "sim"
    quick: bool = False
    """Use smaller sizes and fewer cases."""
    seed: int = DEFAULT_SEED
    directory: str = "."
    """Folder for scratch files on the backend ``host``."""
    directory_named: bool = False
    """Whether the user named the folder, and with it the disks to test."""
    kernel: StudyKernel | None = None
    """The guest kernel that the user named."""

    @property
    def on_legacy_kernel(self) -> bool:
        """Whether the guests' kernel offers cfq, deadline and noop."""
        return self.kernel is not None and self.kernel.has_legacy_schedulers


class TomlTable(BaseModel):
    """A table of a study's TOML files; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FullAndQuick(TomlTable, Generic[Value]):
    """A set-up value, and a smaller one for ``--quick``; a value by itself applies always."""

    # Sizes and counts fill the placeholders of job files, where 4 and "4" are the same.
    model_config = ConfigDict(coerce_numbers_to_str=True)

    full: Value
    quick: Value | None = None
    """None: `full` applies with ``--quick`` too."""

    @model_validator(mode="before")
    @classmethod
    def _from_a_single_value(cls, value: Any) -> Any:
        return value if isinstance(value, dict | BaseModel) else {"full": value}

    def of_length(self, options: StudyOptions) -> Value:
        """The quick value with ``--quick`` if there is one, otherwise the full value."""
        return self.quick if options.quick and self.quick is not None else self.full


class Scaled(FullAndQuick[Value], Generic[Value]):
    """A set-up value that may be smaller with ``--quick`` or on a slower backend.

    ::

        runtime = { full = "30s", quick = "20s", uml = "10s", host = { full = "5s", quick = "2s" } }
    """

    uml: Value | FullAndQuick[Value] | None = None
    """None: the same as on the simulator."""
    host: Value | FullAndQuick[Value] | None = None
    """None: the same as on the simulator."""
    legacy: Value | None = None
    """On guest kernels that offer cfq, deadline and noop. None: the same as on others."""

    def under(self, options: StudyOptions) -> Value:
        """The value that applies with these options."""
        if options.on_legacy_kernel and self.legacy is not None:
            return self.legacy
        by_backend: dict[StudyBackend, Value | FullAndQuick[Value] | None]
        by_backend = {"sim": None, "uml": self.uml, "host": self.host}
        own = by_backend[options.backend]
        if own is None:
            return self.of_length(options)
        return own.of_length(options) if isinstance(own, FullAndQuick) else own
