"""Files that a package installs beside the program: man pages and completion scripts."""

from __future__ import annotations

from pathlib import Path

from blklab.cli.reference.completion import completion_script
from blklab.cli.reference.manual import manual_pages


def shared_files() -> dict[str, str]:
    """Texts by their path below ``share``."""
    return {
        **{f"man/man1/{name}": text for name, text in manual_pages().items()},
        "bash-completion/completions/blklab": completion_script("bash"),
        "zsh/site-functions/_blklab": completion_script("zsh"),
        "fish/vendor_completions.d/blklab.fish": completion_script("fish"),
    }


def write_shared_files(share: Path) -> None:
    """Writes all of them below a folder ``share``."""
    for name, text in shared_files().items():
        path = share / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
