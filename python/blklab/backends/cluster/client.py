"""Sends simulations and guests to a Dask cluster, and waits for them."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import blklab
from blklab.backends.cluster.address import nobody_answers, require_answer
from blklab.backends.cluster.contents import ReadFiles
from blklab.backends.workers import STOPPED, GuestRuns, Simulations, SimulatorAnswer
from blklab.errors import BlklabError, MissingToolError, RequirementError, RunFailedError, UsageError
from blklab.guests.boot import Boot
from blklab.guests.guest import GuestImage, GuestResult

if TYPE_CHECKING:
    from distributed import Client, Future

_CONNECT_S = 10
_LOOK_EVERY_S = 2.0
_NO_WORKER_S = 60.0
"""Time without any worker after which a run fails; one that restarts takes seconds."""
_TASKS_OF_A_THREAD = 2
"""One runs and one waits at the worker, so that it need not wait for the way there and back."""
_LOST_FILES = 3
"""Times that the files of a guest are sent again because the workers that held them are gone."""


class Cluster:
    """The workers of a Dask scheduler. Implements `blklab.backends.workers.Workers`.

    Args:
        address: Of the scheduler: ``tcp://host:8786``, ``host:8786`` or what its command printed.
    """

    def __init__(self, address: str) -> None:
        self.address = address

    @contextmanager
    def simulations(self) -> Iterator[Simulations]:
        """Simulations on the workers' threads."""
        with _connected(self.address) as client:
            tasks = _Tasks(client, self.address)
            try:
                yield _SimulationsThere(tasks)
            finally:
                tasks.stop()

    @contextmanager
    def guests(self, boot: Boot) -> Iterator[GuestRuns]:
        """Guests on the workers' threads.

        Raises:
            UsageError: in host time, in which a guest measures the machine that it runs on.
            RequirementError: as for `Workers.guests`.
        """
        if not boot.virtual_time:
            raise UsageError(
                "guests in host time measure the machine that they run on",
                hint="leave --cluster out, or take virtual time (--time virtual)",
            )
        with _connected(self.address) as client:
            tasks = _Tasks(client, self.address)
            try:
                yield _GuestsThere(tasks, boot)
            finally:
                tasks.stop()


class _SimulationsThere:
    def __init__(self, tasks: _Tasks) -> None:
        self.parallel = tasks.parallel
        self._tasks = tasks

    def run(self, request: str) -> SimulatorAnswer:
        from blklab.backends.cluster.tasks import run_simulation  # noqa: PLC0415 - needs distributed

        answer: SimulatorAnswer = self._tasks.result(
            lambda client, key: client.submit(
                run_simulation, blklab.__version__, request, key=key, pure=False
            )
        )
        return answer

    def stop(self) -> None:
        self._tasks.stop()


class _GuestsThere:
    def __init__(self, tasks: _Tasks, boot: Boot) -> None:
        self.parallel = tasks.parallel
        self._tasks = tasks
        self._boot = boot
        self._files = ReadFiles()
        self._sent: dict[str, Future] = {}
        self._mutex = threading.Lock()

    def run(
        self,
        image: GuestImage,
        request: Mapping[str, Any],
        texts: Mapping[str, str],
        wanted: tuple[str, ...] = (),
    ) -> GuestResult:
        from blklab.backends.cluster.tasks import run_guest  # noqa: PLC0415 - needs distributed

        with self._mutex:
            try:
                contents = self._files.image(image)
            except OSError as error:
                raise RequirementError(f"a file of the guest cannot be read: {error}") from error

        def submit(client: Client, key: str) -> Future:
            with self._mutex:
                files = {digest: self._future_of(client, digest) for digest in sorted(contents.digests)}
            return client.submit(
                run_guest,
                blklab.__version__,
                self._boot,
                contents,
                files,
                dict(request),
                dict(texts),
                wanted,
                key=key,
                pure=False,
            )

        result: GuestResult = self._tasks.result(submit)
        return result

    def _future_of(self, client: Client, digest: str) -> Future:
        """The file on the workers, all of which get a copy, so that it outlives any of them."""
        sent = self._sent.get(digest)
        if sent is None or sent.status in ("cancelled", "lost", "error"):
            # A name of its own each time: the scheduler may still be forgetting the former one.
            name = f"blklab-file-{digest[:12]}-{uuid.uuid4()}"
            (sent,) = client.scatter({name: self._files.content(digest)}, broadcast=True).values()
            self._sent[digest] = sent
        return sent

    def stop(self) -> None:
        self._tasks.stop()


