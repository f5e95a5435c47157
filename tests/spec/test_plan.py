from __future__ import annotations

import itertools
from collections import Counter

from blklab.plan import Plan, derive_seed
from blklab.testing.experiments import make_spec, make_workload


def _plan(blocks: int | None = 5, seed: int = 1) -> Plan:
    workloads = [make_workload("reads"), make_workload("writes", reads=False)]
    return Plan(make_spec(("none", "mq-deadline", "bfq"), workloads, blocks=blocks, seed=seed))


def test_each_block_runs_every_scheduler_once_under_every_workload() -> None:
    for number, block in enumerate(_plan().blocks()):
        pairs = Counter((cell.key.scheduler, cell.key.workload) for cell in block)
        assert len(pairs) == 6
        assert set(pairs.values()) == {1}
        assert {cell.key.block for cell in block} == {number}


def test_the_schedulers_of_a_workload_stand_next_to_one_another() -> None:
    for block in _plan().blocks():
        runs = [workload for workload, _ in itertools.groupby(cell.key.workload for cell in block)]
        assert sorted(runs) == ["reads", "writes"]
        assert [cell.key.position for cell in block] == [0, 1, 2, 0, 1, 2]


def test_sequence_numbers_count_all_runs() -> None:
    cells = [cell for block in _plan().blocks() for cell in block]
    assert [cell.key.sequence for cell in cells] == list(range(30))


def test_the_order_is_random_and_balanced() -> None:
    firsts = Counter(block[0].key.scheduler for block in itertools.islice(_plan(blocks=None).blocks(), 600))
    assert all(150 < count < 250 for count in firsts.values())


def test_schedulers_of_a_block_share_the_seed_and_blocks_do_not() -> None:
    seeds: dict[tuple[int, str], set[int]] = {}
    for block in _plan().blocks():
        for cell in block:
            seeds.setdefault((cell.key.block, cell.key.workload), set()).add(cell.key.seed)
    assert all(len(of_one) == 1 for of_one in seeds.values())
    assert len(set.union(*seeds.values())) == len(seeds)


def test_the_plan_depends_on_the_specification_alone() -> None:
    assert list(_plan().blocks()) == list(_plan().blocks())
    assert list(_plan(seed=1).blocks()) != list(_plan(seed=2).blocks())
    # Extending an experiment changes nothing of what is planned already: resuming depends on it.
    assert list(_plan(blocks=9).blocks())[:5] == list(_plan(blocks=5).blocks())


def test_seeds_are_fixed_for_good() -> None:
    """Stored experiments name seeds; another derivation would make them unrepeatable."""
    assert derive_seed(1, "run", 0, "reads") == 7_277_284_504_163_407
    assert derive_seed(1, "run", 0, "reads") < 1 << 53
