"""Kernel modules that runs have loaded: the last run that uses one unloads it."""

from __future__ import annotations

from blklab.errors import JournalError
from blklab.linux.journal.file import Entry, read_journal_file
from blklab.linux.journal.state import SUFFIX, journal_directory
from blklab.linux.machine.scheduler_modules import is_loaded, unload_module


def others_with_module(module: str, run_id: str) -> bool:
    """Whether the journal of another run, living or killed, answers for a module that blklab has loaded.

    Args:
        module: The module's name.
        run_id: The run that asks.
    """
    for path in journal_directory().glob(f"*{SUFFIX}"):
        try:
            entries = read_journal_file(path).entries
        except JournalError:
            continue
        released = {entry["of"] for entry in entries if entry.get("kind") == "released"}
        if any(
            entry.get("kind") == "module"
            and entry.get("module") == module
            and entry.get("run") != run_id
            and entry.get("number") not in released
            for entry in entries
        ):
            return True
    return False


def undo_module(entry: Entry) -> tuple[str, bool]:
    """Unloads a module that a run has loaded, unless another run or another program uses it.

    Returns:
        What happened, for people, and whether it was unloaded; an empty text if it is not loaded any more.
    """
    module = str(entry["module"])
    if not is_loaded(module):
        return "", False
    if others_with_module(module, str(entry["run"])):
        return f"the module {module} stays loaded: another run of blklab uses it", False
    if (reason := unload_module(module)) is not None:
        return reason, False
    return f"unloaded the module {module}", True
