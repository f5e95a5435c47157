"""The store of runs: any database that SQLAlchemy supports; by default SQLite under the XDG data folder.

It has three tables: experiments with their specification, target and machine as JSON; samples, one row per
run, written as soon as the run ends, so that an interruption loses no finished run; and the process that made
an experiment last, so that one whose process was killed does not count as running for ever.
"""

from __future__ import annotations

import datetime
import json
import logging
import platform
import secrets
import shlex
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import ForeignKey, String, Text, create_engine, event, func, insert, inspect, select, text
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from blklab.errors import BlklabError, StoreError, UnknownNameError
from blklab.records.behaviour import Behaviour
from blklab.records.experiment import ExperimentRecord, RunState
from blklab.records.locations import default_store_url
from blklab.records.run_ids import check_run_id
from blklab.records.running_process import RunningProcess, is_alive, this_process
from blklab.records.samples import MachineDescription, RunSample, TargetDescription
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.folders import data_folder
from blklab.spec.mistakes import first_mistake

# SQLAlchemy logs with its traceback what it also raises; without a handler Python would print that.
logging.getLogger("sqlalchemy").addHandler(logging.NullHandler())

FORMAT = 1
"""Number of the tables' layout; a store with another number is refused."""

_CREATION_LOCK = 0x626C6B6C6162
"""Key of PostgreSQL's advisory lock under which tables are created: ``blklab`` in ASCII."""
_PATIENCE_MS = 10_000
"""For another program that has locked an SQLite file."""
_LOOK_AGAIN_S = 0.01
_AT_ONCE = 500
"""Samples whose texts are in memory together."""
_RUN_ID_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"


class _Base(DeclarativeBase):
    pass


class _Format(_Base):
    __tablename__ = "blklab_format"
    number: Mapped[int] = mapped_column(primary_key=True)


class _Experiment(_Base):
    __tablename__ = "blklab_experiment"
    run_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    created_at: Mapped[str] = mapped_column(String(40), index=True)
    state: Mapped[str] = mapped_column(String(16))
    blklab_version: Mapped[str] = mapped_column(String(40))
    spec: Mapped[str] = mapped_column(Text)
    target: Mapped[str] = mapped_column(Text)
    machine: Mapped[str] = mapped_column(Text)
    warnings: Mapped[str] = mapped_column(Text)


class _Sample(_Base):
    __tablename__ = "blklab_sample"
    run_id: Mapped[str] = mapped_column(
        ForeignKey("blklab_experiment.run_id", ondelete="CASCADE"), primary_key=True
    )
    sequence: Mapped[int] = mapped_column(primary_key=True)
    payload: Mapped[str] = mapped_column(Text)


class _Process(_Base):
    __tablename__ = "blklab_process"
    run_id: Mapped[str] = mapped_column(
        ForeignKey("blklab_experiment.run_id", ondelete="CASCADE"), primary_key=True
    )
    payload: Mapped[str] = mapped_column(Text)


class _Remark(_Base):
    """A fact about an experiment that its record does not hold."""

    __tablename__ = "blklab_remark"
    run_id: Mapped[str] = mapped_column(
        ForeignKey("blklab_experiment.run_id", ondelete="CASCADE"), primary_key=True
    )
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    """`_STUDY`, `_VERDICT` or `_BEHAVIOURS`."""
    payload: Mapped[str] = mapped_column(Text)


_STUDY, _VERDICT, _BEHAVIOURS = "study", "verdict", "behaviours"
_LIST_OF_BEHAVIOURS = TypeAdapter(list[Behaviour])


@dataclass(frozen=True)
class RunSummary:
    """A stored experiment in one line."""

    run_id: str
    created_at: str
    state: str
    target: str
    schedulers: list[str]
    workloads: list[str]
    samples: int
    host: str = ""
    """The machine that made it."""
    models: list[str] = field(default_factory=list)
    """Models of the disks that it tested."""
    verdict: str = ""
    """In a few words; empty for a run without one."""
    study: str = ""
    """The study whose part it is; empty for a run of its own."""


@dataclass(frozen=True)
class StoredTarget:
    """The target of a stored experiment and the machine that tested it."""

    run_id: str
    target: TargetDescription
    machine: MachineDescription
    study: str = ""
    """The study whose part it is; empty for a run of its own."""


