"""Simulations on the workers of a cluster: the same bits, whatever happens to workers and clients."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, Worker

import blklab
from blklab.backends import THIS_MACHINE, Workers
from blklab.backends.cluster import address, client
from blklab.backends.cluster.client import Cluster
from blklab.cli import run
from blklab.errors import BlklabError, JobFileError, RequirementError, RunFailedError, UsageError
from blklab.experiment.blocks import NullRunObserver
from blklab.experiment.pipeline import compare
from blklab.records.store import Store
from blklab.spec.request import SpecValues, build_specs
from command_runs import json_of
from waiting import wait_until

from .conftest import DaskCluster

JOB = "[reader]\nrw=randread\nbs=4k\ndirect=1\nsize=64m\ntime_based\nruntime=20s\n"
ENDLESS = "[reader]\nrw=randread\nbs=4k\ndirect=1\nsize=64m\ntime_based\nruntime=1000000s\n"


def request_of(job: str, seed: int = 1) -> str:
    return json.dumps(
        {
            "device": {"kind": "fixed", "profile": None, "source": "fixed", "parameters": {}},
            "scheduler": "none",
            "tunables": {},
            "queue": {},
            "cgroups": {},
            "jobs": {"text": job, "source": "reader.fio"},
            "runtime_ns": None,
            "seed": seed,
            "arrangement": None,
            "processors": None,
            "limits": {"events": None, "simulated_ns": None},
            "timeline": False,
        }
    )


def busy(cluster: DaskCluster) -> int:
    """The number of tasks that the workers run now."""

    def executing(dask_worker: Worker) -> int:
        tasks = dask_worker.state.tasks.values()
        return sum(task.state in ("executing", "cancelled") for task in tasks)

    with Client(cluster.address, set_as_default=False) as client:
        return sum(int(number) for number in client.run(executing).values())


def samples_of(workers: Workers) -> list[Any]:
    values = SpecValues(
        targets=["sim:hdd-7200"],
        schedulers=["mq-deadline,bfq"],
        workloads=["many-readers", "random-read-4k-qd32"],
        blocks=2,
        runtime="500ms",
    )
    with Store.opened("sqlite://") as store:
        record = compare(build_specs(values)[0], store, NullRunObserver(), workers=workers)
    assert all(sample.status == "ok" for sample in record.samples)
    return [(sample.cell, sample.jobs, sample.settings, sample.engine) for sample in record.samples]


def test_a_comparison_has_the_same_samples_as_here(two_workers: DaskCluster) -> None:
    assert samples_of(Cluster(two_workers.address)) == samples_of(THIS_MACHINE)


def test_a_comparison_in_python(two_workers: DaskCluster) -> None:
    asked: dict[str, Any] = {"schedulers": ["none", "bfq"], "workloads": ["many-readers"]}
    asked |= {"blocks": 2, "runtime": "200ms"}
    there = blklab.compare("sim:hdd-7200", cluster=two_workers.address, **asked)
    here = blklab.compare("sim:hdd-7200", **asked)
    assert [one.jobs for one in there.record.samples] == [one.jobs for one in here.record.samples]
    with pytest.raises(UsageError, match="a cluster runs models"):
        blklab.compare("/", cluster=two_workers.address, **asked)


def test_a_tuning_searches_on_the_cluster(
    two_workers: DaskCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: tuple[str, ...] = (
        "tune",
        "sim:hdd-7200",
        "-w",
        "random-read-4k-qd32",
        "--trials",
        "8",
        "--blocks",
        "2",
    )
    asked += ("--runtime", "200ms", "--vary", "nr_requests", "-s", "mq-deadline")
    there = json_of(capsys, *asked, "--cluster", two_workers.address)
    here = json_of(capsys, *asked)
    for document in (here, there):
        document.pop("confirmation", None)
        document.pop("recommendation", None)
    assert there == here


def test_a_refusal_comes_back_as_the_error_that_it_is(two_workers: DaskCluster) -> None:
    with Cluster(two_workers.address).simulations() as simulations:
        assert simulations.parallel == 4
        with pytest.raises(JobFileError):
            simulations.run(request_of("[reader]\nrw=sideways\n"))
        simulations.run(request_of(JOB))


def test_what_a_killed_worker_ran_runs_elsewhere(dask: DaskCluster) -> None:
    first = dask.start_worker()
    found: list[Any] = []
    with Cluster(dask.address).simulations() as simulations:
        thread = threading.Thread(target=lambda: found.append(simulations.run(request_of(ENDLESS_TWICE))))
        thread.start()
        wait_until(lambda: busy(dask), "the first worker to begin", process=first)
        first.kill()
        dask.start_worker()
        thread.join()
    assert json.loads(found[0][0])["jobs"]


ENDLESS_TWICE = JOB.replace("20s", "2000s")
"""Some seconds of work."""


def test_stopping_ends_the_work_of_workers(two_workers: DaskCluster) -> None:
    errors: list[BlklabError] = []
    with Cluster(two_workers.address).simulations() as simulations:

        def asked() -> None:
            try:
                simulations.run(request_of(ENDLESS))
            except BlklabError as error:
                errors.append(error)

        threads = [threading.Thread(target=asked) for _ in range(5)]
        for thread in threads:
            thread.start()
        wait_until(lambda: busy(two_workers) == 2, "both workers to begin")
        simulations.stop()
        for thread in threads:
            thread.join()
        with pytest.raises(RunFailedError, match="stopped"):
            simulations.run(request_of(JOB))
    assert len(errors) == 5
    assert all(isinstance(error, RunFailedError) and "stopped" in error.message for error in errors)
    wait_until(lambda: busy(two_workers) == 0, "the workers to notice")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_workers_give_up_what_a_client_that_is_gone_has_asked_for(
    two_workers: DaskCluster, tmp_path: Path, number: signal.Signals
) -> None:
    job = tmp_path / "endless.fio"
    job.write_text(ENDLESS)
    command = [sys.executable, "-m", "blklab", "compare", "sim:fixed", "-s", "none,bfq", "-w", str(job)]
    command += ["--blocks", "1", "--cluster", two_workers.address, "--store", str(tmp_path / "runs.db")]
    client = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: busy(two_workers) == 2, "both workers to begin", process=client)
        client.send_signal(number)
        _, printed = client.communicate()
        assert client.returncode == (130 if number == signal.SIGINT else -number), printed.decode()
        wait_until(lambda: busy(two_workers) == 0, "the workers to notice")
    finally:
        client.kill()


def test_a_scheduler_that_dies(dask: DaskCluster) -> None:
    dask.start_worker()
    errors: list[BlklabError] = []
    with Cluster(dask.address).simulations() as simulations:

        def asked() -> None:
            try:
                simulations.run(request_of(ENDLESS))
            except BlklabError as error:
                errors.append(error)

        thread = threading.Thread(target=asked)
        thread.start()
        wait_until(lambda: busy(dask) == 1, "the worker to begin")
        dask.scheduler.kill()
        thread.join()
    assert isinstance(errors[0], RunFailedError)
    assert dask.address in errors[0].message


def test_a_scheduler_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "sim:fixed", "-w", "many-readers", "--cluster", "tcp://127.0.0.1:1"]) == 3
    printed = capsys.readouterr().err
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in printed
    assert "dask scheduler" in printed


@pytest.mark.parametrize(
    "named", ["no://such", "nope", "nope:x", "tcp://:8786", "tcp://nope.invalid:8786", "tcp://[::1:8786"]
)
def test_an_address_that_is_none(named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "sim:fixed", "-w", "many-readers", "--cluster", named]) == 3
    assert f"no Dask scheduler answers at {named}: " in capsys.readouterr().err


def test_a_program_at_the_address_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "_CONNECT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(RequirementError, match=f"no Dask scheduler answers at {place}"):
            Cluster(place).simulations().__enter__()


def test_a_client_that_fails_neither_waits_nor_complains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask would wait for 20 s in a finaliser and print its exception."""
    monkeypatch.setattr(client, "require_answer", lambda _: None)
    dropped: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)
    with pytest.raises(RequirementError, match="no Dask scheduler answers at nope"):
        Cluster("nope").simulations().__enter__()
    gc.collect()
    assert dropped == []


