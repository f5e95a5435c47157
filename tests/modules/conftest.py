"""A small kernel, and requests for modules of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from blklab.modules.building import ModuleRequest
from modules.small_kernel import RELEASE, SmallKernel, make_small_kernel


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallKernel:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return make_small_kernel(tmp_path)


@pytest.fixture
def request_for(kernel: SmallKernel) -> Callable[..., ModuleRequest]:
    def make(name: str = "mine", **options: object) -> ModuleRequest:
        settings = {"scheduler": "kyber", "source": str(kernel.source), "headers": kernel.headers}
        settings |= {"release": RELEASE, "types": kernel.types} | options
        return ModuleRequest(name, **settings)  # type: ignore[arg-type]

    return make
