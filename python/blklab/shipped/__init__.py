"""The files that ship with blklab: workloads, device profiles, studies, and programs for kernels."""

from __future__ import annotations

from pathlib import Path

from blklab.errors import MissingToolError

_SHIPPED = Path(__file__).parent


def shipped_files(kind: str, suffix: str) -> dict[str, Path]:
    """The files of one kind (``workloads``, ``devices``, ``kernel``) by stem, in alphabetical order."""
    return {path.stem: path for path in sorted((_SHIPPED / kind).glob(f"*{suffix}"))}


def shipped_folder(kind: str) -> Path:
    """The directory of one kind: ``studies``, ``kernel``."""
    return _SHIPPED / kind


def guest_program() -> Path | None:
    """The program that runs inside guest kernels; None if this installation has none."""
    path = _SHIPPED / "blkguest"
    return path if path.is_file() else None


def require_guest_program() -> Path:
    """The program that runs inside guest kernels, and that replays recordings on hosts.

    Raises:
        MissingToolError: if this installation has none.
    """
    path = guest_program()
    if path is None:
        raise MissingToolError(
            "this installation has no guest program (blkguest), which also replays recordings",
            hint="`make build` makes it; sim: targets do not need it",
        )
    return path


def bpf_programs() -> Path | None:
    """The recorder's programs for the kernel; None if this installation has none."""
    path = _SHIPPED / "blkrecord.bpf.o"
    return path if path.is_file() else None


def require_playground_program() -> Path:
    """The playground's WebAssembly program.

    Raises:
        MissingToolError: if this installation has none.
    """
    path = _SHIPPED / "blkplay.wasm"
    if not path.is_file():
        raise MissingToolError(
            "this installation has no WebAssembly program (blkplay.wasm)",
            hint="`make playground` in a checkout builds it, and says which packages that needs",
        )
    return path
