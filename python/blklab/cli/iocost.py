"""`blklab iocost`: io.cost's parameters for a disk, for the kernel and for udev."""

from __future__ import annotations

import click

from blklab.cli.commands import described_command
from blklab.cli.iocost_atlas import AtlasRequest, print_from_atlas
from blklab.cli.iocost_text import hwdb_head, plan_text, print_iocost
from blklab.cli.options import file_size_option, json_option, quiet_option, seed_option
from blklab.cli.output import require_writable, write_text
from blklab.errors import UsageError
from blklab.labs.calibration.disk.ground import opened_ground
from blklab.labs.iocost.determine import QUEUE, IoCostRequest, determined, require_suitable
from blklab.labs.iocost.document import IoCostDocument
from blklab.labs.iocost.estimates import LEAST_ROUNDS
from blklab.labs.iocost.loads import coefficient_loads
from blklab.labs.iocost.measuring import IocostPlan
from blklab.labs.iocost.solutions import SOLUTIONS
from blklab.labs.iocost.stages import IocostStages
from blklab.labs.iocost.written import hwdb_text
from blklab.progress.line import ProgressLine
from blklab.quantities.sample_units import rough_duration
from blklab.quantities.units import parse_duration_ns, parse_size_bytes
from blklab.report.terminal import console_out
from blklab.spec.machines import DEFAULT_MACHINE, load_machine
from blklab.spec.targets import parse_target

_LEAST_RUNTIME_US = 100_000


class _IocostDisplay(ProgressLine):
    """The plan, and progress by runs with the time left."""

    def planned(self, plan: IocostPlan) -> None:
        """Prints the size and the time."""
        if not self._quiet:
            self._console.prose(plan_text(plan))

    def announce(self, line: str) -> None:
        """A step that is not a measurement."""
        self.show(line)
        self.move(0, None)
        self.log(line)

    def measuring(self, name: str, *, done: int, planned: int, left_ns: int | None = None) -> None:
        """A measurement begins."""
        state = f"{done + 1} of {planned}"
        left = "" if left_ns is None else f"about {rough_duration(left_ns)} left"
        self.show(name, state, left)
        self.move(done, planned)
        self.log_now_and_then(", ".join(part for part in (name, state, left) if part))


