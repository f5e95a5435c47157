"""The cache of modules, a directory in the XDG cache, laid out and locked as that of guest kernels.

::

    builds/ID/            one module: its file, module.json, build.log, changes/; never changes
    names/RELEASE/NAME    link to a build for that kernel
    sources/ID/           the block layer's files of an archive
    gates/                results of the gate before the host
    archives/             archives of sources that were downloaded
    work/                 builds under way
    building.lock         held while a module is being built
"""

from __future__ import annotations

from pathlib import Path

from blklab.guests.kernels.cache import cache_folder


def module_cache() -> Path:
    """The folder of modules and what they are built from."""
    return cache_folder("modules")