def new_run_id(now: datetime.datetime) -> str:
    """A name for a run, sortable by time and short enough to type: ``20261121-0231-k3f9``."""
    return f"{now:%Y%m%d-%H%M}-" + "".join(secrets.choice(_RUN_ID_LETTERS) for _ in range(4))


class Store:
    """An open store."""

    def __init__(self, url: str | None = None) -> None:
        """Opens a store and creates missing tables.

        Args:
            url: A database URL (``postgresql+psycopg://…``) or the path of an SQLite file.

        Raises:
            StoreError: if it cannot be reached, is damaged, or has another layout.
        """
        self._engine = _engine(url or default_store_url())
        self._shown = self._engine.url.render_as_string(hide_password=True)
        self._study = ""
        with self._reporting():
            self._prepare()

    def _prepare(self) -> None:
        tables = set(inspect(self._engine).get_table_names())
        ours = {table.name for table in _Base.metadata.sorted_tables}
        if _Format.__tablename__ not in tables and tables & ours:
            raise StoreError(f"the store {self._shown} lacks its format number")
        found = self._formats() if ours <= tables else []
        if not found:
            self._create_tables()
            found = self._formats()
        if found != [FORMAT]:
            raise StoreError(
                f"the store {self._shown} has format {found[0]}; this version of blklab reads {FORMAT}",
                hint="use the version that wrote it, or name another store with --store",
            )

    def _create_tables(self) -> None:
        """Creates what is missing, all or nothing: several programs may open an empty store at once."""
        with self._engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATION_LOCK})
            elif connection.dialect.name == "sqlite":
                # The driver begins no transaction of its own before a table is created.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            _Base.metadata.create_all(connection)
            if connection.scalar(select(func.count()).select_from(_Format)) == 0:
                connection.execute(insert(_Format).values(number=FORMAT))

    def _formats(self) -> list[int]:
        with Session(self._engine) as session:
            return list(session.scalars(select(_Format.number)))

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error).splitlines()[0]
            raise StoreError(
                f"the store {self._shown} cannot be used: {reason}",
                hint="its content is unchanged; name another store with --store, or move this one away",
            ) from error

    @classmethod
    @contextmanager
    def opened(cls, url: str | None = None) -> Iterator[Store]:
        """Opens a store and closes it at the end; arguments and errors as for the constructor."""
        store = cls(url)
        try:
            yield store
        finally:
            store.close()

    def close(self) -> None:
        """Releases the database."""
        self._engine.dispose()

    @contextmanager
    def part_of(self, study: str) -> Iterator[None]:
        """Marks the experiments that begin meanwhile as parts of a study, which lists leave out."""
        self._study = study
        try:
            yield
        finally:
            self._study = ""

    def note_verdict(self, run_id: str, verdict: str) -> None:
        """Keeps an experiment's verdict in a few words, for lists of runs."""
        with self._reporting(), Session(self._engine) as session:
            session.merge(_Remark(run_id=run_id, kind=_VERDICT, payload=verdict))
            session.commit()

    def note_behaviours(self, run_id: str, behaviours: Sequence[Behaviour]) -> None:
        """Keeps what an experiment's schedulers did in runs that were observed."""
        payload = _LIST_OF_BEHAVIOURS.dump_json(list(behaviours)).decode()
        with self._reporting(), Session(self._engine) as session:
            session.merge(_Remark(run_id=run_id, kind=_BEHAVIOURS, payload=payload))
            session.commit()

    def begin(self, record: ExperimentRecord) -> None:
        """Stores a new experiment without samples."""
        with self._reporting(), Session(self._engine) as session:
            session.add(
                _Experiment(
                    run_id=record.run_id,
                    created_at=record.created_at,
                    state=record.state,
                    blklab_version=record.blklab_version,
                    spec=record.spec.model_dump_json(),
                    target=record.target.model_dump_json(),
                    machine=record.machine.model_dump_json(),
                    warnings="\n".join(record.warnings),
                )
            )
            session.flush()
            _note_process(session, record.run_id, record.state)
            if self._study:
                session.merge(_Remark(run_id=record.run_id, kind=_STUDY, payload=self._study))
            session.commit()

    def add_samples(self, run_id: str, samples: Iterable[RunSample]) -> None:
        """Adds several samples together: all or none of them.

        Raises:
            StoreError: as for `add_sample`.
        """
        with self._reporting(), Session(self._engine) as session:
            for sample in samples:
                session.merge(
                    _Sample(run_id=run_id, sequence=sample.cell.sequence, payload=sample.model_dump_json())
                )
            session.commit()

    def add_sample(self, run_id: str, sample: RunSample) -> None:
        """Stores one run at once; a run that is repeated after a resume replaces the former one."""
        self.add_samples(run_id, [sample])

    def set_state(self, run_id: str, state: RunState) -> None:
        """Stores the state of an experiment."""
        with self._reporting(), Session(self._engine) as session:
            experiment = session.get_one(_Experiment, run_id)
            experiment.state = state
            _note_process(session, run_id, state)
            session.commit()

    def add_warning(self, run_id: str, warning: str) -> None:
        """Adds a warning that came up while an experiment was made."""
        with self._reporting(), Session(self._engine) as session:
            experiment = session.get_one(_Experiment, run_id)
            experiment.warnings = "\n".join(filter(None, [experiment.warnings, warning]))
            session.commit()

    def is_under_way(self, run_id: str) -> bool:
        """Tells whether a living process of this machine makes the run; False if that cannot be seen."""
        with self._reporting(), Session(self._engine) as session:
            experiment = self._find(session, run_id)
            return experiment.state == "running" and _process_lives(session, experiment.run_id) is True

    def set_spec(self, run_id: str, spec: ExperimentSpec) -> None:
        """Replaces a specification: a resumed experiment may have more blocks or another budget."""
        with self._reporting(), Session(self._engine) as session:
            experiment = session.get_one(_Experiment, run_id)
            experiment.spec = spec.model_dump_json()
            session.commit()

    def load(self, run_id: str) -> ExperimentRecord:
        """Loads an experiment with all its samples.

        Args:
            run_id: Its name, an unambiguous beginning or end of it, or ``latest`` (of a store on a server
                the latest of this machine).

        Raises:
            UnknownNameError: if there is none, or several match.
            StoreError: if its data are damaged.
        """
        with self._reporting(), Session(self._engine) as session:
            experiment = self._find(session, run_id)
            wanted = (
                select(_Sample.payload).where(_Sample.run_id == experiment.run_id).order_by(_Sample.sequence)
            )
            # Some at a time: the texts of a long experiment would take as much memory as its samples.
            payloads = session.scalars(wanted.execution_options(yield_per=_AT_ONCE))
            with self._reading(experiment.run_id):
                return ExperimentRecord(
                    run_id=experiment.run_id,
                    created_at=experiment.created_at,
                    state=_state_of(session, experiment),
                    blklab_version=experiment.blklab_version,
                    spec=ExperimentSpec.model_validate_json(experiment.spec),
                    target=TargetDescription.model_validate_json(experiment.target),
                    machine=MachineDescription.model_validate_json(experiment.machine),
                    samples=[RunSample.model_validate_json(payload) for payload in payloads],
                    warnings=experiment.warnings.splitlines(),
                    behaviours=_behaviours_of(session, experiment.run_id),
                )

    @contextmanager
    def _reading(self, run_id: str) -> Iterator[None]:
        """Names the run whose data cannot be used; those of others are not touched."""
        try:
            yield
        except ValidationError as error:
            reason = f"{error.title} {first_mistake(error)}"
            raise self._unusable(run_id, reason) from error
        except BlklabError as error:
            raise self._unusable(run_id, error.message) from error

    def _unusable(self, run_id: str, reason: str) -> StoreError:
        return StoreError(
            f"run {run_id} in {self._shown} is damaged, of another version, or not blklab's ({reason})",
            hint=f"the other runs are not affected; `blklab runs --remove {shlex.quote(run_id)}` removes it",
        )

    def _find(self, session: Session, run_id: str) -> _Experiment:
        if run_id == "latest":
            return self._newest(session)
        if not run_id.strip():
            raise UnknownNameError("no run is named", hint="`blklab runs` lists them; latest is the newest")
        exact = session.get(_Experiment, run_id)
        if exact is not None:
            return exact
        names = session.scalars(select(_Experiment.run_id)).all()
        matching = [name for name in names if name.startswith(run_id) or name.endswith(f"-{run_id}")]
        if len(matching) == 1:
            return session.get_one(_Experiment, matching[0])
        if matching:
            raise UnknownNameError(
                f"{run_id!r} fits {len(matching)} runs", hint=", ".join(sorted(matching)[:8])
            )
        raise UnknownNameError(
            f"there is no run {run_id!r} in {self._shown}", hint="`blklab runs` lists them"
        )

    def _newest(self, session: Session) -> _Experiment:
        """The newest experiment that is no study's part, if there is one.

        On a server, which other machines may write to, it is the newest of this one.
        """
        of_studies = select(_Remark.run_id).where(_Remark.kind == _STUDY)
        own_first = _Experiment.run_id.in_(of_studies).asc()
        rows = session.execute(
            select(_Experiment.run_id, _Experiment.machine).order_by(own_first, _Experiment.created_at.desc())
        ).all()
        for run_id, machine in rows:
            if self._engine.dialect.name == "sqlite":
                # A container's name changes with every start, its file stays.
                return session.get_one(_Experiment, run_id)
            with self._reading(run_id):
                host = MachineDescription.model_validate_json(machine).host
            if host in ("", platform.node()):
                return session.get_one(_Experiment, run_id)
        if rows:
            raise UnknownNameError(
                f"no run of this machine is in {self._shown}", hint="`blklab runs` lists those of others"
            )
        raise UnknownNameError("no run is stored yet", hint="`blklab compare` makes one")

    def name_of(self, run_id: str) -> str:
        """The full name of an experiment.

        Args:
            run_id: As for `load`.

        Raises:
            UnknownNameError: if there is none, or several match.
        """
        with self._reporting(), Session(self._engine) as session:
            return self._find(session, run_id).run_id

    def list_runs(self, damaged: list[StoreError] | None = None) -> list[RunSummary]:
        """All experiments, the newest first.

        Args:
            damaged: Takes an error for each run that cannot be read, which is then left out.

        Raises:
            StoreError: if a run cannot be read and `damaged` is None.
        """
        with self._reporting(), Session(self._engine) as session:
            counts = dict(
                session.execute(select(_Sample.run_id, func.count()).group_by(_Sample.run_id)).all()
            )
            remarks = _remarks(session)
            summaries = []
            for experiment in session.scalars(select(_Experiment).order_by(_Experiment.created_at.desc())):
                try:
                    summary = self._summary(session, experiment, counts.get(experiment.run_id, 0))
                    known = remarks.get(experiment.run_id, {})
                    verdict, study = known.get(_VERDICT, ""), known.get(_STUDY, "")
                    summaries.append(replace(summary, verdict=verdict, study=study))
                except StoreError as error:  # noqa: PERF203 - one that is damaged hides no others
                    if damaged is None:
                        raise
                    damaged.append(error)
            return summaries

    def _summary(self, session: Session, experiment: _Experiment, samples: int) -> RunSummary:
        with self._reading(experiment.run_id):
            spec = ExperimentSpec.model_validate_json(experiment.spec)
            target = TargetDescription.model_validate_json(experiment.target)
            machine = MachineDescription.model_validate_json(experiment.machine)
            return RunSummary(
                run_id=check_run_id(experiment.run_id),
                created_at=experiment.created_at,
                state=_state_of(session, experiment),
                target=spec.target,
                schedulers=[choice.label for choice in spec.schedulers],
                workloads=[workload.name for workload in spec.workloads],
                samples=samples,
                host=machine.host,
                models=list(dict.fromkeys(disk.model for disk in target.disks if disk.model)),
            )

    def list_targets(self) -> list[StoredTarget]:
        """Targets and machines of all experiments, the newest first, without their samples.

        Raises:
            StoreError: if data are damaged.
        """
        with self._reporting(), Session(self._engine) as session:
            rows = session.execute(
                select(_Experiment.run_id, _Experiment.target, _Experiment.machine).order_by(
                    _Experiment.created_at.desc()
                )
            ).all()
            remarks = _remarks(session)
        targets = [self._stored_target(*row) for row in rows]
        return [replace(one, study=remarks.get(one.run_id, {}).get(_STUDY, "")) for one in targets]

    def _stored_target(self, run_id: str, target: str, machine: str) -> StoredTarget:
        with self._reading(run_id):
            return StoredTarget(
                check_run_id(run_id),
                TargetDescription.model_validate_json(target),
                MachineDescription.model_validate_json(machine),
            )

    def remove(self, run_id: str) -> str:
        """Removes an experiment and its samples, and returns its full name."""
        with self._reporting(), Session(self._engine) as session:
            experiment = self._find(session, run_id)
            name = experiment.run_id
            for sample in session.scalars(select(_Sample).where(_Sample.run_id == name)):
                session.delete(sample)
            for process in session.scalars(select(_Process).where(_Process.run_id == name)):
                session.delete(process)
            for remark in session.scalars(select(_Remark).where(_Remark.run_id == name)):
                session.delete(remark)
            session.flush()
            session.delete(experiment)
            session.commit()
            return name


