"""The store on SQLite and on a real PostgreSQL: the same tests for both."""

from __future__ import annotations

import datetime
import platform
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy

from blklab.errors import StoreError, UnknownNameError
from blklab.records.experiment import ExperimentRecord
from blklab.records.locations import default_store_url
from blklab.records.store import Store, new_run_id
from blklab.testing.experiments import make_experiment, make_machine, make_spec


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'runs.sqlite'}"
    return str(request.getfixturevalue("postgresql_url"))


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.opened(url) as opened:
        yield opened


def _stored(store: Store, run_id: str, created_at: str = "2026-01-02T03:04:05+00:00") -> ExperimentRecord:
    """A made-up experiment, stored under a unique name."""
    record = make_experiment(make_spec(blocks=3)).model_copy(
        update={"run_id": run_id, "created_at": created_at}
    )
    store.begin(record)
    for sample in record.samples:
        store.add_sample(run_id, sample)
    return record


def test_what_is_stored_comes_back_whole(store: Store, url: str) -> None:
    record = _stored(store, "20260102-0304-aaaa")
    with Store.opened(url) as another:
        assert another.load("20260102-0304-aaaa") == record
    store.remove("20260102-0304-aaaa")


def test_the_latest_run_is_none_that_lists_leave_out(tmp_path: Path) -> None:
    with Store.opened(f"sqlite:///{tmp_path / 'runs.sqlite'}") as store:
        with store.part_of("ionice"):
            _stored(store, "20260102-0305-cccc", "2099-01-02T03:05:05+00:00")
        assert store.load("latest").run_id == "20260102-0305-cccc", "there is no other"
        _stored(store, "20260102-0304-bbbb")
        assert store.load("latest").run_id == "20260102-0304-bbbb"


def test_a_run_is_found_by_an_unambiguous_part_of_its_name(store: Store) -> None:
    _stored(store, "20260102-0304-bbbb")
    _stored(store, "20260102-0305-cccc", "2099-01-02T03:05:05+00:00")
    assert store.load("bbbb").run_id == "20260102-0304-bbbb"
    assert store.load("20260102-0305").run_id == "20260102-0305-cccc"
    assert store.load("latest").run_id == "20260102-0305-cccc"
    with pytest.raises(UnknownNameError, match="fits 2 runs"):
        store.load("20260102")
    with pytest.raises(UnknownNameError, match="no run 'zzzz'"):
        store.load("zzzz")
    assert [summary.run_id for summary in store.list_runs()] == ["20260102-0305-cccc", "20260102-0304-bbbb"]
    assert store.remove("bbbb") == "20260102-0304-bbbb"
    assert store.remove("cccc") == "20260102-0305-cccc"
    assert store.list_runs() == []


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_several_programs_fill_one_empty_store(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Four processes create the tables at the same moment, and each stores an experiment of its own."""
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    else:
        url = _own_schema(str(request.getfixturevalue("postgresql_url")), "hosts")
    command = [sys.executable, "-c", _WRITER, url]
    pipe = subprocess.PIPE
    writers = [
        subprocess.Popen([*command, str(number)], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        for number in range(4)
    ]
    for writer in writers:
        assert writer.stdout
        writer.stdout.readline()
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, errors = writer.communicate()
        assert writer.returncode == 0, errors
    with Store.opened(url) as store:
        summaries = {summary.run_id: summary for summary in store.list_runs()}
        assert sorted(one.host for one in summaries.values()) == [f"host{number}" for number in range(4)]
        for number in range(4):
            record = store.load(f"20260102-0304-w{number:03d}")
            assert len(record.samples) == summaries[record.run_id].samples == 12
        assert {one.target.disks[0].model for one in store.list_targets()} == {"EXAMPLE HDD 4000"}


_WRITER = """
import sys
from blklab.records.store import Store
from blklab.testing.experiments import make_experiment, make_machine, make_spec
url, number = sys.argv[1:]
machine = make_machine().model_copy(update={"details": {"host": f"host{number}"}})
record = make_experiment(make_spec(blocks=3, seed=int(number) + 1), machine=machine)
record = record.model_copy(update={"run_id": f"20260102-0304-w00{number}"})
print("ready", flush=True)
sys.stdin.readline()
with Store.opened(url) as store:
    store.begin(record)
    for sample in record.samples:
        store.add_sample(record.run_id, sample)
"""


def _own_schema(url: str, name: str) -> str:
    """The address of an empty part of the server's database."""
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(f"CREATE SCHEMA {name}"))
    engine.dispose()
    return f"{url}&options=-csearch_path%3D{name}"


