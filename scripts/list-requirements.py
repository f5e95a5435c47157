"""Prints the requirements of the package and of the named extras, as pyproject.toml has them."""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10: pip carries a copy of tomli
    from pip._vendor import tomli as tomllib  # type: ignore[no-redef]

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
lines = list(project["dependencies"])
for extra in sys.argv[1:]:
    lines += project["optional-dependencies"][extra]
sys.stdout.write("\n".join(dict.fromkeys(lines)) + "\n")