def test_a_scheduler_without_workers(dask: DaskCluster) -> None:
    with pytest.raises(RequirementError, match="has no workers"), Cluster(dask.address).simulations():
        pass


def test_a_worker_of_another_version(dask: DaskCluster, tmp_path: Path) -> None:
    preload = tmp_path / "older.py"
    preload.write_text("import blklab\nblklab.__version__ = '0.0.1'\n")
    dask.start_worker("--preload", str(preload))
    with pytest.raises(RequirementError, match=r"has blklab 0\.0\.1"), Cluster(dask.address).simulations():
        pass


def test_a_worker_of_another_version_that_joins_later(dask: DaskCluster, tmp_path: Path) -> None:
    preload = tmp_path / "older.py"
    preload.write_text("import blklab\nblklab.__version__ = '0.0.1'\n")
    first = dask.start_worker()
    with Cluster(dask.address).simulations() as simulations:
        simulations.run(request_of(JOB))
        dask.start_worker("--preload", str(preload))
        first.kill()
        with pytest.raises(RequirementError, match=r"has blklab 0\.0\.1"):
            simulations.run(request_of(JOB))


def test_a_scheduler_without_blklab(tmp_path: Path) -> None:
    (tmp_path / "blklab").mkdir()
    (tmp_path / "blklab" / "__init__.py").write_text("raise ImportError('not here')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    cluster = DaskCluster(tmp_path, {"PYTHONPATH": path})
    try:
        cluster.start_worker()
        with (
            pytest.raises(RequirementError, match="cannot load blklab"),
            Cluster(cluster.address).simulations(),
        ):
            pass
    finally:
        cluster.end()


def test_disks_of_this_machine_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["compare", str(tmp_path), "-w", "many-readers", "--cluster", "localhost:8786"]
    assert run(asked) == 2
    assert "a cluster runs models" in capsys.readouterr().err
    assert run(["study", "run", "hdparm-four-schedulers", "--on", "host", "--cluster", "localhost:8786"]) == 2
    assert "--cluster cannot be combined with --on host" in capsys.readouterr().err


def test_without_dask_the_package_to_install_is_named(tmp_path: Path) -> None:
    (tmp_path / "distributed.py").write_text("raise ImportError('not here')\n")
    command = [
        sys.executable,
        "-m",
        "blklab",
        "compare",
        "sim:fixed",
        "-w",
        "many-readers",
        "--cluster",
        "a:1",
    ]
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 3
    assert "pip install 'blklab[cluster]'" in ended.stderr
