"""A page in headless Firefox over WebDriver BiDi: enough to load a file, look and listen."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from waiting import PATIENCE_SECONDS, wait_until

NAMES = ("firefox", "firefox-esr")

_SETTINGS = {
    "app.update.enabled": False,
    "browser.newtabpage.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.server": "",
}


def find_firefox() -> str | None:
    """Path of a Firefox, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass
class FirefoxPage:
    """A tab, as far as `chromium.Page` and it have the same to offer."""

    connection: ClientConnection
    context: str = ""
    errors: list[str] = field(default_factory=list)
    """Script errors, console errors, violations of the page's policy."""
    requests: list[str] = field(default_factory=list)
    """Addresses that the page asked for."""
    _last_id: int = 0

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command and returns its result; events that come meanwhile are noted."""
        self._last_id += 1
        self.connection.send(json.dumps({"id": self._last_id, "method": method, "params": parameters}))
        while True:
            message: dict[str, Any] = json.loads(self.connection.recv(timeout=PATIENCE_SECONDS))
            self._note(message)
            if message.get("id") == self._last_id:
                if message["type"] == "error":
                    raise RuntimeError(f"{method}: {message['message']}")
                result: dict[str, Any] = message["result"]
                return result

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        match message.get("method"):
            case "log.entryAdded" if parameters["level"] in ("error", "warn"):
                self.errors.append(str(parameters["text"]))
            case "network.beforeRequestSent":
                self.requests.append(str(parameters["request"]["url"]))

    def emulate(self, *, width: int, height: int = 900) -> None:
        """Sets the size of the window."""
        self.command(
            "browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height}
        )

    def navigate(self, url: str) -> None:
        """Opens an address."""
        self.command("browsingContext.navigate", context=self.context, url=url, wait="complete")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, as JSON can hold it; awaits a promise."""
        answer = self.command(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await ({expression})))()",
            target={"context": self.context},
            awaitPromise=True,
            userActivation=True,
        )
        if answer["type"] == "exception":
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']['text']}")
        return json.loads(answer["result"]["value"]) if "value" in answer["result"] else None


@contextlib.contextmanager
def open_firefox(program: str) -> Iterator[FirefoxPage]:
    """A fresh Firefox with an empty profile and one tab, ended with all of its processes."""
    with tempfile.TemporaryDirectory(prefix="blklab-firefox-", ignore_cleanup_errors=True) as profile:
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in _SETTINGS.items()]
        (Path(profile) / "user.js").write_text("\n".join(lines))
        process = subprocess.Popen(
            [program, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"],
            env=os.environ | {"HOME": profile, "MOZ_CRASHREPORTER_DISABLE": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            address = _address(Path(profile) / "WebDriverBiDiServer.json", process)
            with connect(
                f"{address}/session",
                max_size=None,
                compression=None,
                proxy=None,
                open_timeout=PATIENCE_SECONDS,
                ping_interval=None,
            ) as link:
                yield _first_page(link)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _address(file: Path, process: subprocess.Popen[bytes]) -> str:
    def server() -> dict[str, Any]:
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            found: dict[str, Any] = json.loads(file.read_text("utf-8"))
            return found
        return {}

    wait_until(server, "firefox has opened its debugging port", process=process)
    return f"ws://{server()['ws_host']}:{server()['ws_port']}"


def _first_page(connection: ClientConnection) -> FirefoxPage:
    page = FirefoxPage(connection)
    page.command("session.new", capabilities={})
    page.context = page.command("browsingContext.getTree")["contexts"][0]["context"]
    page.command("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
    return page
