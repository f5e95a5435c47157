"""Runs experiments: opens the target, runs the blocks, stores every sample."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import blklab
from blklab.analysis.metrics import metric_named, metric_of
from blklab.backends import THIS_MACHINE, Backend, Session, SessionOptions, Workers, backend_for
from blklab.errors import (
    InterruptedRunError,
    KernelMistakeError,
    LockedError,
    RunFailedError,
    SpecError,
    UnknownNameError,
    UsageError,
    did_you_mean,
)
from blklab.experiment.blocks import Clock, Observer, Progress
from blklab.experiment.outlook import Outlook, outlook_of, shortage_of_rounds
from blklab.experiment.rounds import Rounds
from blklab.experiment.slots import first_round, reasons_for_runs, settle_slots
from blklab.linux.machine.description import describe_machine
from blklab.linux.machine.host_change import shell_of
from blklab.linux.processes.signals import interrupted
from blklab.modules.loading import build_copies, copy_builds, with_placebos
from blklab.quantities.notes import stored
from blklab.records.experiment import ExperimentRecord, RunState
from blklab.records.samples import RunSample, TargetDescription
from blklab.records.store import Store, new_run_id
from blklab.spec.experiment import OPTIONS, ExperimentSpec
from blklab.spec.machines import load_machine
from blklab.spec.permits import require_runs
from blklab.spec.plan import Cell, CellKey, Plan
from blklab.spec.schedulers import (
    CURRENT_SCHEDULERS,
    SchedulerChoice,
    across_kernels,
    with_groups_expanded,
)
from blklab.spec.sweeps import TunableSweep, settle_sweep, with_sweep_cells
from blklab.spec.targets import ModelTarget


def compare(
    spec: ExperimentSpec,
    store: Store,
    observer: Observer,
    *,
    resumed: ExperimentRecord | None = None,
    workers: Workers = THIS_MACHINE,
) -> ExperimentRecord:
    """Runs a comparison and stores every run as it ends.

    Args:
        spec: The experiment; without schedulers, the target's are taken.
        store: Receives every run.
        observer: Receives progress.
        resumed: An earlier experiment with the same cells, to be continued under its name.
        workers: Run the simulations and guests of a model.

    Raises:
        LockedError: if another process still makes the experiment to be continued.
        InterruptedRunError: on a signal; the runs so far are stored, and so is the state.
        BlklabError: if the experiment cannot begin or cannot continue; likewise.
    """
    check_workers(spec, workers)
    if resumed is not None and store.is_under_way(resumed.run_id):
        raise LockedError(
            f"run {resumed.run_id} is still under way in another process",
            hint="wait for its end, or end it, before you continue it",
        )
    start_ns = time.monotonic_ns()
    now = datetime.datetime.now(datetime.timezone.utc)
    run_id = resumed.run_id if resumed else new_run_id(now)
    for workload in spec.workloads:
        metric_of(workload.decide_by, workload)
    for metric in spec.goal.weights if spec.goal is not None else ():
        metric_named(metric)
    backend = _backend_of(spec)
    if resumed is None:
        spec = _settle_machine(spec, backend)
    spec = _with_built_copies(spec, backend, observer)
    with backend.open(spec.parsed_target, _session_options(spec, run_id, workers=workers)) as session:
        spec = settle_schedulers(
            spec, session.target.schedulers, session.tunable_defaults, usual=_usual(backend, session)
        )
        warnings = stored([*session.check(spec.schedulers, spec.workloads), *_of_order(spec)])
        if resumed is None:
            record = ExperimentRecord(
                run_id=run_id,
                created_at=now.isoformat(timespec="milliseconds"),
                state="running",
                blklab_version=blklab.__version__,
                spec=spec,
                target=session.target,
                machine=describe_machine(),
                samples=[],
                warnings=warnings,
            )
            store.begin(record)
        else:
            record = resumed.model_copy(update={"spec": spec, "state": "running"})
            store.set_spec(run_id, spec)
            store.set_state(run_id, "running")
        observer.begun(record)
        outlook = _outlook(spec, session, backend)
        # Repetitions of earlier attempts count, so that a short budget may suffice.
        begins = not record.samples
        observer.planned(outlook if begins else replace(outlook, shortage=None))
        state: RunState = "failed"
        try:
            session.prepare(spec.workloads, observer.announce)
            settled = settle_slots(spec, session, observer, by_default=backend.SWITCHBACK)
            if settled is not spec:
                record = record.model_copy(update={"spec": settled})
                store.set_spec(run_id, settled)
            clock = Clock(settled, start_ns)
            in_real_time = session.target.backend == "host"
            if begins and in_real_time and (short := shortage_of_rounds(settled, clock.budget_left_ns())):
                observer.falls_short(short, len(settled.schedulers))
            Rounds(record, session, store, observer, clock).run()
            state = "complete"
        except BaseException as error:
            # A signal may arrive as another exception: compiled code wraps those of the Python that it calls.
            if isinstance(error, InterruptedRunError) or interrupted():
                state = "interrupted"
            if isinstance(error, KernelMistakeError):
                store.add_warning(run_id, f"the experiment was ended: {error.message}")
            raise
        finally:
            store.set_state(run_id, state)
    return store.load(run_id)


def _of_order(spec: ExperimentSpec) -> list[str]:
    if spec.order == "randomised":
        return []
    return [
        (
            "all runs of a scheduler were made in one stretch: drift of the machine looks like a difference "
            "between schedulers, and the intervals do not account for it"
        )
    ]


def with_module_arms(spec: ExperimentSpec) -> ExperimentSpec:
    """The experiment with an original and an unchanged copy beside each patched scheduler of a module.

    Raises:
        UnknownNameError: if a module was not built for the running kernel.
    """
    if all(choice.kernel is None for choice in spec.schedulers):
        return spec
    return spec.with_schedulers(with_placebos(spec.schedulers))


def _with_built_copies(spec: ExperimentSpec, backend: Backend, observer: Observer) -> ExperimentSpec:
    if not backend.MODULES:
        return spec
    spec = with_module_arms(spec)
    build_copies(spec.schedulers, observer.announce)
    return spec


def check_workers(spec: ExperimentSpec, workers: Workers) -> None:
    """Refuses other machines for a disk of this one.

    Raises:
        UsageError: if the experiment's target is a disk, and not a model.
    """
    if workers is not THIS_MACHINE and not isinstance(spec.parsed_target, ModelTarget):
        raise UsageError(
            f"{spec.target} is a disk of this machine, and a cluster runs models",
            hint="name a model (sim:DEVICE, uml:DEVICE), or leave the cluster out",
        )


def settle_schedulers(
    spec: ExperimentSpec,
    offered: Sequence[str],
    tunable_defaults: Callable[[SchedulerChoice], Mapping[str, str] | None],
    *,
    usual: Sequence[str] | None = None,
) -> ExperimentSpec:
    """Names the schedulers: those given, the cells of sweeps, or else those that are usual on the target.

    Args:
        spec: As given.
        offered: Schedulers that the target has.
        tunable_defaults: A scheduler's tunables and the queue's attributes on the target, by default.
        usual: Those that are compared unless others are named; None: all that are offered.

    Raises:
        SpecError: if fewer than two are left to compare.
        TunableError: if a sweep names a tunable that its scheduler does not have.
    """
    if spec.sweeps:
        swept = _sweeps_on_kernels(spec.sweeps, spec.kernels)
        sweeps = [settle_sweep(sweep, tunable_defaults) for sweep in swept]
        spec = spec.model_copy(update={"sweeps": sweeps})
        given = with_groups_expanded(spec.schedulers, offered)
        choices = with_sweep_cells(across_kernels(given, spec.kernels), sweeps)
    else:
        default = [SchedulerChoice(name=name, label=name) for name in usual or offered]
        choices = with_groups_expanded(spec.schedulers, offered) or default
        choices = across_kernels(choices, spec.kernels)
    if len(choices) < 2:
        for choice in choices:
            if choice.name not in offered and (close := did_you_mean(choice.name, offered)):
                raise UnknownNameError(f"there is no scheduler {choice.name!r}", hint=close)
        raise SpecError(
            f"a comparison needs two schedulers, got only {choices[0].label if choices else 'none'}",
            hint="name them with --schedulers; `blklab targets` lists what a disk offers",
        )
    # From now on each choice names its own kernel.
    return spec.with_schedulers(choices).model_copy(update={"kernels": []})


def _usual(backend: Backend, session: Session) -> list[str]:
    """The schedulers that a comparison takes unless others are named."""
    offered = session.target.schedulers
    if not backend.HISTORY:
        return list(offered)
    return [name for name in offered if name in CURRENT_SCHEDULERS] or list(offered)


def _sweeps_on_kernels(sweeps: Sequence[TunableSweep], kernels: Sequence[str]) -> list[TunableSweep]:
    """Each sweep on each kernel, as schedulers are."""
    if not kernels:
        return list(sweeps)
    placed = [
        sweep.model_copy(update={"base": sweep.base.on_kernel(kernel)})
        for kernel in kernels
        for sweep in sweeps
    ]
    return list({sweep.canonical: sweep for sweep in placed}.values())


def run_once(
    spec: ExperimentSpec,
    observer: Observer,
    *,
    timeline_file: str | None = None,
    meanwhile: Callable[[TargetDescription], AbstractContextManager[None]] | None = None,
) -> tuple[RunSample, SchedulerChoice, list[str]]:
    """Makes a single run of the first workload under the first scheduler (by default the one in force).

    The seed is used unchanged, so that a run of a comparison can be repeated.

    Args:
        spec: The experiment.
        observer: Receives progress.
        timeline_file: Receives the timeline of the run; only simulated targets have one.
        meanwhile: Entered for the run alone, once the target is prepared.

    Returns:
        The sample, the scheduler used, and warnings.

    Raises:
        UsageError: if the target has no timeline.
        RunFailedError: if the load failed.
        BlklabError: if the run cannot be made.
    """
    workload = spec.workloads[0]
    backend = _backend_of(spec)
    if timeline_file is not None and not backend.TIMELINES:
        raise UsageError(
            f"{spec.target}: only simulated devices record a timeline",
            hint="leave out --timeline, or name a target such as sim:hdd-7200",
        )
    spec = _settle_machine(spec, backend)
    options = _session_options(spec, _fresh_run_id(), timeline_file=timeline_file)
    with backend.open(spec.parsed_target, options) as session:
        choice = _choice_for(spec, session)
        warnings = session.check([choice], [workload])
        session.prepare([workload], observer.announce)
        observer.progressed(Progress(0, 1, 0, None, f"{workload.name} under {choice.label}"))
        with nullcontext() if meanwhile is None else meanwhile(session.target):
            sample = session.run(_single_cell(spec, choice))
    if sample.status == "failed":
        raise RunFailedError(f"the run failed: {sample.error}")
    return sample, choice, warnings


def planned_commands(
    spec: ExperimentSpec, *, blocks: int | None
) -> tuple[ExperimentSpec, list[tuple[str, list[str]]]]:
    """The commands of an experiment, without running them.

    Args:
        spec: The experiment.
        blocks: Number of blocks; None for a single run like that of `run_once`.

    Returns:
        The experiment with its schedulers settled, and each run with its commands. A workload that is to be
        switched has a first round in place of runs.
    """
    backend = _backend_of(spec)
    spec = _settle_machine(spec, backend)
    options = _session_options(spec, _fresh_run_id(), dry_run=True)
    with backend.open(spec.parsed_target, options) as session:
        if blocks is None:
            cell = _single_cell(spec, _choice_for(spec, session))
            return spec, [(_title(cell), session.commands(cell))]
        spec = settle_schedulers(
            spec, session.target.schedulers, session.tunable_defaults, usual=_usual(backend, session)
        )
        spec = with_module_arms(spec) if backend.MODULES else spec
        reasons = reasons_for_runs(spec, session, by_default=backend.SWITCHBACK) or {}
        switched = [workload for workload in spec.workloads if reasons.get(workload.name, "runs") is None]
        plan = Plan(spec)
        builds = copy_builds(spec.schedulers) if backend.MODULES else []
        planned = [("the unchanged copies, before the first run", shell_of(builds))] if builds else []
        planned += [
            (_title(cell), session.commands(cell))
            for number in range(blocks)
            for cell in plan.block(number)
            if cell.workload not in switched
        ]
        for workload in switched:
            title = (
                f"{workload.name}: schedulers take turns within one load; a pilot finds how long a turn is"
            )
            planned.append((title, session.stretch_commands(first_round(spec, workload))))
        return spec, planned


def planned_outlook(spec: ExperimentSpec) -> tuple[ExperimentSpec, Outlook]:
    """The size and the limits of an experiment, without beginning it.

    Returns:
        The experiment with its schedulers settled, and the plan that `compare` would announce.
    """
    backend = _backend_of(spec)
    spec = _settle_machine(spec, backend)
    options = _session_options(spec, _fresh_run_id(), dry_run=True)
    with backend.open(spec.parsed_target, options) as session:
        spec = settle_schedulers(
            spec, session.target.schedulers, session.tunable_defaults, usual=_usual(backend, session)
        )
        return spec, _outlook(spec, session, backend)


def _outlook(spec: ExperimentSpec, session: Session, backend: Backend) -> Outlook:
    reasons = reasons_for_runs(spec, session, by_default=backend.SWITCHBACK)
    in_blocks = [one.name for one in spec.workloads if reasons is None or reasons[one.name] is not None]
    return outlook_of(spec, in_blocks, in_real_time=session.target.backend == "host")


def _title(cell: Cell) -> str:
    return f"{cell.workload.name} under {cell.scheduler.label}"


def _kernels_of(spec: ExperimentSpec) -> list[str | None]:
    """Guest kernels that runs will name; None is the backend's own."""
    own = [choice.kernel for choice in spec.schedulers if choice.kernel is not None or not spec.kernels]
    return [*spec.kernels, *own]


