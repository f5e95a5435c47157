"""The options that the running kernel was built with, as far as it tells."""

from __future__ import annotations

import gzip
import platform
from functools import cache
from pathlib import Path

_NO_CONFIG = "its configuration is not on this machine"


@cache
def kernel_options(root: Path = Path("/")) -> dict[str, str] | None:
    """The kernel's configuration: option -> ``y``, ``m`` or a value; None if no file has it.

    Args:
        root: The root of the file system.
    """
    release = platform.release()
    try:
        text = gzip.decompress((root / "proc/config.gz").read_bytes()).decode(errors="replace")
    except (OSError, EOFError, gzip.BadGzipFile):
        places = (root / f"boot/config-{release}", root / f"lib/modules/{release}/config")
        texts = (path.read_text(errors="replace") for path in places if path.is_file())
        try:
            text = next(texts, "")
        except OSError:
            text = ""
    lines = (line.partition("=") for line in text.splitlines() if line.startswith("CONFIG_"))
    return {name: value for name, _, value in lines} or None


def about_option(option: str, options: dict[str, str] | None) -> str:
    """Says whether the kernel was built with an option, as the end of a sentence about what needs it.

    Args:
        option: ``CONFIG_…``; after a comma the releases that have it, if current ones do not.
        options: The kernel's; None if unknown.
    """
    name, _, span = option.partition(", ")
    if span:
        return f"kernels {span} have it ({name})"
    if options is None:
        return f"kernels have it with {option}; {_NO_CONFIG}"
    match options.get(name):
        case None:
            return f"this kernel was built without {option}"
        case "m":
            return f"this kernel has it as a module ({name}=m)"
        case _:
            return f"this kernel was built with {name}"
