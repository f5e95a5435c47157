#!/usr/bin/env python3
"""Prints the requirements of the package and of the named extras, as pyproject.toml has them.

`--debian` prints the package's own ones as Debian names them, for the field Depends.
"""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10: pip carries a copy of tomli
    from pip._vendor import tomli as tomllib  # type: ignore[no-redef]

signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader such as `head` may leave early
root = Path(__file__).resolve().parents[1]
project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
lines = list(project["dependencies"])
if sys.argv[1:] == ["--debian"]:
    # Debian's Python is new enough to need no tomli; its names follow those of the index.
    plain = [re.fullmatch(r"([\w-]+)>=([\w.]+)", line) for line in lines if ";" not in line]
    sys.stdout.write(", ".join(f"python3-{match[1]} (>= {match[2]})" for match in plain if match) + "\n")
else:
    for extra in sys.argv[1:]:
        lines += project["optional-dependencies"][extra]
    sys.stdout.write("\n".join(dict.fromkeys(lines)) + "\n")
