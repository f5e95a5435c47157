"""A tuning in words, for the terminal and the head of the page."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from blklab.labs.tuning.document import ConfirmedCandidatePart, GainPart, TrialPart, TuneDocument
from blklab.quantities.formatting import count_of, metric_title, ratio_text, scheduler_text

_NOTICEABLE = 0.0005
"""Less is 0.0 % in print."""


def headline(document: TuneDocument) -> str:
    """The answer in one line."""
    if document.recommendation is not None:
        return f"{scheduler_text(document.recommendation.choice)} beats {scheduler_text(document.default)}"
    return f"Nothing was confirmed to beat {scheduler_text(document.default)}"


def sentences(document: TuneDocument) -> list[str]:
    """The answer, what it rests on, and what to do."""
    said = [_confirmed(document, document.recommendation)]
    best = max((one for one in document.trials if one.score is not None), key=_score, default=None)
    said.append(
        f"The search tried {len(document.trials)} of {document.candidates:,} candidates on "
        f"{document.model} in {count_of(document.simulated_runs, 'simulated run')}" + _best_there(best)
    )
    return said


def _best_there(best: TrialPart | None) -> str:
    if best is None:
        return "."
    if _score(best) - 1 < _NOTICEABLE:
        return "; the best there is as good as the default."
    return f"; the best there is {_percent(_score(best))} better than the default."


def next_step(document: TuneDocument) -> str | None:
    """The command to go on with; None if the default stays and nothing was compared."""
    found = document.recommendation
    if found is not None:
        return f"sudo {found.apply_command or found.compare_command}"
    if document.confirmation is None:
        return None
    return shlex.join(["blklab", "report", document.confirmation.run])


def finalist_rows(document: TuneDocument) -> list[tuple[str, str, str]]:
    """Each finalist with its gain on the model and on the target."""
    rows = []
    for one in document.finalists:
        measured = one.error or _gains_text(one.measured)
        rows.append((choice_text(one), _percent(_score(one)), measured))
    return rows


def choice_text(trial: TrialPart) -> str:
    """A candidate in the grammar of schedulers."""
    return ":".join([trial.scheduler, *(f"{key}={value}" for key, value in trial.settings.items())])


def _confirmed(document: TuneDocument, found: ConfirmedCandidatePart | None) -> str:
    default = scheduler_text(document.default)
    if found is not None:
        return f"On {document.target} it has {_gains_text(found.gains)}, against {default}."
    if document.confirmation is None and document.finalists:
        return f"{document.target} refuses every candidate that the model prefers."
    if document.confirmation is None:
        return f"On the model no candidate is better than {default} by half a percent, so " + (
            "there is nothing to confirm."
            if document.model == document.target
            else f"{document.target} was not asked."
        )
    finalists = count_of(len(document.finalists), "candidate")
    return (
        f"The model prefers {finalists}, but on {document.target} none of them is known to be better than "
        f"{default}: {document.confirmation.verdict.text}."
    )


def _gains_text(gains: Sequence[GainPart]) -> str:
    return ", ".join(
        f"{metric_title(one.metric)} {ratio_text(one.ratio, one.ci_low, one.ci_high)}"
        + (f" under {one.workload}" if len(gains) > 1 else "")
        for one in gains
    )


def _score(trial: TrialPart) -> float:
    return trial.score if trial.score is not None else -math.inf


def _percent(ratio: float) -> str:
    if ratio >= 2:
        return f"{ratio:.1f} times"
    return f"{100 * (ratio - 1):.1f} %"
