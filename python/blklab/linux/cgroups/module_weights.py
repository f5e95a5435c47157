"""Weights of variants of bfq: a module has ``io.NAME.weight`` in each group, not ``io.bfq.weight``.

A weight that an experiment gives for bfq is meant for every bfq in it, so each gets it in its own file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from blklab.linux.cgroups.settings import CgroupSetting
from blklab.linux.machine.scheduler_modules import GROUP_WEIGHTS
from blklab.spec.schedulers import SchedulerChoice

_WITH_WEIGHTS = frozenset(GROUP_WEIGHTS.values())


def variants_with_weights(choices: Iterable[SchedulerChoice]) -> list[str]:
    """The names of modules among choices that have weights of their own, each once."""
    found = (one.name_in_queue for one in choices if one.kernel is not None and one.name in _WITH_WEIGHTS)
    return list(dict.fromkeys(found))


def for_variants(settings: Sequence[CgroupSetting], variants: Sequence[str]) -> list[CgroupSetting]:
    """The writes, with those of bfq's weights again for each variant that has none of its own among them."""
    given = {(one.group, one.attribute) for one in settings}
    result = list(settings)
    for setting in settings:
        if setting.attribute in GROUP_WEIGHTS:
            copies = [replace(setting, attribute=own_weight(setting.attribute, name)) for name in variants]
            result += [copy for copy in copies if (copy.group, copy.attribute) not in given]
    return result


def of_choice(settings: Sequence[CgroupSetting], choice: SchedulerChoice) -> list[CgroupSetting]:
    """The writes as one choice alone needs them: a variant's weights instead of bfq's."""
    if not variants_with_weights([choice]):
        return list(settings)
    name = choice.name_in_queue
    return [
        replace(one, attribute=own_weight(one.attribute, name)) if one.attribute in GROUP_WEIGHTS else one
        for one in settings
    ]


def own_weight(attribute: str, name: str) -> str:
    """The file of a variant for a file of bfq's: ``io.mine.weight`` for ``io.bfq.weight``."""
    scheduler = GROUP_WEIGHTS[attribute]
    return attribute.replace(f".{scheduler}.", f".{name}.")
