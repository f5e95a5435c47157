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
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@click.option("--names", type=click.Choice(["runs", "kernels"]), hidden=True)
def command(*, shell: str | None, names: str | None) -> None:
    """Print the completion script for bash, zsh or fish.

    Installing blklab as a package puts these scripts in place. To use one without that:

    \b
      bash   eval "$(blklab completion bash)"          (in ~/.bashrc)
      zsh    eval "$(blklab completion zsh)"           (in ~/.zshrc, after compinit)
      fish   blklab completion fish | source           (in ~/.config/fish/config.fish)
    """  # noqa: D301 - click takes the backspace for a paragraph whose lines stay
    if names is not None:
        lookups = import_module("blklab.cli.reference.current_names").LOOKUPS
        print_document("\n".join(lookups[names]()))
        return
    if shell is None:
        raise click.UsageError("name a shell: bash, zsh or fish")
    print_document(import_module(f"blklab.cli.reference.completion.{shell}").script())
