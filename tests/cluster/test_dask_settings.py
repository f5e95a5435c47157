"""The settings that examples/dask.yaml recommends are Dask's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

SETTINGS = Path(__file__).parents[2] / "examples" / "dask.yaml"


def leaves(settings: Mapping[str, Any], *above: str) -> Iterator[tuple[str, object]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from leaves(value, *above, name)
        else:
            yield ".".join((*above, name)), value


def dask_has(keys: list[str], environment: Mapping[str, str]) -> list[object]:
    """The values of these keys in the Dask of another process."""
    code = (
        "import dask, distributed, json, sys; print(json.dumps([dask.config.get(k) for k in sys.argv[1:]]))"
    )
    command = [sys.executable, "-c", code, *keys]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    values: list[object] = json.loads(done.stdout)
    return values


def test_each_setting_exists_and_is_another_one_by_default(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed")
    wanted = dict(leaves(yaml.safe_load(SETTINGS.read_text())))
    keys = list(wanted)
    usual = dask_has(keys, {"DASK_CONFIG": str(tmp_path)})
    assert dask_has(keys, {"DASK_CONFIG": str(SETTINGS)}) == list(wanted.values())
    # Dask has None for what it does not know.
    assert all(default not in (None, value) for value, default in zip(wanted.values(), usual, strict=True))
