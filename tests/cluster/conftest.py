"""A real Dask scheduler with real workers, as processes of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from waiting import wait_until


class DaskCluster:
    """A scheduler on a free port; `start_worker` adds workers of one thread each."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._environment = os.environ | dict(environment or {})
        self.workers: list[subprocess.Popen[bytes]] = []
        found = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(found)
        )
        wait_until(lambda: _address(found), "a scheduler", process=self.scheduler)
        self.address = _address(found)

    def start_worker(self, *options: str) -> subprocess.Popen[bytes]:
        """Starts a worker, which joins some time later."""
        name = f"worker-{len(self.workers)}"
        worker = self._start(
            "worker", self.address, "--nthreads", "1", "--no-nanny", "--name", name,
            "--local-directory", str(self._folder / name), *options,
        )  # fmt: skip
        self.workers.append(worker)
        return worker

    def _start(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard", *options]
        number = len(self.workers) if kind == "worker" else 0
        with (self._folder / f"{kind}-{number}.log").open("wb") as log:
            return subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self._folder,
                env=self._environment,
            )

    def end(self) -> None:
        """Kills all processes."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


def _address(found: Path) -> str:
    try:
        return str(json.loads(found.read_text())["address"])
    except (OSError, ValueError):
        return ""


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[DaskCluster]:
    """A scheduler without workers."""
    cluster = DaskCluster(tmp_path)
    try:
        yield cluster
    finally:
        cluster.end()


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """A cluster of two workers that tests of a module share."""
    cluster = DaskCluster(tmp_path_factory.mktemp("dask"))
    try:
        for _ in range(2):
            cluster.start_worker()
        yield cluster
    finally:
        cluster.end()
