"""The image of a Debian for `make test-vm`, and blklab as a package and as a wheel."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Image:
    """A folder that scripts/build-vm-image made."""

    folder: Path
    release: str
    package: Path
    wheel: Path
    session: Path
    """Where this run of the tests keeps its machines."""

    @property
    def root(self) -> Path:
        """The file system of the root."""
        return self.folder / "root.img"

    @property
    def key(self) -> Path:
        """The key for ssh."""
        return self.folder / "key"


def prepared_image() -> Image:
    """The image that `make test-vm` names in the environment; skips the test without one."""
    if "BLKLAB_VM_IMAGE" not in os.environ:
        pytest.skip("`make test-vm` runs this")
    return Image(
        folder=Path(os.environ["BLKLAB_VM_IMAGE"]),
        release=os.environ["BLKLAB_VM_RELEASE"],
        package=Path(os.environ["BLKLAB_VM_PACKAGE"]),
        wheel=Path(os.environ["BLKLAB_VM_WHEEL"]),
        session=Path(os.environ["BLKLAB_VM_SESSION"]),
    )
