"""Guest kernels as a backend: real scheduler code on a modelled disk, without root.

Each run boots User-mode Linux afresh. In it the guest program serves the modelled disk, configures it and
generates the load. In virtual time, the default, a run depends only on cell, kernel and guest program, so
runs are parallel, one on each processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from blklab.backends.modelled_device import describe_disk, device_facts, require_model, with_machine
from blklab.backends.protocol import Session, SessionOptions
from blklab.backends.uml_arrays import array_of, require_array
from blklab.backends.uml_clocks import check_clocks
from blklab.backends.uml_commands import GuestCommands
from blklab.backends.uml_processor_time import check_processor_time, without_costs
from blklab.backends.uml_session import UmlSession, summary_of
from blklab.errors import RequirementError
from blklab.guests.boot import Boot
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.guests.kernels.names import DEFAULT_NAME
from blklab.guests.kernels.store import find
from blklab.guests.programs import program_files
from blklab.linux.load.fio import find_fio
from blklab.linux.machine.requirements import require_linux
from blklab.records.samples import TargetDescription
from blklab.shipped import require_guest_program
from blklab.simulator.core import device_request
from blklab.spec.experiment import Conditions
from blklab.spec.loads import Load
from blklab.spec.machines import DEFAULT_MACHINE, ZERO_CPU_TIME
from blklab.spec.permits import rule_for
from blklab.spec.profiles import load_profile
from blklab.spec.targets import ModelTarget, Target


class UmlBackend:
    """Serves ``uml:`` targets."""

    NAME = "uml"
    TIMELINES = False
    COMMANDS = rule_for(Load.COMMAND, NAME) is None
    GUESTS = True
    HISTORY = False
    SWITCHBACK = False
    MODULES = False

    def default_machine(self, options: Conditions, kernels: Sequence[str | None]) -> str:
        """The usual table where guests can take one, else the one that is free."""
        found = [find(name or DEFAULT_NAME) for name in kernels]
        return ZERO_CPU_TIME if without_costs(found, options.guest) else DEFAULT_MACHINE

    def describe(self, target: Target) -> TargetDescription:
        """Describes the modelled device and the schedulers of the default kernel.

        Raises:
            BlklabError: if there is no such device or kernel.
        """
        return _describe(require_model(target), {DEFAULT_NAME: find()}, SessionOptions(run_id=""))

    @contextmanager
    def open(self, target: Target, options: SessionOptions) -> Iterator[Session]:
        """Opens a session with a scratch directory for its guests, which is removed at the end."""
        require_linux("running guest kernels")
        model = require_model(target, precondition=options.precondition)
        names = dict.fromkeys(name or DEFAULT_NAME for name in options.kernels or (None,))
        kernels = {name: find(name) for name in names}
        check_clocks(list(kernels.values()), options.guest)
        check_processor_time(list(kernels.values()), options.machine, options.guest)
        array = array_of(device_facts(model, load_profile(model.device)))
        for kernel in kernels.values():
            require_array(array, kernel, options.guest)
        description = _describe(model, kernels, options)
        if options.guest.time == "virtual" and options.machine is not None:
            description = with_machine(description, options.machine.on_one_processor())
        init = require_guest_program()
        programs = program_files(_programs(options))
        boot = Boot(options.guest.memory_bytes, virtual_time=options.guest.time == "virtual")
        device = device_request(model, load_profile(model.device))
        commands = GuestCommands(options.guest, rotational=bool(description.disks[0].rotational))
        session = UmlSession(
            description, device, options, kernels, init=init, programs=programs, boot=boot, commands=commands
        )
        if options.dry_run:
            yield session
            return
        with ExitStack() as stack:
            for kernel in kernels.values():
                stack.enter_context(kernel.in_use())
            stack.enter_context(commands)
            session.guests = stack.enter_context(options.workers.guests(boot))
            session.parallel = session.guests.parallel
            yield session


BACKEND = UmlBackend()


def _programs(options: SessionOptions) -> list[str]:
    """The programs of this machine that the guest runs.

    Raises:
        MissingToolError: if there is no usable fio.
    """
    guest = options.guest
    programs = [] if guest.filesystem is None else [f"mkfs.{guest.filesystem}"]
    if guest.generator == "fio":
        find_fio()
        programs += ["fio", "sh", "tee"]  # fio joins control groups through a shell
    return programs


def _describe(
    model: ModelTarget, kernels: dict[str, KernelBuild], options: SessionOptions
) -> TargetDescription:
    profile = load_profile(model.device)
    first, *others = kernels.values()
    schedulers = [name for name in first.schedulers if all(name in kernel.schedulers for kernel in others)]
    if not schedulers:
        raise RequirementError(f"the kernels {', '.join(kernels)} have no scheduler in common")
    facts = device_facts(model, profile)
    disk = describe_disk(profile, facts, schedulers)
    guest = options.guest
    clock = "virtual time" if guest.time == "virtual" else "host time"
    details = {"kind": profile.kind, **dict(model.parameters)}
    array = array_of(facts)
    details["array"] = "" if array is None else array.description(guest.filesystem)
    details |= {f"kernel {name}": summary_of(kernel) for name, kernel in kernels.items()}
    details |= {"time": guest.time, "generator": guest.generator, "filesystem": guest.filesystem or ""}
    names = ", ".join(f"{name} ({kernel.version})" for name, kernel in kernels.items())
    versions = f"the kernel{'s' if others else ''} {names}"
    return TargetDescription(
        target=model.text,
        backend=UmlBackend.NAME,
        summary=f"{profile.name} under {versions} in {clock}: {profile.summary}",
        disks=[disk],
        default_scheduler=disk.scheduler if disk.scheduler in schedulers else schedulers[0],
        schedulers=schedulers,
        details={key: value for key, value in details.items() if value},
    )
