"""Kernels with different clocks are not compared unless the user asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.backends.uml_clocks import bfq_idling_warning, check_clocks, clock_warnings
from blklab.errors import RequirementError
from blklab.guests.kernels.build_record import BuildRecord, InstrumentRecord
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.spec.guest import GuestOptions

EXACT = InstrumentRecord(name="exact-clock", sha256="aa", files=["arch/um/kernel/time.c"])


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    return Maker(tmp_path)


class Maker:
    """Kernels as the store finds them, without a build."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(
        self, name: str, *instruments: InstrumentRecord, hz: int = 100, time_travel: bool = True
    ) -> KernelBuild:
        folder = self._folder / name
        folder.mkdir()
        options = [f"CONFIG_HZ={hz}", *(["CONFIG_UML_TIME_TRAVEL_SUPPORT=y"] if time_travel else [])]
        (folder / "config").write_text("\n".join(options))
        record = BuildRecord(
            build_id=name,
            version="6.1",
            source="linux",
            source_kind="directory",
            source_sha256="",
            patches=[],
            instruments=list(instruments),
            fragments=[],
            missing_options=[],
            compiler="",
            recipe=1,
            tree_id="",
            linux_sha256="",
            compiled_files=0,
            built_at="",
            build_seconds=0,
        )
        return KernelBuild(name, folder, record)


VIRTUAL, HOST, ANY = GuestOptions(), GuestOptions(time="host"), GuestOptions(clocks="any")
DOES_NOT_APPLY = EXACT.model_copy(update={"complaint": "hunk 1"})
LATER = EXACT.model_copy(update={"sha256": "bb"})


def test_kernels_with_one_clock_are_compared(make: Maker) -> None:
    kernels = [make("a", EXACT), make("b", EXACT)]
    check_clocks(kernels, VIRTUAL)
    assert clock_warnings(kernels, VIRTUAL) == []


@pytest.mark.parametrize(
    ("instruments", "hz", "words"),
    [
        (
            (),
            100,
            "the kernel a has an exact clock and 100 .* the kernel b has a clock that advances when read",
        ),
        ((DOES_NOT_APPLY,), 100, "the kernel b has a clock that advances when read"),
        ((LATER,), 100, "a and b have different versions of the exact clock"),
        ((EXACT,), 250, "an exact clock and 100 ticks a second, .* an exact clock and 250 ticks a second"),
    ],
)
def test_others_are_refused_unless_that_is_wanted(
    make: Maker, instruments: tuple[InstrumentRecord, ...], hz: int, words: str
) -> None:
    kernels = [make("a", EXACT), make("b", *instruments, hz=hz)]
    with pytest.raises(RequirementError, match=words) as caught:
        check_clocks(kernels, VIRTUAL)
    assert "--clocks any" in (caught.value.hint or "")
    check_clocks(kernels, ANY)
    (warning,) = clock_warnings(kernels, ANY)
    assert "may come from their clocks" in warning


def test_in_this_machines_time_only_ticks_count(make: Maker) -> None:
    plain, exact, quick = make("a"), make("b", EXACT), make("c", hz=1000)
    check_clocks([plain, exact], HOST)
    with pytest.raises(RequirementError, match="1000 ticks"):
        check_clocks([plain, quick], HOST)


def test_a_kernel_without_virtual_time(make: Maker) -> None:
    old = make("old", time_travel=False)
    with pytest.raises(RequirementError, match=r"the kernel old .* has no virtual time"):
        check_clocks([old], VIRTUAL)
    check_clocks([old], HOST)


def test_bfq_where_no_time_passes(make: Maker) -> None:
    exact, ticking = make("exact", EXACT), make("ticking")
    assert "may not wait for sequential readers" in (bfq_idling_warning(exact, VIRTUAL) or "")
    assert bfq_idling_warning(exact, HOST) is None
    assert bfq_idling_warning(ticking, VIRTUAL) is None