def test_the_latest_run_of_a_shared_store_is_this_machines(postgresql_url: str) -> None:
    url = _own_schema(postgresql_url, "latest")
    with Store.opened(url) as store:
        for run_id, host in (("20260102-0304-mine", platform.node()), ("20260103-0304-else", "other-host")):
            machine = make_machine().model_copy(update={"details": {"host": host}})
            record = make_experiment(make_spec(blocks=1), machine=machine)
            created_at = f"2026-01-{run_id[6:8]}T03:04:05+00:00"
            store.begin(record.model_copy(update={"run_id": run_id, "created_at": created_at}))
        assert store.load("latest").run_id == "20260102-0304-mine"
        store.remove("mine")
        with pytest.raises(UnknownNameError, match="no run of this machine"):
            store.load("latest")


def test_a_connection_that_was_cut_is_made_anew(postgresql_url: str) -> None:
    url = _own_schema(postgresql_url, "cut")
    with Store.opened(url) as store, Store.opened(url) as other:
        record = _stored(store, "20260102-0304-ffff")
        with other._engine.begin() as connection:
            connection.execute(
                sqlalchemy.text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid()"
                    " AND backend_type = 'client backend'"
                )
            )
        store.add_sample(record.run_id, record.samples[0].model_copy(update={"elapsed_ns": 7}))
        assert store.load(record.run_id).samples[0].elapsed_ns == 7


def test_a_run_made_again_replaces_its_former_self(store: Store) -> None:
    record = _stored(store, "20260102-0304-dddd")
    again = record.samples[0].model_copy(update={"elapsed_ns": 42})
    store.add_sample(record.run_id, again)
    samples = store.load(record.run_id).samples
    assert samples[0].elapsed_ns == 42
    assert len(samples) == len(record.samples)
    store.set_state(record.run_id, "interrupted")
    assert store.load(record.run_id).state == "interrupted"
    store.remove(record.run_id)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    path.write_bytes(b"this is not a database, but somebody may want it\n" * 40)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not a database"):
        Store(str(path))
    assert path.read_bytes() == before


def test_damaged_content_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with Store.opened(str(path)) as store:
        _stored(store, "20260102-0304-eeee")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE blklab_sample SET payload = '{\"cell\": 3}' WHERE sequence = 1")
    with Store.opened(str(path)) as store, pytest.raises(StoreError, match=r"20260102-0304-eeee .*damaged"):
        store.load("eeee")


def test_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    Store(str(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE blklab_format SET number = 99")
    with pytest.raises(StoreError, match="has format 99"):
        Store(str(path))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense://x", "no driver"),
        ("postgresql://nobody@127.0.0.1:9/none", "cannot be used"),
        ("sqlite:////proc/nowhere/runs.sqlite", "does not exist"),
    ],
)
def test_an_unreachable_store_is_one_clear_message(url: str, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        Store(url)


def test_the_default_is_in_the_xdg_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_store_url() == f"sqlite:///{tmp_path}/blklab/runs.sqlite"
    monkeypatch.setenv("BLKLAB_STORE", "postgresql://somewhere")
    assert default_store_url() == "postgresql://somewhere"


def test_run_ids_sort_by_time_and_differ() -> None:
    now = datetime.datetime(2026, 11, 21, 2, 31, tzinfo=datetime.timezone.utc)
    names = {new_run_id(now) for _ in range(50)}
    assert len(names) > 45
    assert all(name.startswith("20261121-0231-") for name in names)


_DYING = """
import sys
from blklab.records.store import Store
from blklab.testing.experiments import make_experiment, make_spec

record = make_experiment(make_spec(blocks=3)).model_copy(update={"run_id": sys.argv[2], "state": "running"})
with Store.opened(sys.argv[1]) as store:
    store.begin(record)
    print("begun", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are told apart by procfs")
def test_a_run_whose_process_is_dead_is_interrupted(store: Store, url: str) -> None:
    run_id = "20260102-0304-dead"
    command = [sys.executable, "-c", _DYING, url, run_id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        assert store.load(run_id).state == "running"
        assert store.is_under_way(run_id)
        process.kill()
    assert store.load(run_id).state == "interrupted"
    assert [summary.state for summary in store.list_runs() if summary.run_id == run_id] == ["interrupted"]
    assert not store.is_under_way(run_id)
    store.set_state(run_id, "running")  # this process goes on with it
    assert store.load(run_id).state == "running"
    store.remove(run_id)


def test_a_store_of_an_older_version_gets_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with Store.opened(str(path)) as store:
        _stored(store, "20260102-0304-oldd")
        store.set_state("20260102-0304-oldd", "running")
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE blklab_process")
    with Store.opened(str(path)) as store:
        assert store.load("oldd").state == "running", "nothing is known of its process"
        assert not store.is_under_way("oldd")
        store.set_state("20260102-0304-oldd", "complete")
        assert store.load("oldd").state == "complete"
