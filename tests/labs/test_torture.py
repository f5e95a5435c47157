"""Torturing schedulers in guests: what a seed decides, what is a mistake, and that planted ones are found."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from blklab.backends import Workers
from blklab.cli import run
from blklab.errors import BlklabError, ExitCode, RunFailedError, UnknownNameError, UsageError
from blklab.guests.boot import Boot
from blklab.guests.guest import GuestImage, GuestResult
from blklab.guests.kernels.compilation import SilentBuildObserver
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.guests.kernels.store import find
from blklab.labs.torture import torture as torture_module
from blklab.labs.torture.building import build_with_checks
from blklab.labs.torture.document import MistakePart
from blklab.labs.torture.faults import NO_FAULTS, Faults, draw_faults
from blklab.labs.torture.seeds import draw_load
from blklab.labs.torture.torture import TortureRequest, torture

PLANTED = Path(__file__).parents[1] / "torture" / "planted-mistakes.patch"

MISTAKES = {
    1: "a lost request",
    2: "a request that is completed twice",
    3: "memory that is used after it was freed",
    4: "a missed wake-up",
    5: "starvation",
    6: "locks taken in two orders",
    7: "a merge of requests that are not neighbours",
    8: "a request that is never given back",
    9: "a flush that is swallowed",
    10: "a sleep while a spinlock is held",
}
"""By number, as in the patch; 4 is kyber's, 9 of the flush machinery, the others are mq-deadline's."""

_COUNTS = dict.fromkeys(("reads", "writes", "syncs", "switches", "failed", "longest_idle_ns", "digest"), 1)


@pytest.fixture(scope="module")
def stock() -> KernelBuild:
    try:
        return find("stock")
    except UnknownNameError:
        pytest.skip("there is no guest kernel (scripts/build-guest-kernels)")


def test_a_seed_decides_the_faults() -> None:
    drawn = [draw_faults(seed) for seed in range(200)]
    assert drawn == [draw_faults(seed) for seed in range(200)]
    assert {faults.requeue_every for faults in drawn} == {None, 7, 23, 101}
    assert {faults.timeout_every for faults in drawn} == {None, 211}
    assert Faults(7, None).parameters() == ("null_blk.requeue=7,100,0,-1",)
    assert Faults(None, None).parameters() == ()
    # A disk that hands requests back would wake the scheduler up.
    assert {draw_faults(seed) for seed in range(3, 200, 8)} == {NO_FAULTS}


def test_of_sixteen_seeds_one_has_nothing_that_excuses_starvation() -> None:
    """Neither failing requests nor I/O priorities: a lower class may have to wait for a higher one."""
    loads = [draw_load(seed) for seed in range(16)]
    assert [loads.count(load) for load in ("mixed", "long", "equals", "bursts")] == [12, 1, 1, 2]
    equals = [seed for seed in range(200) if draw_load(seed) == "equals"]
    assert equals[0] == 7
    assert {draw_faults(seed) for seed in equals} == {NO_FAULTS}


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"torture": {}}, None),
        ({"error": {"kind": "corruption", "message": "block 3 holds zeros"}}, "corruption"),
        ({"error": {"kind": "idle", "message": "55 requests waited"}}, "idle"),
        ({"error": {"kind": "died", "message": "killed by signal 11"}}, "crash"),
    ],
)
def test_mistakes_of_the_kernel_are_told_apart(answer: Mapping[str, Any], kind: str | None) -> None:
    found = torture_module._mistake_of(GuestResult(dict(answer), None, {}, ""))
    assert (found and found[0]) == kind


def test_a_guest_that_ends_or_hangs_is_a_mistake() -> None:
    for error, kind in (("the guest's kernel panicked: x", "crash"), ("the guest hangs: no sign", "hang")):
        found = torture_module._mistake_of(GuestResult(None, error, {}, ""))
        assert found == (kind, error)


def test_a_torture_that_cannot_be_prepared_is_no_mistake_of_the_scheduler() -> None:
    answer = {"error": {"kind": "guest_kernel", "message": "selecting x: no", "field": None, "line": None}}
    with pytest.raises(BlklabError, match="selecting x") as caught:
        torture_module._mistake_of(GuestResult(answer, None, {}, ""))
    assert isinstance(caught.value, RunFailedError)


def test_wrong_requests_are_refused(stock: KernelBuild) -> None:
    with pytest.raises(UsageError, match="one seed at least"):
        torture(TortureRequest("stock", seeds=0))
    with pytest.raises(UnknownNameError):
        torture(TortureRequest("no-such-kernel"))
    with pytest.raises(UnknownNameError, match="kybr"):
        torture(TortureRequest(stock.name, ("kybr",)))


def test_the_same_seeds_give_the_same_bytes(stock: KernelBuild, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["kernel", "torture", "stock", "-s", "kyber", "-s", "bfq", "--seeds", "2"]
    printed = []
    for _ in range(2):
        assert run([*arguments, "--json", "-", "--quiet"]) == ExitCode.OK
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    document = json.loads(printed[0])
    assert document["schema"] == "blklab.torture/1"
    assert [(part["scheduler"], part["seeds"]) for part in document["schedulers"]] == [
        ("kyber", 2),
        ("bfq", 2),
    ]
    assert all(part["ios"] > 100 and part["switches"] > 0 for part in document["schedulers"])
    assert run([*arguments, "--quiet"]) == ExitCode.OK
    assert "kyber: no mistake in 2 runs" in capsys.readouterr().out


class _FourGuests:
    """Workers whose guests are not needed."""

    parallel = 4

    @contextmanager
    def guests(self, boot: Boot) -> Iterator[_FourGuests]:
        yield self

    def stop(self) -> None:
        pass


def test_the_first_mistake_is_that_of_the_lowest_seed(
    stock: KernelBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever guest ends first: the document does not depend on this machine's load."""
    later_ended = threading.Event()

    def ended(
        _request: TortureRequest, _kernel: KernelBuild, _guests: object, scheduler: str, seed: int
    ) -> torture_module._Ended:
        if seed == 2:
            assert later_ended.wait(30)
        if seed == 4:
            later_ended.set()
        if seed < 2:
            return torture_module._Ended(scheduler, seed, _COUNTS, None)
        mistake = MistakePart(scheduler=scheduler, seed=seed, kind="stuck", message="a read")
        return torture_module._Ended(scheduler, seed, None, mistake)

    monkeypatch.setattr(torture_module, "_run", ended)
    document = torture(TortureRequest("stock", ("kyber",)), workers=cast("Workers", _FourGuests()))
    assert [mistake.seed for mistake in document.mistakes] == [2]
    assert document.schedulers[0].seeds == 2


