"""The version of blklab."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("blklab")
except PackageNotFoundError:  # running from a source tree that was never installed
    __version__ = "0+unknown"
