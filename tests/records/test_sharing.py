"""Memory of many samples: equal parts are kept once, and nothing of what they say changes."""

from __future__ import annotations

import tracemalloc

from blklab.records.samples import LatencyHistogram, RunSample
from blklab.spec.plan import CellKey

BINS = {50_000 + 512 * place: 300 + place for place in range(60)}


def _written(sequence: int, costs: dict[str, object]) -> str:
    key = CellKey(block=sequence, sequence=sequence, position=0, workload="w", scheduler="none", seed=1)
    direction = {
        "direction": "read",
        "ios": 1_000 + sequence,
        "bytes": 4_096_000,
        "runtime_ns": 10**9,
        "latency": LatencyHistogram(count=1_000, sum_ns=1e8, min_ns=1, max_ns=10**6, bins=BINS),
    }
    sample = RunSample.model_validate(
        {
            "cell": key,
            "status": "ok",
            "started_at": "2026-01-01T00:00:00.000+00:00",
            "elapsed_ns": 10**9,
            "jobs": [{"name": "j", "clones": 1, "runtime_ns": 10**9, "directions": [direction]}],
            "settings": {f"vda/{name}": "128" for name in ("nr_requests", "max_sectors_kb", "nomerges")},
            "engine": {"name": "blksim", "requests": sequence, "machine": costs},
        }
    )
    return sample.model_dump_json()


def test_samples_of_a_long_experiment_take_little_memory() -> None:
    texts = [_written(number, {f"cost_{place}": place for place in range(20)}) for number in range(300)]
    RunSample.model_validate_json(texts[0])
    tracemalloc.start()
    try:
        samples = [RunSample.model_validate_json(text) for text in texts]
        each = tracemalloc.get_traced_memory()[0] / len(samples)
    finally:
        tracemalloc.stop()
    # 14 kB when every sample has a set of names for each of its parts, and a cost table of its own.
    assert each < 8_500
    assert [sample.model_dump_json() for sample in samples] == texts


def test_equal_values_of_other_types_stay_apart() -> None:
    for costs in ({"hide": 1}, {"hide": True}, {"hide": 1.0}, {"hide": 1}):
        text = _written(0, dict(costs))
        assert RunSample.model_validate_json(text).model_dump_json() == text


def test_a_copy_with_other_settings_leaves_the_shared_ones() -> None:
    first, second = (RunSample.model_validate_json(_written(number, {})) for number in (0, 1))
    assert first.settings is second.settings
    assert first.model_copy(update={"settings": {}}).settings == {}
    assert len(second.settings) == 3