def _backend_of(spec: ExperimentSpec) -> Backend:
    """The backend of an experiment's target.

    Raises:
        UsageError: if guest kernels or their options are given but the backend has no guests, a cost
            table but the backend takes none, or a command but the backend runs none.
    """
    backend = backend_for(spec.parsed_target)
    require_runs(backend.NAME if backend.COMMANDS else "sim", spec, spec.workloads, spec.target)
    if spec.machine is not None and backend.default_machine(spec, _kernels_of(spec)) is None:
        raise UsageError(
            f"{spec.target} is on this machine, where computing takes the time that it takes: --machine is "
            "for models",
            hint="leave it out, or name a target such as sim:nvme-tlc",
        )
    if backend.GUESTS:
        return backend
    named = [name for name in (spec.kernels if backend.MODULES else _kernels_of(spec)) if name is not None]
    if named:
        raise UsageError(
            f"{spec.target} does not run in a guest kernel, so it cannot use the kernel {named[0]}",
            hint="leave out --kernel and @KERNEL, or name a target such as uml:nvme-tlc; "
            "a module (kyber@copy) needs a disk of this machine",
        )
    of_guests = [option for option in OPTIONS if option.table == "guest"]
    changed = [option.name for option in of_guests if option.arguments(spec)]
    if changed:
        names = [option.name for option in of_guests]
        raise UsageError(
            f"{spec.target} does not run in a guest kernel, so {min(changed)} cannot be chosen",
            hint=f"{', '.join(names[:-1])} and {names[-1]} belong to targets such as uml:nvme-tlc",
        )
    return backend


