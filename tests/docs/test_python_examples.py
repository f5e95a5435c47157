"""Every example in Python in the docs runs, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
from test_links import ROOT

from recorded_simulation import record_simulation

_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_ELSEWHERE = {
    "how-to/build-kernels.md": "needs a guest kernel",
    "how-to/use-a-cluster.md": "needs a cluster (tests/cluster)",
}
"""Pages whose examples need more than this machine."""
_SEEKS = "[a]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\nsize=1g\ntime_based\nruntime=100ms\n"


def pages() -> list[str]:
    """Pages with examples."""
    docs = ROOT / "docs"
    return [path.relative_to(docs).as_posix() for path in sorted(docs.rglob("*.md")) if blocks(path)]


def blocks(path: Path) -> list[tuple[str, str]]:
    """The examples of a page, each with its output; empty where the page shows none."""
    return _BLOCK.findall(path.read_text("utf-8"))


@pytest.mark.parametrize("page", [page for page in pages() if page not in _ELSEWHERE])
def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("seeks.fio").write_text(_SEEKS, "utf-8")
    if page == "how-to/record-your-work.md":
        record_simulation(tmp_path / "build.blkrecord", "hdd-7200", _SEEKS, "mq-deadline")
    if page == "reference/simulator.md":
        import blklab  # noqa: PLC0415 - one page needs it

        timeline = blklab.simulate("hdd-7200", _SEEKS, timeline=True).timeline
        assert timeline is not None
        timeline.save("run.timeline")
    names: dict[str, object] = {"__name__": "__main__"}
    for code, expected in blocks(ROOT / "docs" / page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), names)  # noqa: S102 - this project's own examples
        if expected:
            assert printed.getvalue() == expected
    # Its own scheduler is known to this process until it is taken back.
    if page == "how-to/write-a-scheduler.md":
        import blklab  # noqa: PLC0415 - as above

        blklab.schedulers.unregister("elevator")


def test_pages_that_are_left_out_exist() -> None:
    assert _ELSEWHERE.keys() <= set(pages())
    ours = {"reference/python.md", "how-to/use-notebooks.md", "how-to/simulate-from-python.md"}
    assert ours <= set(pages())
