"""Turns the description of a study into experiments, and checks that its series fit them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pydantic import ValidationError

from blklab.analysis.metrics import metric_named
from blklab.errors import BlklabError, SpecError, did_you_mean
from blklab.labs.studies import DESCRIPTION_FILE
from blklab.labs.studies.described.description import StudyDescription
from blklab.labs.studies.described.parts import (
    PICKED,
    DescribedExperiment,
    FittedDevice,
    MeasuredSeries,
    StudyWorkload,
)
from blklab.labs.studies.described.runs import (
    COUNTS,
    published_runs,
    replay_in_blocks,
    series_workload,
    session_values,
)
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.protocol import NamedExperiment
from blklab.labs.studies.replication.specs import study_spec
from blklab.labs.studies.replication.stalling_disk import stalling_disk
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.quantities.units import NS_PER_SECOND, parse_duration_ns
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.mistakes import first_mistake
from blklab.spec.profiles import load_profile
from blklab.spec.sweeps import with_sweep_cells
from blklab.spec.targets import ModelTarget, parse_target
from blklab.spec.workloads import Workload


def description_of(folder: StudyFolder) -> StudyDescription:
    """The description of a study.

    Raises:
        SpecError: if ``study.toml`` cannot be read or has a mistake.
    """
    return folder.toml(DESCRIPTION_FILE, StudyDescription)


def described_experiments(options: StudyOptions, folder: StudyFolder) -> Sequence[NamedExperiment]:
    """Lists the experiments of a described study, in order.

    Raises:
        BlklabError: for a mistake in its files that shows before the first run; the message names the place.
    """
    description = description_of(folder)
    for name, runs in description.published.items():
        with _at(folder, f"published.{name}"):
            published_runs(folder, runs)
    found = []
    for experiment in description.experiments_on(options):
        with _at(folder, f"experiment {experiment.name!r}"):
            spec = _spec(options, folder, description, experiment)
        found.append(NamedExperiment(experiment.name, experiment.title, spec, experiment.dispensable))
    _check_series(options, folder, description, {one.name: one.spec for one in found})
    return found


@contextmanager
def _at(folder: StudyFolder, place: str) -> Iterator[None]:
    """Names the place in messages on a mistake."""
    where = f"{folder.place}/{DESCRIPTION_FILE}: {place}"
    try:
        yield
    except ValidationError as error:
        raise SpecError(f"{where}: {first_mistake(error)}") from error
    except BlklabError as error:
        error.message = f"{where}: {error.message}"
        error.args = (error.message,)
        raise


def _spec(
    options: StudyOptions,
    folder: StudyFolder,
    description: StudyDescription,
    experiment: DescribedExperiment,
) -> ExperimentSpec:
    target = _target(options, folder, description, experiment.device)
    parsed = parse_target(target)
    if isinstance(parsed, ModelTarget):
        load_profile(parsed.device)
    return study_spec(
        options,
        target,
        experiment.schedulers.under(options),
        [_workload(options, folder, one) for one in experiment.workloads],
        blocks=experiment.blocks.under(options),
        as_printed=experiment.order == "by-scheduler",
        queue=experiment.queue,
        cgroups=experiment.cgroups,
        sweep=None if experiment.sweep is None else experiment.sweep.sweep(),
    )


def _target(options: StudyOptions, folder: StudyFolder, description: StudyDescription, device: str) -> str:
    if options.backend == "host":
        return f"loop:{description.host_scratch},dir={options.directory}"
    if device in description.devices:
        fitted = description.devices[device]
        runs = published_runs(folder, description.published[fitted.published])
        device = _fitted_device(fitted, runs, steady=options.backend in fitted.steady_on)
    return f"{options.backend}:{device}"


def _workload(options: StudyOptions, folder: StudyFolder, workload: StudyWorkload) -> Workload:
    place = folder if workload.study is None else StudyFolder(workload.study)
    values = {name: value.under(options) for name, value in workload.values.items()}
    return place.filled_workload(workload.file, workload.name, values)


def _fitted_device(device: FittedDevice, runs: Mapping[str, Sequence[float]], *, steady: bool) -> str:
    """The device model in the target grammar.

    Stalls of length *S* that fill the share *f* of the time give the work done in a time *T* a relative
    variance of *f S/T* (`blklab.labs.studies.ionice.set_up`).
    """
    labels = [label for label in device.schedulers if label in runs]
    if len(labels) < len(device.schedulers) or not labels:
        raise SpecError(f"device: no published runs of {', '.join(device.schedulers) or 'no scheduler'}")
    mean = statistics.fmean(value for label in labels for value in runs[label])
    command_ns = device.command_bytes / (mean * device.unit_bytes) * NS_PER_SECOND
    if steady:
        return stalling_disk(command_ns, device.parameters)
    if min(len(runs[label]) for label in labels) < 2:
        raise SpecError("device: two runs of each scheduler are the fewest that scatter")
    relative_variance = statistics.fmean(
        statistics.variance(runs[label]) / statistics.fmean(runs[label]) ** 2 for label in labels
    )
    stall_ns = parse_duration_ns(device.stall)
    share = relative_variance * parse_duration_ns(device.window) / stall_ns if stall_ns else 1.0
    if share >= 1:
        raise SpecError(f"device: stalls of {device.stall} are too short for runs that scatter so much")
    return stalling_disk(command_ns, device.parameters, stalled_share=share, stall=device.stall)


def _check_series(
    options: StudyOptions,
    folder: StudyFolder,
    description: StudyDescription,
    specs: Mapping[str, ExperimentSpec],
) -> None:
    """Refuses series, and names of schedulers, that the experiments do not have."""
    for name, series in description.series.items():
        if series.experiment in specs:
            with _at(folder, f"series.{name}"):
                _check_one(series, specs[series.experiment])
    for rows in description.values:
        if rows.statistic == "replayed ratio" and rows.ours is not None and rows.is_on(options.backend):
            series = description.series[rows.ours]
            if series.experiment in specs:
                spec = specs[series.experiment]
                runs = published_runs(folder, description.published[rows.published or ""])
                with _at(folder, f"values {rows.table!r}"):
                    replay_in_blocks(session_values(runs), spec, series_workload(series, spec).name)
    labels_of: dict[str, list[str]] = {}
    for name, spec in specs.items():
        with _at(folder, f"experiment {name!r}"):
            labels_of[name] = [choice.label for choice in with_sweep_cells(spec.schedulers, spec.sweeps)]
    for place, ours, schedulers in _named_schedulers(options, description):
        labels = labels_of.get(description.series[ours].experiment)
        for label in schedulers:
            if labels and label not in (*labels, *PICKED):
                with _at(folder, place):
                    raise _unknown("scheduler", label, labels)


def _check_one(series: MeasuredSeries, spec: ExperimentSpec) -> None:
    names = [workload.name for workload in spec.workloads]
    if series.workload is None and len(names) > 1:
        raise SpecError("workload: is missing", hint=f"the experiment has {', '.join(names)}")
    if series.workload is not None and series.workload not in names:
        raise _unknown("workload", series.workload, names)
    workload = series_workload(series, spec)
    jobs = [job.name for job in workload.jobs]
    if series.job is not None and series.job not in jobs:
        raise _unknown("job", series.job, jobs)
    if series.tool is not None and series.tool != workload.tool:
        raise _unknown("tool", series.tool, [workload.tool] if workload.tool else [])
    if series.metric not in (None, *COUNTS):
        metric_named(series.metric or "")


def _named_schedulers(
    options: StudyOptions, description: StudyDescription
) -> Iterator[tuple[str, str, list[str]]]:
    """Each part that names our schedulers: its place, its series, and the names."""
    for rows in description.values:
        if rows.ours is not None and rows.is_on(options.backend) and not rows.not_asked:
            yield f"values {rows.table!r}", rows.ours, rows.schedulers
            if rows.over is not None:
                yield f"values {rows.table!r}", rows.against or rows.ours, [rows.over]
    for one in description.statements:
        if one.ours is not None and one.is_on(options.backend):
            first = [] if one.scheduler is None else [one.scheduler]
            yield f"statement {one.name!r}", one.ours, [*first, *one.schedulers]
            if one.over is not None:
                yield f"statement {one.name!r}", one.against or one.ours, [one.over]


def _unknown(kind: str, name: str, known: Sequence[str]) -> SpecError:
    return SpecError(
        f"there is no {kind} {name!r}",
        hint=did_you_mean(name, known) or f"there are: {', '.join(known) or 'none'}",
    )