def _remarks(session: Session) -> dict[str, dict[str, str]]:
    """Facts that the records do not hold, by experiment and kind."""
    found: dict[str, dict[str, str]] = {}
    for remark in session.scalars(select(_Remark)):
        if remark.kind in (_STUDY, _VERDICT):
            found.setdefault(remark.run_id, {})[remark.kind] = remark.payload
    return found


def _behaviours_of(session: Session, run_id: str) -> list[Behaviour]:
    remark = session.get(_Remark, (run_id, _BEHAVIOURS))
    return [] if remark is None else _LIST_OF_BEHAVIOURS.validate_json(remark.payload)


def _note_process(session: Session, run_id: str, state: str) -> None:
    if state == "running":
        session.merge(_Process(run_id=run_id, payload=json.dumps(asdict(this_process()))))


def _state_of(session: Session, experiment: _Experiment) -> RunState:
    """The state, seen from here: a run whose process is dead was interrupted, whatever it wrote last."""
    state: RunState = experiment.state  # type: ignore[assignment]  # the record checks it
    if state == "running" and _process_lives(session, experiment.run_id) is False:
        return "interrupted"
    return state


def _process_lives(session: Session, run_id: str) -> bool | None:
    """None if it cannot be seen from here, or an older version of blklab made the run."""
    row = session.get(_Process, run_id)
    if row is None:
        return None
    try:
        return is_alive(RunningProcess(**json.loads(row.payload)))
    except (ValueError, TypeError):
        return None