class _Tasks:
    """The tasks of one session."""

    def __init__(self, client: Client, address: str) -> None:
        self._client = client
        self._address = address
        self._mutex = threading.Lock()
        self._waiting: set[Future] = set()
        self._stopped = False
        self.parallel = _TASKS_OF_A_THREAD * max(1, sum(client.nthreads().values()))

    def result(self, submit: Callable[[Client, str], Future]) -> Any:
        """Submits a task and waits for what it returns.

        Raises:
            BlklabError: what it was refused with on its worker.
            RunFailedError: if the session was stopped, or the scheduler is gone, or the task fails.
            RequirementError: if no worker is left.
        """
        from blklab.backends.cluster.tasks import Refusal  # noqa: PLC0415 - needs distributed

        for attempt in range(_LOST_FILES):
            try:
                outcome = self._outcome(submit)
            except _ForgottenError as error:
                if attempt + 1 == _LOST_FILES:
                    raise RunFailedError("the cluster lost a task's files again and again") from error
                continue
            except OSError as error:
                raise RunFailedError(
                    f"the Dask scheduler at {self._address} is gone: {_one_line(error)}",
                    hint="start it again; `blklab compare --resume latest` continues a comparison",
                ) from error
            if isinstance(outcome, Refusal):
                raise outcome.error
            return outcome
        raise AssertionError("unreachable")

    def stop(self) -> None:
        """Cancels all tasks; workers notice, and end what they run."""
        with self._mutex:
            self._stopped = True
            waiting = list(self._waiting)
        if waiting:
            with suppress(Exception):  # the scheduler may be gone, and then so are the tasks
                self._client.cancel(waiting, force=True)

    def _outcome(self, submit: Callable[[Client, str], Future]) -> Any:
        future = self._submitted(submit)
        try:
            return self._awaited(future)
        finally:
            with self._mutex:
                self._waiting.discard(future)
            future.release()

    def _submitted(self, submit: Callable[[Client, str], Future]) -> Future:
        if self._stopped:
            raise RunFailedError(STOPPED)
        future = submit(self._client, f"blklab-{uuid.uuid4()}")
        with self._mutex:
            self._waiting.add(future)
        return future

    def _awaited(self, future: Future) -> Any:
        ended = threading.Event()
        future.add_done_callback(lambda _: ended.set())
        seen_s = time.monotonic()
        while not ended.wait(_LOOK_EVERY_S):
            if self._stopped:
                raise RunFailedError(STOPPED)
            if self._client.nthreads():
                seen_s = time.monotonic()
            elif time.monotonic() - seen_s > _NO_WORKER_S:
                raise RequirementError(
                    "the cluster has no worker left", hint="start one: dask worker ADDRESS"
                )
        try:
            return future.result()
        except (CancelledError, asyncio.CancelledError) as error:
            if self._stopped:
                raise RunFailedError(STOPPED) from None
            raise _ForgottenError from error
        except (BlklabError, OSError):  # a signal that arrived in this thread; the scheduler is gone
            raise
        except Exception as error:
            raise RunFailedError(f"a worker of the cluster failed: {_one_line(error)}") from error


class _ForgottenError(Exception):
    """The cluster has forgotten a task, as it does when files that the task needs are gone."""


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    try:
        from distributed import Client  # noqa: PLC0415 - an optional package, slow to load
    except ImportError as error:
        raise MissingToolError(
            "a cluster needs the Python package distributed, which is not installed",
            hint="pip install 'blklab[cluster]'",
        ) from error
    require_answer(address)
    client = Client.__new__(Client)
    try:
        client.__init__(address, timeout=_CONNECT_S, set_as_default=False, name="blklab")
    except BaseException as error:
        # Its finaliser would wait for connections that were never made, and print what it then finds.
        client.status = "closed"
        if isinstance(error, (OSError, ValueError, TypeError)):
            raise nobody_answers(address, _one_line(error)) from error
        raise
    try:
        _check_workers(client, address)
        yield client
    finally:
        with suppress(OSError, TimeoutError):  # the scheduler is gone
            client.close(timeout=_CONNECT_S)


def _check_workers(client: Client, address: str) -> None:
    from blklab.backends.cluster.tasks import version  # noqa: PLC0415 - needs distributed

    try:
        client.wait_for_workers(1, timeout=_CONNECT_S)
    except TimeoutError:
        raise RequirementError(
            f"the Dask scheduler at {address} has no workers", hint=f"start one: dask worker {address}"
        ) from None
    try:
        client.run_on_scheduler(version)  # which reads every task before a worker gets it
    except Exception as error:
        raise RequirementError(
            f"the Dask scheduler at {address} cannot load blklab: {_one_line(error)}",
            hint=f"install blklab {blklab.__version__} with its cluster extra where it runs",
        ) from error
    for worker, found in client.run(version, on_error="return").items():
        if isinstance(found, ModuleNotFoundError):
            raise RequirementError(
                f"the worker {worker} has no blklab: {found}",
                hint=f"install blklab {blklab.__version__} with its cluster extra where workers run",
            )
        if isinstance(found, BaseException):
            raise RequirementError(f"the worker {worker} cannot run blklab: {_one_line(found)}")
        if found != blklab.__version__:
            raise RequirementError(
                f"the worker {worker} has blklab {found}, this machine has {blklab.__version__}",
                hint="only the same version gives the same bits; install one everywhere",
            )


def _one_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__
