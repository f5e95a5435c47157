"""The base's runs are kept: the same kernel, guest program and request are run once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from blklab.backends.workers import GuestRuns
from blklab.guests.boot import Boot
from blklab.guests.guest import GuestImage, GuestResult
from blklab.labs.judgement.kept_runs import KeepingWorkers, runs_folder

BASE, OTHER = "base-id", "other-id"
BOOT = Boot(1 << 27)


class CountingWorkers:
    """Workers that count their guests, and answer with the number."""

    def __init__(self) -> None:
        self.runs = 0
        self.parallel = 2
        self.fails = False
        self.stopped = False

    @contextmanager
    def guests(self, boot: Boot) -> Iterator[GuestRuns]:
        del boot
        yield self

    @contextmanager
    def simulations(self) -> Iterator[Any]:
        yield "simulations"

    def run(
        self,
        image: GuestImage,
        request: Mapping[str, Any],
        texts: Mapping[str, str],
        wanted: tuple[str, ...] = (),
    ) -> GuestResult:
        del image, request, texts, wanted
        self.runs += 1
        answer = {"error": {"message": "refused"}} if self.fails else {"jobs": [self.runs]}
        return GuestResult(answer, None, {}, "")

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GuestImage:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache" / "blklab" / "kernels" / "builds" / BASE).mkdir(parents=True)
    init = tmp_path / "init"
    init.write_text("the program of guests")
    return GuestImage(tmp_path / "linux", BASE, init, {})


def answer(workers: CountingWorkers, image: GuestImage, request: Mapping[str, Any], boot: Boot = BOOT) -> Any:
    with KeepingWorkers(workers, BASE).guests(boot) as guests:
        return guests.run(image, request, {}).answer


def test_a_run_of_the_base_is_made_once(image: GuestImage) -> None:
    workers = CountingWorkers()
    first = answer(workers, image, {"seed": 1})
    assert answer(workers, image, {"seed": 1}) == first
    assert workers.runs == 1


def test_another_request_boot_or_program_is_another_run(image: GuestImage) -> None:
    workers = CountingWorkers()
    answer(workers, image, {"seed": 1})
    answer(workers, image, {"seed": 2})
    answer(workers, image, {"seed": 1}, Boot(1 << 28))
    image.init.write_text("another program")
    answer(workers, image, {"seed": 1})
    assert workers.runs == 4


def test_the_judged_kernel_and_guests_with_files_are_always_run(image: GuestImage) -> None:
    workers = CountingWorkers()
    other = GuestImage(image.kernel, OTHER, image.init, {})
    for _ in range(2):
        answer(workers, other, {"seed": 1})
    with KeepingWorkers(workers, BASE).guests(BOOT) as guests:
        for _ in range(2):
            guests.run(image, {"seed": 1}, {"job.fio": ""})
    assert workers.runs == 4


def test_failures_and_damaged_files_are_run_again(image: GuestImage) -> None:
    workers = CountingWorkers()
    workers.fails = True
    answer(workers, image, {"seed": 1})
    workers.fails = False
    assert answer(workers, image, {"seed": 1}) == {"jobs": [2]}
    (kept,) = (runs_folder() / BASE).iterdir()
    kept.write_text("{")
    assert answer(workers, image, {"seed": 1}) == {"jobs": [3]}


def test_runs_of_a_removed_kernel_are_forgotten(image: GuestImage) -> None:
    gone = runs_folder() / "a-kernel-that-was-removed"
    gone.mkdir(parents=True)
    answer(CountingWorkers(), image, {"seed": 1})
    assert not gone.exists() and (runs_folder() / BASE).exists()


@pytest.mark.usefixtures("image")
def test_all_else_is_the_workers() -> None:
    workers = CountingWorkers()
    keeping = KeepingWorkers(workers, BASE)
    with keeping.simulations() as simulations:
        assert str(simulations) == "simulations"
    with keeping.guests(BOOT) as guests:
        assert guests.parallel == workers.parallel
        guests.stop()
    assert workers.stopped