def test_mq_deadline_idles_only_because_its_expiries_were_lowered(stock: KernelBuild) -> None:
    """Seed 7 is a long run: started_after() of block/mq-deadline.c holds requests back for 2.27 s."""
    document = torture(TortureRequest("stock", ("mq-deadline",), first_seed=7, seeds=1))
    assert not document.mistakes
    assert document.schedulers[0].longest_idle_ns > 1_000_000_000


def test_an_io_waits_from_its_own_submission_on(stock: KernelBuild) -> None:
    """Seed 63 lowers `async_depth`, so that each of 160 writes waits for the one before it to end."""
    document = torture(TortureRequest("stock", ("mq-deadline",), first_seed=63, seeds=1))
    assert not document.mistakes
    assert document.schedulers[0].ios > 1000


def test_stock_kyber_leaves_no_disk_idle(stock: KernelBuild) -> None:
    """Under bursts of more writes than it lets out at once."""
    document = torture(TortureRequest("stock", ("kyber", "bfq"), first_seed=3, seeds=1))
    assert not document.mistakes
    assert [part.longest_idle_ns for part in document.schedulers] == [0, 0]
    assert all(part.ios > 2000 for part in document.schedulers)


@pytest.mark.slow
def test_planted_mistakes_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds a kernel that checks itself, some ten minutes."""
    name = build_with_checks("torture-planted", SilentBuildObserver(), patches=(str(PLANTED),))
    image = torture_module._image
    found = {}
    for number, mistake in MISTAKES.items():
        module = {4: "kyber_iosched", 9: "blk_flush"}.get(number, "mq_deadline")

        def planted(
            kernel: KernelBuild, faults: Faults, parameter: str = f"{module}.planted={number}"
        ) -> GuestImage:
            usual = image(kernel, faults)
            return replace(usual, parameters=(*usual.parameters, parameter))

        monkeypatch.setattr(torture_module, "_image", planted)
        scheduler = "kyber" if number == 4 else "mq-deadline"
        document = torture(TortureRequest(name, (scheduler,), seeds=24))
        found[mistake] = [one.kind for one in document.mistakes]
    assert [mistake for mistake, kinds in found.items() if not kinds] == []
    assert found["a missed wake-up"] == ["idle"]
    assert found["starvation"] == ["stuck"]
