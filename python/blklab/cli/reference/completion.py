"""Shell completion by click, with the names that blklab knows of: `names` says which a parameter takes."""

from __future__ import annotations

import os
from typing import Any

import click
from click import shell_completion
from click.shell_completion import CompletionItem, ShellComplete

from blklab.cli import COMPLETION_VARIABLE, command_line
from blklab.cli.reference.names import Values, values_of
from blklab.cli.reference.tree import CommandNode

PROGRAM = "blklab"

_BASH = r"""
%(complete_func)s() {
    local line answer kind value
    COMPREPLY=()
    answer=$(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" %(complete_var)s=bash_complete "$1")
    while IFS=, read -r kind value; do
        if [[ $kind == dir ]]; then
            compopt -o filenames 2>/dev/null
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$value")
        elif [[ $kind == file ]]; then
            compopt -o filenames 2>/dev/null
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$value")
        elif [[ $kind == plain ]]; then
            COMPREPLY+=("$value")
        fi
    done <<<"$answer"
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}

complete -F %(complete_func)s %(prog_name)s
"""  # noqa: E501 - one command


class _Completion(ShellComplete):
    """Offers what `names` knows for a parameter, otherwise what click does."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        flag, equals, value = incomplete.partition("=")
        if equals and flag.startswith("--"):
            items = self.get_completions([*args, flag], value)
            return [CompletionItem(f"{flag}={one.value}", type=one.type, help=one.help) for one in items]
        context = shell_completion._resolve_context(self.cli, self.ctx_args, self.prog_name, args)
        found, incomplete = shell_completion._resolve_incomplete(context, args, incomplete)
        if isinstance(found, click.Parameter):
            path = tuple(context.command_path.split(" ")[1:])
            values = values_of(CommandNode(path, context.command, context), found)
            if values is not None:
                return list(_items(values, incomplete))
        return found.shell_complete(context, incomplete)


def _items(values: Values, incomplete: str) -> list[CompletionItem[Any]]:
    """Values that begin as the typed ones do, with what comes before the last comma of a list."""
    before, comma, last = incomplete.rpartition(",") if values.commas else ("", "", incomplete)
    words = [f"{before}{comma}{word}" for word in values.offered() if word.startswith(last)]
    items: list[CompletionItem[Any]] = [CompletionItem(word) for word in dict.fromkeys(words)]
    if values.files or values.folders:
        items.append(CompletionItem(incomplete, type="file" if values.files else "dir"))
    return items


class _Bash(_Completion, shell_completion.BashComplete):
    source_template = _BASH

    def source(self) -> str:
        # Click asks the bash on the path for its version, which need not be the one that reads the script.
        return ShellComplete.source(self)

    def get_completion_args(self) -> tuple[list[str], str]:
        # Bash splits words at : and =, which are part of ours, so the line is split here anew.
        line = os.environ["COMP_LINE"]
        words = shell_completion.split_arg_string(line)[1:]
        return (words, "") if line[-1:].isspace() else (words[:-1], (words or [""])[-1])

    def format_completion(self, item: CompletionItem[Any]) -> str:
        if item.type != "plain":
            return super().format_completion(item)
        # Bash replaces only what follows the last character at which it splits words.
        _, typed = self.get_completion_args()
        breaks = [typed.rfind(one) for one in ":=@" if one in os.environ.get("COMP_WORDBREAKS", "")]
        return f"plain,{item.value[max(breaks, default=-1) + 1 :]}"


class _Zsh(_Completion, shell_completion.ZshComplete):
    pass


class _Fish(_Completion, shell_completion.FishComplete):
    pass


_SHELLS: dict[str, type[_Completion]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def completion_of(shell: str) -> ShellComplete:
    """Completion in a shell: bash, zsh or fish."""
    return _SHELLS[shell](command_line, {}, PROGRAM, COMPLETION_VARIABLE)


def completion_script(shell: str) -> str:
    """The script that has the shell ask blklab."""
    return completion_of(shell).source()


def complete(instruction: str) -> str:
    """The answer to a shell, one value a line.

    Args:
        instruction: Value of the variable: the shell and ``_complete``.
    """
    shell, _, action = instruction.partition("_")
    return completion_of(shell).complete() if shell in _SHELLS and action == "complete" else ""
