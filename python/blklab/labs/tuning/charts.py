"""The pictures of a tuning: history, importance of settings, slices through them, Pareto front."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from blklab.labs.tuning.document import SearchedSchedulerPart, SettingPart, TrialPart, TuneDocument
from blklab.labs.tuning.text import choice_text
from blklab.quantities.formatting import count_of, metric_title
from blklab.report.charts.figure import NARROW, PANEL, WIDE, Drawing, figure, ratio_tick
from blklab.report.charts.pareto import ParetoAxis, ParetoPoint, pareto_chart
from blklab.report.drawing.palette import Appearance, appearances
from blklab.report.drawing.svg import Axis, group, label, line, marks, polyline, rectangle
from blklab.spec.schedulers import SchedulerChoice

_HEIGHT = 240.0
_BAR = 26.0
_MOST_ON_FRONT = 12
MOST_SLICES = 6


def looks_of(document: TuneDocument) -> dict[str, Appearance]:
    """The appearance of each scheduler that was searched."""
    names = [one.scheduler for one in document.searched]
    return appearances([SchedulerChoice(name=name, label=name) for name in names])


def history_chart(document: TuneDocument, looks: dict[str, Appearance]) -> Markup:
    """Each trial's score in the order of the search, with the best so far."""
    shown = [one for one in document.trials if one.score is not None]
    best = max(shown, key=lambda one: one.score or 0.0)
    described = (
        f"{count_of(len(shown), 'trial')}; the best, number {best.number + 1}, is {choice_text(best)} "
        f"with a score of {best.score:.3g} times the default's"
    )
    drawings = [_history(shown, looks, width) for width in (WIDE, NARROW)]
    return figure(
        "tuning-history",
        "The search",
        described,
        drawings,
        "Each mark is a candidate on the model, against the default (1); the line is the best so far. "
        "Far worse candidates lie at the foot.",
    )


def _history(trials: Sequence[TrialPart], looks: dict[str, Appearance], width: float) -> Drawing:
    left, right, top, bottom = 62.0, width - 8, 14.0, _HEIGHT - 34
    scores = [one.score or 1.0 for one in trials]
    axis = _ratio_axis(scores, bottom, top)
    last = max(1, trials[-1].number)

    def at(number: int) -> float:
        return left + (right - left) * number / last

    parts = _ratio_grid(axis, left, right)
    best = -math.inf
    steps: list[tuple[float, float]] = []
    for trial, score in zip(trials, scores, strict=True):
        whole = not trial.pruned
        if whole and score > best:
            if steps:
                steps.append((at(trial.number), _within(axis, best)))
            best = score
            steps.append((at(trial.number), _within(axis, best)))
    if steps:
        steps.append((right, axis.at(best)))
        parts.append(polyline(steps, css="front", fill="none"))
    for name, look in looks.items():
        points = [
            (at(one.number), _within(axis, score))
            for one, score in zip(trials, scores, strict=True)
            if one.scheduler == name
        ]
        if points:
            parts.append(group([marks(points, 3, look)], css="series", data_series=name))
    parts.append(label((left + right) / 2, _HEIGHT - 8, "trial", css="tick", text_anchor="middle"))
    return Drawing(width, _HEIGHT, group(parts))


def importance_chart(searched: SearchedSchedulerPart, look: Appearance) -> Markup | None:
    """The settings of one scheduler by how much of the spread of scores they explain; None if unknown."""
    known = sorted(
        ((one.importance, one.name) for one in searched.settings if one.importance is not None), reverse=True
    )
    if not known:
        return None
    described = "; ".join(f"{name} {100 * part:.0f} %" for part, name in known)
    width, left = PANEL, 130.0
    longest = max(part for part, _ in known) or 1.0
    parts = []
    for place, (part, name) in enumerate(known):
        y = 6 + place * _BAR
        reach = (width - left - 46) * part / longest
        parts.append(label(left - 8, y + 15, name, css="name", text_anchor="end"))
        parts.append(rectangle(left, y + 3, reach, _BAR - 10, css=f"tint {look.css_class}"))
        parts.append(label(left + reach + 6, y + 15, f"{100 * part:.0f} %", css="value"))
    drawing = Drawing(width, 12 + len(known) * _BAR, group(parts))
    return figure(
        "tuning-importance",
        f"What matters under {searched.scheduler}",
        described,
        [drawing],
        "Parts of the spread between candidates that each setting explains.",
    )


