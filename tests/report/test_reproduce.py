"""The command that a report gives to repeat a run describes the same experiment."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from blklab.cli import compare
from blklab.errors import SpecError
from blklab.report.summary.reproduce import continue_command, repeat_command
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.request import SpecValues, build_specs
from blklab.testing.experiments import make_spec

pytestmark = pytest.mark.filterwarnings("error")


class _StopError(SpecError):
    """Raised at the point where the command would start to run."""


def _parsed(command: str) -> SpecValues:
    """The values that the real command line reads."""
    heard: list[SpecValues] = []

    def listen(values: SpecValues) -> list[ExperimentSpec]:
        heard.append(values)
        raise _StopError("enough")

    program, subcommand, *arguments = shlex.split(command)
    assert (program, subcommand) == ("blklab", "compare")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "build_specs", listen)
        result = CliRunner().invoke(compare.command, arguments)
    assert isinstance(result.exception, _StopError), result.output or result.exception
    return heard[0]


def test_everything_spelled_out(tmp_path: Path) -> None:
    job_file = tmp_path / "odd name's; file.fio"
    base = make_spec(["none", "calm=bfq:slice_idle=0", "kyber:read_lat_nsec=1"], target="./it's a $HOME *")
    job_file.write_text(base.workloads[0].text)
    spec = build_specs(
        SpecValues(
            targets=[base.target],
            schedulers=[choice.canonical for choice in base.schedulers],
            workloads=["random-read-4k-qd1", str(job_file)],
            blocks=11,
            seed=(1 << 53) - 1,
            runtime="1500ms",
            confidence=0.9,
            margin=0.005,
            allow_writes=True,
            queue={"nr_requests": "64", "scheduler_note": "a b"},
            cgroups={"batch": {"io.weight": "50"}, "/": {"io.cost.qos": "enable=1 ctrl=user"}},
            kernels=["stock", "mine"],
            guest={"generator": "fio", "time": "host", "filesystem": "xfs", "memory": "100m"},
        )
    )[0]
    assert build_specs(_parsed(repeat_command(spec))) == [spec]


@settings(max_examples=60)
@given(
    seed=st.integers(0, (1 << 53) - 1),
    blocks=st.one_of(st.none(), st.integers(1, 1000)),
    budget_ns=st.integers(1, 10**15),
    runtime_ns=st.one_of(st.none(), st.integers(1, 10**14)),
    confidence=st.floats(0.501, 0.9999),
    margin=st.floats(0, 0.99),
    target=st.text(
        st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\0"), min_size=1, max_size=20
    ).filter(lambda text: bool(text.strip()) and ":" not in text),
)
def test_any_values_survive(
    seed: int,
    blocks: int | None,
    budget_ns: int,
    runtime_ns: int | None,
    confidence: float,
    margin: float,
    target: str,
) -> None:
    spec = make_spec(target=target, blocks=blocks, budget_ns=budget_ns if blocks is None else None, seed=seed)
    spec = spec.model_copy(
        update={
            "stopping": "settled" if blocks is None else "fixed",
            "runtime_ns": runtime_ns,
            "confidence": confidence,
            "margin": margin,
            "workloads": build_specs(SpecValues(targets=["."], workloads=["mixed-70-30"]))[0].workloads,
        }
    )
    assert build_specs(_parsed(repeat_command(spec))) == [spec]


def test_going_on() -> None:
    assert continue_command("20240517-abc") == "blklab compare --resume 20240517-abc"
    assert continue_command("20240517-abc", 12) == "blklab compare --resume 20240517-abc --blocks 12"
    settled = continue_command("20240517-abc", 12, settled=True)
    assert settled == "blklab compare --resume 20240517-abc --budget 12blocks"
