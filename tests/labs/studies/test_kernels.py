"""Studies on a guest kernel that the user names."""

from __future__ import annotations

import pytest

from blklab.labs.studies import replicable_study
from blklab.labs.studies.ionice.experiments import MATRICES, REPEATED, WRITERS
from blklab.labs.studies.replication.options import StudyKernel, StudyOptions
from blklab.labs.studies.replication.run import experiments_of
from blklab.labs.studies.replication.study_folder import StudyFolder

OLD = StudyKernel("old", has_legacy_schedulers=True)
NEW = StudyKernel("next", has_legacy_schedulers=False)


def schedulers(name: str, kernel: StudyKernel | None) -> dict[str, list[str]]:
    """The schedulers of each experiment on guests, in the grammar of `-s`."""
    options = StudyOptions("uml", quick=True, kernel=kernel)
    found = experiments_of(replicable_study(name), options, StudyFolder(name))
    return {one.name: [choice.canonical for choice in one.spec.schedulers] for one in found}


def test_on_a_kernel_that_has_them_studies_use_the_schedulers_of_their_authors() -> None:
    ionice = schedulers("ionice", OLD)
    assert ionice[WRITERS] == ionice[REPEATED]
    assert ionice[WRITERS][:3] == ["cfq=cfq@old", "deadline=deadline@old", "noop=noop@old"]
    assert all(ionice[name] == ["cfq=cfq@old", "deadline=deadline@old"] for name in MATRICES)
    # A comparison of fewer is refused.
    assert all(len(choices) >= 2 for choices in ionice.values())
    iozone = schedulers("iozone-raid10", OLD)
    assert set(map(tuple, iozone.values())) == {("noop=noop@old", "cfq=cfq@old", "deadline=deadline@old")}


@pytest.mark.parametrize("name", ["ionice", "iozone-raid10"])
def test_on_another_kernel_the_same_schedulers_as_on_the_stock_one(name: str) -> None:
    stock, new = schedulers(name, None), schedulers(name, NEW)
    assert stock.keys() == new.keys()
    for experiment, choices in stock.items():
        assert [text.replace("@next", "") for text in new[experiment]] == [
            text if "=" in text.split(":")[0] else f"{text}={text}" for text in choices
        ]


def test_a_scheduler_that_names_a_kernel_stays_there() -> None:
    busy_wait = schedulers("hdparm-four-schedulers", NEW)
    named = {text for choices in busy_wait.values() for text in choices if "@" in text}
    assert any("@next" in text for text in named)
    assert any("@kyber-busy-wait" in text for text in named)
