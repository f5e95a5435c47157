"""Writes the man pages: ``python -m blklab.cli.reference.manual FOLDER``.

One page a command, ``blklab.1``, ``blklab-compare.1`` …, from the commands themselves.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from pathlib import Path

import click

import blklab
from blklab.cli import EXIT_MEANINGS
from blklab.cli.commands import CommandHelp, parameters_by_heading
from blklab.cli.reference.roff import bold, definition, escaped, heading, italic, paragraph
from blklab.cli.reference.tree import CommandNode, all_commands, metavar_of, spellings_of
from blklab.records.locations import STORE_VARIABLE
from blklab.spec.experiment import OPTIONS
from blklab.spec.options import Use

_ENVIRONMENT = {
    STORE_VARIABLE: "Database of runs, a file or a URL, where --store is not given.",
    "BLKLAB_DEBUG": "Show the traceback of a defect.",
    "NO_COLOR": "No colours.",
    "XDG_DATA_HOME": "Folder of stored runs and reports; default ~/.local/share.",
    "XDG_CACHE_HOME": "Folder of guest kernels; default ~/.cache.",
}


def manual_pages() -> dict[str, str]:
    """All man pages by file name."""
    return {f"{_page_name(node)}.1": _page(node) for node in all_commands()}


def write_manual(folder: Path) -> list[Path]:
    """Writes all man pages and gives their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in manual_pages().items():
        paths.append(folder / name)
        paths[-1].write_text(text, encoding="utf-8")
    return paths


def _page_name(node: CommandNode) -> str:
    return "-".join(("blklab", *node.path))


def _page(node: CommandNode) -> str:
    name = _page_name(node)
    summary, *details = _help_paragraphs(node.command)
    parts = [
        '.\\" Generated from the commands by blklab.cli.reference.manual.\n',
        f'.TH "{name.upper()}" "1" "" "blklab {blklab.__version__}" "blklab manual"\n',
        heading("NAME"),
        f"{escaped(name)} \\- {escaped(summary.rstrip('.'))}\n",
        heading("SYNOPSIS"),
        _synopsis(node),
        heading("DESCRIPTION"),
        *(paragraph(escaped(text), first=number == 0) for number, text in enumerate(details or [summary])),
    ]
    if node.subcommands:
        parts.append(heading("COMMANDS"))
        parts += [
            definition(bold(f"{node.usage} {command}"), escaped(text))
            for command, text in node.subcommands.items()
        ]
    parts += _options(node)
    if node.path == ("compare",):
        parts += _description_keys()
    if isinstance(node.command, CommandHelp) and node.command.examples:
        parts.append(heading("EXAMPLES"))
        parts += [definition(bold(one.command), escaped(one.purpose)) for one in node.command.examples]
    if node.path and node.command.epilog:
        parts += [heading("NOTES"), paragraph(escaped(node.command.epilog), first=True)]
    if not node.path:
        parts.append(heading("ENVIRONMENT"))
        parts += [definition(bold(name), escaped(text)) for name, text in _ENVIRONMENT.items()]
    parts.append(heading("EXIT STATUS"))
    parts += [
        definition(bold(str(code.value)), f"{text.capitalize()}.") for code, text in EXIT_MEANINGS.items()
    ]
    parts.append(definition(bold("128+N"), "Ended by signal N."))
    return "".join([*parts, heading("SEE ALSO"), paragraph(_related(node), first=True)])


def _help_paragraphs(command: click.Command) -> list[str]:
    """The paragraphs of a command's help; line breaks stay only where click keeps them."""
    text = inspect.cleandoc(command.help or "")
    parts = [part for part in text.split("\n\n") if part.strip()]
    return [part if part.startswith("\b") else " ".join(part.split()) for part in parts]


def _synopsis(node: CommandNode) -> str:
    usage = [bold(node.usage)]
    if node.flags:
        usage.append(f"[{italic('OPTION')}]...")
    if node.subcommands:
        usage += [italic("COMMAND"), f"[{italic('ARGUMENT')}]..."]
    usage += [italic(metavar_of(one, node.context)) for one in node.arguments]
    return " ".join(usage) + "\n"


def _options(node: CommandNode) -> Iterable[str]:
    yield heading("OPTIONS")
    by_topic = parameters_by_heading(node.command, node.context)
    for topic, parameters in by_topic.items():
        flags = [one for one in parameters if isinstance(one, click.Option) and not one.hidden]
        if flags and len(by_topic) > 1:
            yield heading(topic, level=2)
        for flag in flags:
            yield definition(_spelled(flag, node), escaped(_flag_help(flag)))


def _spelled(flag: click.Option, node: CommandNode) -> str:
    metavar = metavar_of(flag, node.context)
    spellings = ", ".join(bold(one) for one in spellings_of(flag))
    return f"{spellings} {italic(metavar)}" if metavar else spellings


def _flag_help(flag: click.Option) -> str:
    text = flag.help or ""
    default = f" Default: {flag.default}." if flag.show_default and flag.default is not None else ""
    return text + default


def _description_keys() -> Iterable[str]:
    yield heading("EXPERIMENT FILES")
    yield paragraph(
        f"The file of {bold('--spec')} is TOML. Each key means what the flag of the same name means; "
        "a flag wins over the file.",
        first=True,
    )
    for option in OPTIONS:
        key = f"{option.singular}, {option.key}" if option.singular else option.key
        flag = "" if option.positional else f" ({bold(option.flag)})"
        kind = "true or false" if option.form.use is Use.SWITCH else italic(option.shown_metavar)
        yield definition(f"{bold(key)} = {kind}{flag}", escaped(option.help))


def _related(node: CommandNode) -> str:
    names = [_page_name(child) for child in node.children]
    if node.path:
        names.append("-".join(("blklab", *node.path[:-1])))
    return ", ".join(f"{bold(name)}(1)" for name in names)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m blklab.cli.reference.manual FOLDER")
    write_manual(Path(sys.argv[1]))
