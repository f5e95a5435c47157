"""Drives the playground in a browser as a person does: by its controls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from blklab.errors import MissingToolError
from blklab.labs.playground.page import render_playground
from chromium import Page
from firefox import FirefoxPage
from waiting import wait_until

TWO_READERS = "#device=hdd-7200&scheduler=deadline&task=near,randread,depth:4&task=far,read,block:64k"
"""A small set-up: one scheduler, two tasks."""


@dataclass(frozen=True)
class Playground:
    """The open page."""

    page: Page | FirefoxPage
    file: Path

    def evaluate(self, expression: str) -> Any:
        """The value of an expression; fails the test for an error in the page."""
        value = self.page.evaluate(expression)
        assert self.page.errors == []
        return value

    @property
    def now_ns(self) -> float:
        """Where simulated time stands."""
        value: float = self.evaluate("playground.player.nowNs")
        return value

    @property
    def link(self) -> str:
        """The set-up in the address."""
        value: str = self.evaluate("location.hash")
        return value

    @property
    def problem(self) -> str:
        """The page's complaint; empty if there is none."""
        value: str = self.evaluate(
            "document.getElementById('problem').hidden ? '' : document.getElementById('problem').textContent"
        )
        return value

    def open(self, link: str) -> None:
        """Opens a link in the page that is there."""
        self.evaluate(f"playground.openLink({json.dumps(link)})")

    def click(self, identity: str) -> None:
        """Clicks on the element of that id."""
        self.evaluate(f"document.getElementById({json.dumps(identity)}).click()")

    def set(self, identity: str, value: object) -> None:
        """Enters a value into the control of that id."""
        self.evaluate(
            f"""(() => {{
              const control = document.getElementById({json.dumps(identity)});
              control.value = {json.dumps(str(value))};
              control.dispatchEvent(new Event('input', {{ bubbles: true }}));
              control.dispatchEvent(new Event('change', {{ bubbles: true }}));
            }})()"""
        )

    def play_until(self, ns: float) -> None:
        """Plays as fast as it goes until simulated time has passed this, then pauses."""
        self.evaluate("playground.transport.setSpeed(Infinity)")
        self.evaluate("playground.player.play(true)")
        wait_until(lambda: self.now_ns >= ns, f"the playground reaches {ns} ns")
        self.evaluate("playground.player.play(false)")

    def go_to(self, ns: float) -> None:
        """Goes to a moment, forwards or backwards."""
        self.evaluate(f"playground.player.goTo({ns})")

    def outcome(self, lane: int = 0) -> Any:
        """The results so far of a lane."""
        return self.evaluate(f"playground.simulator.outcome(playground.player.lanes[{lane}].handle)")

    def text(self, selector: str) -> str:
        """The text of an element."""
        value: str = self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")
        return value


def open_playground(page: Page | FirefoxPage, file: Path, link: str = "") -> Playground:
    """Opens the page, and waits until it is ready."""
    page.errors.clear()
    page.requests.clear()
    # A new link alone would not load the page again.
    page.navigate("about:blank")
    page.requests.clear()
    page.navigate(file.resolve().as_uri() + link)
    wait_until(
        lambda: page.errors or page.evaluate("document.documentElement?.dataset.ready") is not None,
        "the playground is ready",
    )
    assert page.errors == []
    return Playground(page, file)


@pytest.fixture(scope="session")
def html() -> str:
    """The page; skips where the WebAssembly program is not built."""
    try:
        return render_playground()
    except MissingToolError as error:
        pytest.skip(f"{error.message}: {error.hint}")


@pytest.fixture(scope="module")
def file(html: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page in a file."""
    path = tmp_path_factory.mktemp("playground") / "playground.html"
    path.write_text(html, encoding="utf-8")
    return path


@pytest.fixture
def playground(page: Page, file: Path) -> Playground:
    """The playground, opened anew without a link."""
    page.emulate(width=1280)
    return open_playground(page, file)
