"""Ids of stored runs for shell completion, read without SQLAlchemy, which takes a second to import."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from blklab.records.locations import default_store_url

MOST = 50


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
            return [run_id for (run_id,) in connection.execute(statement, (MOST,))]
    except sqlite3.Error:
        return []