@described_command(
    name="iocost",
    examples=(
        ("a modelled disk", "blklab iocost sim:ssd-sata --rounds 3"),
        (
            "the disk beneath a directory, as root; with a profile of it the quality of service too",
            "blklab iocost /srv --profile my-disk.toml",
        ),
        (
            "a file for udev's hardware database",
            "blklab iocost /srv --profile my-disk.toml --hwdb 91-my-disk.hwdb",
        ),
        (
            "a drive that others measured, without measuring",
            "blklab iocost --from-atlas 'Samsung SSD 980 PRO 1TB' --solution isolation",
        ),
    ),
)
@click.argument("target", metavar="TARGET", required=False)
@click.option(
    "--from-atlas",
    "atlas_model",
    metavar="MODEL",
    help="Measure nothing: take what others measured of this drive; `all` with --hwdb for all drives.",
)
@click.option(
    "--profile",
    metavar="FILE",
    help="A model of the disk to sweep, such as a profile that calibrate wrote. Default: a modelled target.",
)
@click.option("--no-sweep", is_flag=True, help="Only measure; the one solution is naive.")
@click.option(
    "--solution",
    type=click.Choice(SOLUTIONS),
    help="Solution whose lines to print. Default: isolation after a sweep, else naive.",
)
@click.option("--hwdb", "hwdb_file", metavar="FILE", help="Write a file for udev's hardware database.")
@click.option(
    "--drive",
    "models",
    metavar="MODEL",
    multiple=True,
    help="The drive's model in udev (ID_MODEL). Repeatable. Default: the target's.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=LEAST_ROUNDS),
    default=6,
    show_default=True,
    help="Times that each of the eight loads runs.",
)
@click.option(
    "--runtime", metavar="TIME", default="2s", show_default=True, help="Length of a load in a round."
)
@click.option(
    "--processes",
    type=click.IntRange(min=1, max=64),
    default=1,
    show_default=True,
    help="Processes of random loads, for disks that one process cannot keep busy.",
)
@file_size_option
@click.option(
    "--machine",
    metavar="NAME|FILE",
    help=f"Cost table of models. Default: the profile's if it names one, else {DEFAULT_MACHINE}.",
)
@seed_option
@json_option
@click.option("--dry-run", is_flag=True, help="Print the commands of the loads, and change nothing.")
@quiet_option
def command(
    *,
    target: str | None,
    atlas_model: str | None,
    profile: str | None,
    no_sweep: bool,
    solution: str | None,
    hwdb_file: str | None,
    models: tuple[str, ...],
    rounds: int,
    runtime: str,
    processes: int,
    file_size: str | None,
    machine: str | None,
    seed: int,
    json_file: str | None,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Determine io.cost's parameters for a disk: the model's coefficients and the quality of service.

    It measures a disk (a directory on it, loop:SIZE, or a model) in random rounds and prints io.cost.model
    and io.cost.qos with intervals. With a model of the disk it also sweeps the vrate in the simulator, beside
    a heavy group, and finds the range in which io.cost keeps latency low without losing bandwidth.

    Nothing is applied. --hwdb writes the solutions for udev's hardware database.
    """
    if atlas_model is not None:
        print_from_atlas(
            atlas_model,
            AtlasRequest(target=target, solution=solution, hwdb_file=hwdb_file, names=models),
            refused=None if json_file is None and profile is None else "--json or --profile",
        )
        return
    if target is None:
        raise click.UsageError("Missing argument 'TARGET': a directory on the disk, or a model.")
    request = IoCostRequest(
        target=target,
        profile=profile,
        sweeps=not no_sweep,
        models=models,
        needs_model=hwdb_file is not None,
        machine=None if machine is None else load_machine(machine),
        solution=solution,
        stages=IocostStages(rounds=rounds, runtime_us=_runtime_us(runtime), processes=processes, seed=seed),
        file_bytes=None if file_size is None else parse_size_bytes(file_size),
    )
    console = console_out()
    if dry_run:
        console.print(*_commands(request), sep="\n", soft_wrap=True)
        return
    require_writable(hwdb_file, json_file)
    with _IocostDisplay(quiet=quiet) as display:
        found = determined(request, display)
    if hwdb_file is not None:
        write_text(hwdb_file, _hwdb(found))
    if json_file is not None:
        write_text(json_file, found.model_dump_json(by_alias=True, indent=2))
    if "-" not in {json_file, hwdb_file}:
        print_iocost(found, console, hwdb_file)


def _runtime_us(written: str) -> int:
    runtime_us = parse_duration_ns(written) // 1000
    if runtime_us < _LEAST_RUNTIME_US:
        raise UsageError(f"a load of {written} tells too little", hint="--runtime 100ms at least")
    return runtime_us


def _hwdb(found: IoCostDocument) -> str:
    return hwdb_text(found.solutions, models=found.models, head=hwdb_head(found))


def _commands(request: IoCostRequest) -> list[str]:
    """One run of each of the six loads as commands."""
    stages = request.stages
    with opened_ground(
        parse_target(request.target),
        seed=stages.seed,
        machine=request.machine or load_machine(DEFAULT_MACHINE),
        file_bytes=request.file_bytes,
        queue=QUEUE,
        dry_run=True,
    ) as ground:
        require_suitable(ground)
        loads = coefficient_loads(stages.processes, ground.facts.queues.depth).values()
        return [
            line
            for load in loads
            for line in ground.commands(load, runtime_us=stages.runtime_of(load, ground.facts))
        ]
