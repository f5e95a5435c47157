"""A note on what an experiment that did not end has left in the store."""

from __future__ import annotations

from blklab.errors import BlklabError, InterruptedRunError
from blklab.quantities.formatting import count_of
from blklab.records.store import Store
from blklab.report.terminal import print_note


def say_what_is_kept(store: Store, run_id: str | None, error: BlklabError | InterruptedRunError) -> None:
    """After a failure or a signal: names the stored run, and the command that continues it.

    Args:
        store: The store.
        run_id: The experiment's name; None if it has not begun.
        error: What ended it.
    """
    if run_id is None:
        return
    kept = len(store.load(run_id).samples)
    print_note(f"{count_of(kept, 'run')} kept as {run_id}")
    if isinstance(error, InterruptedRunError):
        print_note(f"continue with: blklab compare --resume {run_id}")
        if kept:
            print_note(f"what is known so far: blklab report {run_id}")