def _settle_machine(spec: ExperimentSpec, backend: Backend) -> ExperimentSpec:
    """Names the cost table of models, so that the record says on which one they ran."""
    name = backend.default_machine(spec, _kernels_of(spec))
    if spec.machine is not None or name is None:
        return spec
    return spec.model_copy(update={"machine": load_machine(name)})


def _fresh_run_id() -> str:
    return new_run_id(datetime.datetime.now(datetime.timezone.utc))


def _session_options(
    spec: ExperimentSpec,
    run_id: str,
    *,
    dry_run: bool = False,
    timeline_file: str | None = None,
    workers: Workers = THIS_MACHINE,
) -> SessionOptions:
    return SessionOptions(
        run_id=run_id,
        kernels=tuple(dict.fromkeys(_kernels_of(spec))),
        timeline_file=timeline_file,
        workers=workers,
        dry_run=dry_run,
        **spec.conditions(),
    )


def _choice_for(spec: ExperimentSpec, session: Session) -> SchedulerChoice:
    if spec.schedulers:
        return across_kernels(spec.schedulers[:1], spec.kernels)[0]
    name = session.target.default_scheduler
    if name is None:
        raise SpecError("the target has no scheduler of its own", hint="name one with --scheduler")
    return across_kernels([SchedulerChoice(name=name, label=name)], spec.kernels)[0]


def _single_cell(spec: ExperimentSpec, choice: SchedulerChoice) -> Cell:
    workload = spec.workloads[0]
    key = CellKey(
        block=0, sequence=0, position=0, workload=workload.name, scheduler=choice.label, seed=spec.seed
    )
    return Cell(key=key, scheduler=choice, workload=workload)
