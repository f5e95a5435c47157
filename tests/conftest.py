"""Fixtures and settings that tests of several folders share."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from waiting import PATIENCE_SECONDS

pytest_plugins = ["chromium", "command_runs", "playground_page", "real_devices", "seeds", "stand_in_source"]


def pytest_configure() -> None:
    """Restores the default action of signals that tests send.

    A shell starts background processes with SIGINT ignored, nohup its program with SIGHUP, and programs that
    the tests start inherit that.
    """
    for number, action in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, action)


# The time to draw and to run an example depends on the machine's other work and on the order of imports.
_SLOW_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Examples that depend on the test alone: what passed here passes elsewhere. `make test-all` draws others
# each time (`--hypothesis-profile=explore`).
settings.register_profile("blklab", _SLOW_MACHINE, derandomize=True)
settings.register_profile("explore", _SLOW_MACHINE)
settings.load_profile("blklab")


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's store; colours and width do not depend on the terminal."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
    monkeypatch.delenv("BLKLAB_STORE", raising=False)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """A real PostgreSQL server, on a socket in its own folder."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    initdb = shutil.which("initdb") or (str(folders[-1] / "initdb") if folders else None)
    if initdb is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    programs = Path(initdb).resolve().parent
    # PostgreSQL refuses to run as root.
    as_user: list[str] = []
    if os.geteuid() == 0:
        name = next((user for user in ("postgres", "nobody") if _is_user(user)), None)
        if name is None or shutil.which("setpriv") is None:
            pytest.skip("running as root, and neither a user postgres nor setpriv to become one")
        as_user = ["setpriv", f"--reuid={name}", "--clear-groups", "--"]
    with tempfile.TemporaryDirectory(prefix="blklab-postgresql-", ignore_cleanup_errors=True) as folder:
        if as_user:
            os.chown(folder, pwd.getpwnam(name or "").pw_uid, -1)
        data = f"{folder}/data"
        make = [*as_user, initdb, "-D", data, "-U", "blklab", "-A", "trust", "--no-sync"]
        subprocess.run(make, check=True, capture_output=True, cwd="/")
        control = [*as_user, str(programs / "pg_ctl"), "-D", data, "-w", "-t", f"{PATIENCE_SECONDS:.0f}"]
        options = f"-c listen_addresses='' -c unix_socket_directories='{folder}'"
        start = [*control, "-l", f"{folder}/log", "-o", options, "start"]
        subprocess.run(start, check=True, capture_output=True, cwd="/")
        try:
            yield f"postgresql://blklab@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=True, capture_output=True, cwd="/")


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
