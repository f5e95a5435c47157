"""A page in headless chromium over the DevTools protocol: enough to load a file, look and listen."""

from __future__ import annotations

import base64
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

import pytest
from websockets.sync.client import ClientConnection, connect

from waiting import PATIENCE_SECONDS, wait_until

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)


def find_chromium() -> str | None:
    """Path of a chromium, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass
class Page:
    """A tab. Its errors are collected as they happen."""

    connection: ClientConnection
    session: str
    errors: list[str] = field(default_factory=list)
    """Script errors, console errors, violations of the page's policy."""
    requests: list[str] = field(default_factory=list)
    """Addresses that the page asked for, its own file and data: included."""
    _last_id: int = 0

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command and waits for its answer."""
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters, "sessionId": self.session}
        self.connection.send(json.dumps(message))
        while True:
            answer = self._receive()
            if answer.get("id") == self._last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.connection.recv(timeout=PATIENCE_SECONDS))
        parameters = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(str(parameters["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                self.errors.append(str(parameters["args"]))
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                self.errors.append(str(parameters["entry"]["text"]))
            case "Network.requestWillBeSent":
                self.requests.append(str(parameters["request"]["url"]))
        return message

    def emulate(self, *, width: int, height: int = 900, dark: bool = False, media: str = "screen") -> None:
        """Sets the window, the colour scheme and the medium."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def navigate(self, url: str) -> None:
        """Begins to open an address."""
        self.command("Page.navigate", url=url)

    def load(self, file: Path) -> None:
        """Opens a file and waits until it is loaded."""
        self.navigate(file.resolve().as_uri())
        wait_until(lambda: self.evaluate("document.readyState") == "complete", f"{file} is loaded")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; awaits a promise."""
        answer = self.command(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def screenshot(self, destination: Path) -> None:
        """The whole page as PNG."""
        answer = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        destination.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self, destination: Path) -> None:
        """The page on paper."""
        answer = self.command("Page.printToPDF", printBackground=False, paperWidth=8.27, paperHeight=11.69)
        destination.write_bytes(base64.b64decode(answer["data"]))


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    program = find_chromium()
    if program is None:
        pytest.skip("there is no chromium here (Debian: chromium)")
    with open_page(program) as opened:
        yield opened


@contextlib.contextmanager
def open_page(program: str) -> Iterator[Page]:
    """A fresh browser with an empty profile and one tab, ended with all of its processes."""
    # The browser's helpers may still write for a moment after they were told to end.
    with tempfile.TemporaryDirectory(prefix="blklab-chromium-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            port, path = _debugging_address(Path(profile) / "DevToolsActivePort", process)
            with connect(
                f"ws://127.0.0.1:{port}{path}",
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


def _debugging_address(file: Path, process: subprocess.Popen[bytes]) -> tuple[str, str]:
    def lines() -> list[str]:
        return file.read_text().splitlines() if file.exists() else []

    wait_until(lambda: len(lines()) == 2, "chromium has opened its debugging port", process=process)
    port, path = lines()
    return port, path


def _first_page(connection: ClientConnection) -> Page:
    browser = Page(connection, "")
    targets = browser_command(connection, "Target.getTargets")["targetInfos"]
    target = next(one["targetId"] for one in targets if one["type"] == "page")
    attached = browser_command(connection, "Target.attachToTarget", targetId=target, flatten=True)
    page = Page(connection, attached["sessionId"], browser.errors, browser.requests, 1000)
    for domain in ("Page", "Runtime", "Log", "Network"):
        page.command(f"{domain}.enable")
    return page


def browser_command(connection: ClientConnection, method: str, **parameters: Any) -> dict[str, Any]:
    """A command to the browser itself, outside any tab."""
    connection.send(json.dumps({"id": 1, "method": method, "params": parameters}))
    while True:
        answer = json.loads(connection.recv(timeout=PATIENCE_SECONDS))
        if answer.get("id") == 1:
            result: dict[str, Any] = answer["result"]
            return result
