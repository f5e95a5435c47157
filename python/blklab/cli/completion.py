"""`blklab completion`: scripts that let a shell complete blklab's commands, flags and names."""

from __future__ import annotations

from importlib import import_module

import click

from blklab.cli.commands import described_command
from blklab.cli.output import print_document

SHELLS = ("bash", "zsh", "fish")


@described_command(
    name="completion",
    examples=(
        ("for this shell, bash", 'eval "$(blklab completion bash)"'),
        ("zsh, in ~/.zshrc after compinit", 'eval "$(blklab completion zsh)"'),
        ("fish, in config.fish", "blklab completion fish | source"),
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(*, shell: str) -> None:
    """Print the completion script for bash, zsh or fish.

    Installing blklab as a package puts these scripts in place. To use one without that:

    \b
      bash   eval "$(blklab completion bash)"          (in ~/.bashrc)
      zsh    eval "$(blklab completion zsh)"           (in ~/.zshrc, after compinit)
      fish   blklab completion fish | source           (in ~/.config/fish/config.fish)
    """  # noqa: D301 - click takes the backspace for a paragraph whose lines stay
    print_document(import_module("blklab.cli.reference.completion").completion_script(shell))
