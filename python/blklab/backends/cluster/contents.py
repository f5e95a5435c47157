"""Files by content: read here, sent once, and written on each worker under their digest."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from blklab.guests.guest import GuestImage

_PROGRAM = 0o500


@dataclass(frozen=True)
class ImageContents:
    """A guest's image, its files named by their SHA-256."""

    kernel: str
    kernel_id: str
    init: str
    programs: Mapping[str, str]
    """By path in the guest."""
    parameters: tuple[str, ...]

    @property
    def digests(self) -> set[str]:
        """Of all files."""
        return {self.kernel, self.init, *self.programs.values()}

    def written(self, files: Mapping[str, bytes], folder: Path) -> GuestImage:
        """The image, after writing the files that `folder` lacks.

        Args:
            files: Contents, by digest.
            folder: Keeps them for the next task; several tasks may write there at once.
        """
        paths = {digest: _written(content, digest, folder) for digest, content in files.items()}
        programs = {name: paths[digest] for name, digest in self.programs.items()}
        return GuestImage(paths[self.kernel], self.kernel_id, paths[self.init], programs, self.parameters)


class ReadFiles:
    """Files that have been read, each once."""

    def __init__(self) -> None:
        self._digests: dict[Path, str] = {}
        self._contents: dict[str, bytes] = {}

    def image(self, image: GuestImage) -> ImageContents:
        """Reads an image's files.

        Raises:
            OSError: if one cannot be read.
        """
        return ImageContents(
            kernel=self._read(image.kernel),
            kernel_id=image.kernel_id,
            init=self._read(image.init),
            programs={name: self._read(path) for name, path in image.programs.items()},
            parameters=tuple(image.parameters),
        )

    def content(self, digest: str) -> bytes:
        """The content of a file that has been read."""
        return self._contents[digest]

    def _read(self, path: Path) -> str:
        if path not in self._digests:
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            self._contents[digest] = content
            self._digests[path] = digest
        return self._digests[path]


def _written(content: bytes, digest: str, folder: Path) -> Path:
    path = folder / digest
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(name).chmod(_PROGRAM)
    Path(name).replace(path)
    return path
