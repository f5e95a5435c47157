"""Executors of the programs that simulate: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager


def add_pool_options(arguments: argparse.ArgumentParser) -> None:
    """Adds ``--jobs`` and ``--cluster``."""
    arguments.add_argument("--jobs", type=int, default=1, help="processes")
    arguments.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="of a Dask scheduler, whose workers do it; all need this folder (PYTHONPATH=benches/verdicts)",
    )


@contextmanager
def pool_of(given: argparse.Namespace) -> Iterator[Executor]:
    """An executor as these options ask for."""
    if given.cluster is None:
        with ProcessPoolExecutor(given.jobs) as processes:
            yield processes
        return
    from distributed import Client  # noqa: PLC0415 - an optional package, slow to load

    with Client(given.cluster, set_as_default=False) as client, client.get_executor(pure=False) as workers:
        yield workers
