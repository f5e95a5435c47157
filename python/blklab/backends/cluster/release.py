"""Tells a running task that nobody waits for it any more.

Dask cannot end a task that runs on a thread. It forgets it, whether the client released it (Ctrl-C), ended or
lost its connection, and drops the result. So each task watches its own entry in the worker's state machine
(`distributed.worker_state_machine.WorkerState.tasks`, distributed 2022.6 and later).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from distributed import get_worker

_LOOK_EVERY_S = 0.2


def released() -> Callable[[], bool]:
    """A function that tells whether the task of the calling thread has been released."""
    worker = get_worker()
    key = worker.get_current_task()

    def look() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state in ("cancelled", "released")

    return look


@contextmanager
def on_release(end: Callable[[], None]) -> Iterator[None]:
    """Calls `end` on another thread if the task of the calling thread is released meanwhile."""
    look = released()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_EVERY_S):
            if look():
                end()
                return

    thread = threading.Thread(target=watch, name="blklab release", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
