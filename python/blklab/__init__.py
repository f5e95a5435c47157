"""blklab: which Linux I/O scheduler, for this disk and this work, and how sure are we?"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("blklab")
except PackageNotFoundError:  # running from a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
