"""`blklab explain`: draw one simulated run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click

from blklab.analysis.two_runs import ObservedRun, compare_two_runs
from blklab.cli.browser import open_page
from blklab.cli.commands import described_command
from blklab.cli.options import experiment_options, json_option, open_option, scheduler_option
from blklab.cli.output import require_own_page, require_writable, write_text
from blklab.errors import UsageError
from blklab.experiment.behaviours import behaviour_of_timeline
from blklab.quantities.units import format_duration, parse_duration_ns
from blklab.report.charts.time_axis import Window
from blklab.report.terminal import console_out, print_note
from blklab.report.trace.document import explain_document
from blklab.report.trace.holding import holding_of
from blklab.report.trace.html import render_explanation_page
from blklab.report.trace.pair import pair_document
from blklab.report.trace.pair_html import render_pair_page
from blklab.report.trace.pair_text import render_pair
from blklab.report.trace.submitters import TracedRun, traced_run
from blklab.report.trace.text import render_explanation
from blklab.simulator.request import SimulationRequest, workload_of
from blklab.simulator.simulation import run_request
from blklab.simulator.timeline import Timeline
from blklab.spec.experiment import DEFAULT_ARRANGEMENT, DEFAULT_SEED
from blklab.spec.forms import parse_assignments
from blklab.spec.machines import DEFAULT_MACHINE
from blklab.spec.request import SpecValues
from blklab.spec.schedulers import parse_scheduler_choices
from blklab.spec.targets import ModelTarget, parse_target

_PAGE = "explain.html"
MOST_SCHEDULERS = 2


@described_command(
    name="explain",
    examples=(
        (
            "how a scheduler treats a reader beside writers",
            "blklab explain sim:hdd-7200 reader-beside-writers --scheduler bfq",
        ),
        (
            "two schedulers side by side, and what makes the difference",
            "blklab explain sim:hdd-7200 many-readers --scheduler bfq,mq-deadline",
        ),
        (
            "a look at one tenth of a second",
            "blklab explain sim:hdd-7200 many-readers --window 1.2s-1.3s --html window.html",
        ),
        ("a timeline that `blklab run --timeline` wrote", "blklab explain --from run.timeline"),
    ),
)
@click.argument("target", required=False)
@click.argument("workload", metavar="NAME|FILE.fio", required=False)
@click.option(
    "--from", "from_file", metavar="FILE", help="Draw a timeline that `blklab run --timeline` wrote."
)
@scheduler_option("the one that the kernel would choose")
@click.option(
    "--tunable", "tunables", multiple=True, metavar="KEY=VALUE", help="Tunable of the scheduler. Repeatable."
)
@experiment_options("explain")
@click.option(
    "--window",
    metavar="FROM-TO",
    help="Part to show in detail, such as 1.2s-1.3s. Default: around the slowest request.",
)
@click.option("--html", "html_file", metavar="FILE", help="Write the page to FILE. Default: explain.html.")
@open_option
@json_option
def command(
    *,
    target: str | None,
    workload: str | None,
    from_file: str | None,
    scheduler: str | None,
    tunables: tuple[str, ...],
    given: SpecValues,
    window: str | None,
    html_file: str | None,
    opens: bool,
    json_file: str | None,
) -> None:
    """Draw one run of WORKLOAD on the simulated TARGET: positions, who held the device, depths, latencies.

    Writes a self-contained page and prints a summary. With --from it draws a recorded run. Two schedulers
    (--scheduler A,B) are shown side by side, with what makes the difference.
    """
    near = None if window is None else _window(window)
    destination = html_file or (None if json_file is not None else _PAGE)
    require_writable(destination, json_file)
    if destination is not None and html_file is None:
        require_own_page(destination, "--html")
    if from_file is None:
        if target is None or workload is None:
            raise UsageError(
                "name a simulated target and a workload, or a timeline with --from",
                hint="such as `blklab explain sim:hdd-7200 reader-beside-writers`",
            )
        names = [None] if scheduler is None else [name.strip() for name in scheduler.split(",")]
        if scheduler is not None and len(names) > 1:
            parse_scheduler_choices(scheduler)
        if len(names) > MOST_SCHEDULERS:
            raise UsageError(
                f"--scheduler {scheduler!r} names {len(names)} schedulers; two fit side by side",
                hint="`blklab compare` takes any number",
            )
        if len(names) > 1 and tunables:
            raise UsageError(
                "--tunable does not say which of the two schedulers it is for",
                hint="write it with the scheduler, such as bfq:slice_idle=0,bfq",
            )
        timelines = [_simulate(_request(target, workload, name, tunables, given)) for name in names]
        if len(names) > 1:
            _explain_pair(
                timelines, [name or "" for name in names], workload, near, destination, json_file, opens=opens
            )
            return
        timeline = timelines[0]
    else:
        if tunables or given.names or any(value is not None for value in (target, workload, scheduler)):
            raise UsageError(
                "--from draws a recorded run; leave out the target, the workload and their options"
            )
        timeline = Timeline.load(from_file)
    traced = traced_run(timeline)
    _require_within(near, traced, window)
    holding = holding_of(traced)
    document = explain_document(traced, holding)
    if json_file is not None:
        write_text(json_file, document.model_dump_json(by_alias=True, indent=2))
    if html_file != "-" and json_file != "-":
        render_explanation(document, console_out())
    if destination is not None:
        page = render_explanation_page(traced, holding, document, near)
        _deliver(destination, page, json_file, opens=opens)


def _explain_pair(
    timelines: Sequence[Timeline],
    names: Sequence[str],
    workload: str,
    near: Window | None,
    destination: str | None,
    json_file: str | None,
    *,
    opens: bool,
) -> None:
    runs = [traced_run(timeline) for timeline in timelines]
    for traced in runs:
        _require_within(near, traced, None)
    held = [(traced, holding_of(traced)) for traced in runs]
    loaded = workload_of(workload)
    observed = [
        ObservedRun(behaviour_of_timeline(timeline, loaded.name, name), timeline.run.jobs)
        for timeline, name in zip(timelines, names, strict=True)
    ]
    document = pair_document(
        compare_two_runs(observed, loaded),
        [one.behaviour for one in observed],
        [explain_document(traced, holding) for traced, holding in held],
    )
    if json_file is not None:
        write_text(json_file, document.model_dump_json(by_alias=True, indent=2))
    if destination != "-" and json_file != "-":
        render_pair(document, console_out())
    if destination is not None:
        _deliver(destination, render_pair_page(held, document, near), json_file, opens=opens)


def _deliver(destination: str, page: str, json_file: str | None, *, opens: bool) -> None:
    write_text(destination, page)
    if destination != "-" and json_file != "-":
        console_out().print(f"page: {shlex.quote(destination)}", soft_wrap=True)
    if opens and destination != "-":
        open_page(destination)


def _require_within(near: Window | None, traced: TracedRun, window: str | None) -> None:
    if near is not None and near.start_ns >= traced.end_ns:
        asked = "the window" if window is None else f"--window {window!r}"
        raise UsageError(
            f"{asked} begins after the run, which ends at {format_duration(traced.end_ns)}",
            hint="times count from the start of the load",
        )


def _request(
    target: str, workload: str, scheduler: str | None, tunables: tuple[str, ...], given: SpecValues
) -> SimulationRequest:
    return SimulationRequest(
        _simulated(target),
        workload,
        scheduler=scheduler,
        tunables=parse_assignments(tunables, "--tunable"),
        queue=given.get("queue") or {},
        costs=given.get("machine") or DEFAULT_MACHINE,
        arrangement=given.get("arrangement") or DEFAULT_ARRANGEMENT,
        seed=DEFAULT_SEED if given.get("seed") is None else given.get("seed"),
        changes=tuple(given.get("change") or ()),
        runtime=given.get("runtime"),
        timeline=True,
    )


def _simulate(request: SimulationRequest) -> Timeline:
    result = run_request(request)
    for warning in result.warnings:
        print_note(warning)
    if result.timeline is None:
        raise TypeError("the simulation returned no timeline")
    return result.timeline


def _simulated(text: str) -> str:
    target = parse_target(text)
    if not isinstance(target, ModelTarget) or target.scheme != "sim":
        raise UsageError(
            f"{text}: only simulated devices record a timeline",
            hint="name a target such as sim:hdd-7200; `blklab targets` lists them",
        )
    return target.text


def _window(text: str) -> Window:
    start, separator, end = text.partition("-")
    if not separator:
        raise UsageError(f"--window {text!r} is not FROM-TO", hint="write it like 1.2s-1.3s or 0-50ms")
    start_ns = 0 if start.strip() in ("0", "0s") else parse_duration_ns(start)
    end_ns = parse_duration_ns(end)
    if end_ns <= start_ns:
        raise UsageError(f"--window {text!r} ends before it begins")
    return Window(float(start_ns), float(end_ns))