def _engine(url: str) -> Engine:
    written = url if "://" in url else f"sqlite:///{url}"
    try:
        parsed = make_url(written)
        if parsed.get_backend_name() == "postgresql" and "+" not in parsed.drivername:
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() == "sqlite" and parsed.database:
            _require_folder(Path(parsed.database).parent)
        # A long experiment outlives idle connections, which firewalls and restarts of the server cut.
        engine = create_engine(parsed, pool_pre_ping=parsed.get_backend_name() != "sqlite")
    except OSError as error:
        raise StoreError(
            f"the store's folder cannot be created: {error.strerror}: {error.filename}"
        ) from error
    except NoSuchModuleError as error:
        raise StoreError(f"{written!r}: no driver for this kind of database") from error
    except ArgumentError as error:
        raise StoreError(f"{written!r} is not a database URL", hint="like sqlite:///runs.sqlite") from error
    except ImportError as error:
        raise StoreError(
            f"the driver for this store is missing: {error.name}",
            hint="for PostgreSQL: pip install 'blklab[postgresql]'",
        ) from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _tune_sqlite)
    return engine


def _require_folder(folder: Path) -> None:
    """Makes blklab's own data folder; any other, which a person has named, must be there.

    Raises:
        StoreError: if it is not.
        OSError: if blklab's own cannot be made.
    """
    if folder == data_folder():
        folder.mkdir(parents=True, exist_ok=True)
    elif not folder.is_dir():
        raise StoreError(
            f"the store's folder {folder} does not exist",
            hint=f"make it first: mkdir -p {shlex.quote(str(folder))}",
        )


def _tune_sqlite(connection: object, _record: object) -> None:
    """Write-ahead log and a full sync: a sample that was reported as stored survives a power cut."""
    cursor = connection.cursor()  # type: ignore[attr-defined]  # a DBAPI connection
    for pragma in (f"busy_timeout={_PATIENCE_MS}", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    deadline = time.monotonic() + _PATIENCE_MS / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as error:
            # SQLite itself does not wait if another program opens the new file at the same moment.
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(_LOOK_AGAIN_S)
    cursor.close()
