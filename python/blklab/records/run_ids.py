"""Names of runs: their grammar, and the newest in the store, for shell completion.

They are read without SQLAlchemy, which takes a second to import.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from blklab.errors import DataError
from blklab.records.locations import default_store_url

MOST = 50
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,120}")


def is_run_id(text: str) -> bool:
    """Whether a text can name a run, and so files and folders too: one part of a path, in ASCII."""
    return _RUN_ID.fullmatch(text) is not None


def check_run_id(text: str) -> str:
    """The same text.

    Raises:
        DataError: if it cannot be the name of a run: a store that others write to may hold anything.
    """
    if not is_run_id(text):
        raise DataError(
            f"{text!r} cannot be the name of a run",
            hint="names of runs have letters, digits, '_', '.' and '-'; another program wrote this one",
        )
    return text


def recent_run_ids() -> list[str]:
    """The newest runs of the default store, the newest first.

    Empty if that store is no SQLite file, does not exist or cannot be read: completion reports no errors.
    """
    scheme, separator, path = default_store_url().rpartition("sqlite:///")
    if scheme or (not separator and "://" in path) or not Path(path).is_file():
        return []
    statement = "SELECT run_id FROM blklab_experiment ORDER BY created_at DESC, run_id DESC LIMIT ?"
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=0.1)) as connection:
            return [run_id for (run_id,) in connection.execute(statement, (MOST,)) if is_run_id(str(run_id))]
    except sqlite3.Error:
        return []