def slice_charts(document: TuneDocument, looks: dict[str, Appearance]) -> list[Markup]:
    """Scores by the value of a setting, for the settings that explain most."""
    ranked = sorted(
        (
            (one.importance, searched.scheduler, one)
            for searched in document.searched
            for one in searched.settings
            if one.importance is not None
        ),
        reverse=True,
        key=lambda entry: entry[0] or 0.0,
    )
    return [
        _slice(document, scheduler, setting, looks[scheduler])
        for _, scheduler, setting in ranked[:MOST_SLICES]
    ]


def _slice(document: TuneDocument, scheduler: str, setting: SettingPart, look: Appearance) -> Markup:
    shown = [one for one in document.trials if one.score is not None and one.scheduler == scheduler]
    left, right, top, bottom = 62.0, PANEL - 12, 14.0, 176.0
    axis = _ratio_axis([one.score or 1.0 for one in shown], bottom, top)
    parts = _ratio_grid(axis, left, right, about=4)
    step = (right - left) / len(setting.values)
    best = []
    for place, value in enumerate(setting.values):
        x = left + step * (place + 0.5)
        scores = [one.score or 1.0 for one in shown if one.settings.get(setting.name) == value]
        css = "tick" if value is not None else "value"
        text = _short(setting.default if value is None else value)
        parts.append(label(x, bottom + 17, text, css=css, text_anchor="middle"))
        if scores:
            points = [(x, _within(axis, score)) for score in scores]
            parts.append(group([marks(points, 3, look)], css="series"))
            best.append(f"{value or 'the default'}: at best {max(scores):.3g}")
    return figure(
        "tuning-slice",
        f"{setting.name} under {scheduler}",
        "; ".join(best),
        [Drawing(PANEL, 206, group(parts))],
        "The default is bold.",
    )


def _short(number: str) -> str:
    """Numbers with many zeros in fewer characters: ``10k``, ``50M``."""
    for unit, suffix in ((1_000_000, "M"), (1000, "k")):
        if number.isdigit() and int(number) >= 10 * unit and int(number) % (unit // 10) == 0:
            return f"{int(number) / unit:g}{suffix}"
    return number


def front_chart(document: TuneDocument, looks: dict[str, Appearance]) -> Markup | None:
    """The trials that no other one beats in every dimension, and the default; None with one dimension."""
    if len(document.dimensions) < 2:
        return None
    x, y = document.dimensions[:2]
    tried = [*document.trials, *document.finalists]
    shown = [one for one in tried if {x, y} <= one.ratios.keys() and not one.pruned]
    front = [one for one in shown if not any(_dominates(other, one) for other in shown)]
    # Many candidates differ only in settings that do nothing; the shortest stands for all of them.
    by_point: dict[tuple[float, float], TrialPart] = {}
    for one in sorted(front, key=lambda one: len(one.settings)):
        by_point.setdefault((round(one.ratios[x], 4), round(one.ratios[y], 4)), one)
    front = sorted(by_point.values(), key=lambda one: -(one.score or 0.0))[:_MOST_ON_FRONT]
    points = [
        _point(choice_text(one), looks[one.scheduler], one.ratios[x], one.ratios[y], "on the front")
        for one in front
    ]
    if points and document.default in looks:
        points.append(_point(document.default, looks[document.default], 1.0, 1.0, "the default"))
    if not points:
        return None
    return pareto_chart(
        "Candidates that no other beats in every respect",
        points,
        ParetoAxis(f"{metric_title(x)}, gain", higher_is_better=True),
        ParetoAxis(f"{metric_title(y)}, gain", higher_is_better=True),
        "On the model, as multiples of the default's; more is better.",
    )


def _point(name: str, look: Appearance, x: float, y: float, standing: str) -> ParetoPoint:
    return ParetoPoint(name, look, x, None, None, y, None, None, standing)


def _dominates(other: TrialPart, trial: TrialPart) -> bool:
    return other.ratios != trial.ratios and all(
        other.ratios[name] >= ratio for name, ratio in trial.ratios.items()
    )


def _ratio_axis(ratios: Sequence[float], start: float, end: float) -> Axis:
    high = max([*ratios, 1.02])
    # What is worse by a larger factor than the best is better would leave no room for the rest.
    low = min([*(ratio for ratio in ratios if ratio * high >= 1), 1 / high])
    room = (high / low) ** 0.06
    return Axis(low / room, high * room, start, end, logarithmic=True)


def _within(axis: Axis, ratio: float) -> float:
    return axis.at(max(ratio, axis.low))


def _ratio_grid(axis: Axis, left: float, right: float, about: int = 5) -> list[Markup]:
    parts = []
    for ratio in axis.ticks(about):
        y = axis.at(ratio)
        parts.append(line(left, y, right, y, css="grid"))
        parts.append(label(left - 7, y + 4, ratio_tick(axis, ratio), css="tick", text_anchor="end"))
    return parts
