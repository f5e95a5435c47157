"""Pictures in the style of iozone's users: heat maps and surfaces over tests and record sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from blklab.labs.studies.iozone_raid10.experiments import DIRECT_TESTS
from blklab.labs.studies.iozone_raid10.rates import Rates, mean_rates
from blklab.labs.studies.replication.pictures import MatrixPicture, Picture, SurfacePicture
from blklab.simulator.benchmark_emulation import IOZONE_TESTS


def record_label(record_kib: int) -> str:
    """A record size such as ``32k`` or ``16M``."""
    return f"{record_kib // 1024}M" if record_kib >= 1024 else f"{record_kib}k"


def pictures_of(origin: str, rates: Rates, one: str, other: str, records_kib: Sequence[int]) -> list[Picture]:
    """Returns the rates as a heat map and as a surface, and a heat map of one scheduler over another.

    Args:
        origin: ``published``, or a name for our rates.
        rates: All rates.
        one: The recommended scheduler.
        other: The scheduler to compare it with.
        records_kib: Record sizes, the columns.
    """
    means = mean_rates(rates)
    name = origin.replace(" ", "-")
    return [
        _matrix(
            f"{name}-rates",
            f"MB/s, {origin}, geometric mean of the schedulers",
            "Tests by record size. The last four tests run at the speed of memory and take most of the tint.",
            records_kib,
            lambda test, size: means[test, size],
            decimals=0,
        ),
        _matrix(
            f"{name}-difference",
            f"{one} over {other}, %, {origin}",
            f"How much faster {one} is in each test at each record size; negative: slower.",
            records_kib,
            lambda test, size: 100 * (rates[one, test, size] / rates[other, test, size] - 1),
            decimals=1,
            middle=0.0,
        ),
        SurfacePicture(
            f"{name}-surface",
            f"The nine tests past the page cache, {origin}",
            "Heights are rates. Larger records are to the right.",
            "test",
            "record size",
            "MB/s",
            tuple(_by_height(means, records_kib)),
            tuple(record_label(size) for size in records_kib),
            tuple(
                tuple(means[test, size] for size in records_kib) for test in _by_height(means, records_kib)
            ),
        ),
    ]


def _by_height(means: dict[tuple[str, int], float], records_kib: Sequence[int]) -> list[str]:
    """Direct tests, the fastest first, so that they are at the back."""
    return sorted(DIRECT_TESTS, key=lambda test: -sum(means[test, size] for size in records_kib))


def _matrix(
    name: str,
    title: str,
    note: str,
    records_kib: Sequence[int],
    value: Callable[[str, int], float],
    *,
    decimals: int,
    middle: float | None = None,
) -> MatrixPicture:
    return MatrixPicture(
        name,
        title,
        note,
        "test",
        "record size",
        IOZONE_TESTS,
        tuple(record_label(size) for size in records_kib),
        # Adding zero turns negative zero into zero.
        tuple(tuple(round(value(test, size), 3) + 0.0 for size in records_kib) for test in IOZONE_TESTS),
        decimals,
        middle,
    )
