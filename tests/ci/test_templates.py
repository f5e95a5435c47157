"""The GitHub Action and the GitLab template: their scripts run here, their form is checked by linters.

The services' own runners cannot be had here: checkout, set-up of Python and upload are theirs.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="needs PyYAML")

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / "action.yml"
GITLAB = ROOT / "ci" / "blklab.gitlab-ci.yml"
WORKFLOWS = ROOT / ".github" / "workflows"
ARGUMENTS = "sim:fixed,latency=200us,depth=4 -w 'my reads.fio' -s none,mq-deadline --blocks 3"
JOB = "[reader]\nrw=randread\nbs=4k\ndirect=1\nnumber_ios=200\nsize=64m\n"


def run_script(
    shell: list[str], script: str, folder: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs a step's script in a folder with a job file and with programs named blklab and python."""
    programs = folder / "programs"
    programs.mkdir()
    for name, arguments in (("python", ""), ("blklab", "-m blklab")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        (programs / name).chmod(0o755)
    (folder / "my reads.fio").write_text(JOB)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "XDG_DATA_HOME": str(folder / "data"),
        "BLKLAB_STORE": str(folder / "runs.sqlite"),
        **variables,
    }
    return subprocess.run(
        [*shell, script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def run_action(folder: Path, command: str, arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the action's own step as GitHub's runner does."""
    step = next(one for one in yaml.safe_load(ACTION.read_text())["runs"]["steps"] if one.get("id") == "run")
    assert set(step["env"]) == {"COMMAND", "ARGUMENTS", "FOLDER", "WITH_SUDO"}
    return run_script(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"],
        step["run"],
        folder,
        COMMAND=command,
        ARGUMENTS=arguments,
        FOLDER="report folder",
        WITH_SUDO="false",
        GITHUB_OUTPUT=str(folder / "output"),
        GITHUB_STEP_SUMMARY=str(folder / "summary"),
    )


def test_the_action_compares_and_keeps_the_report(tmp_path: Path) -> None:
    ended = run_action(tmp_path, "compare", ARGUMENTS)
    assert ended.returncode == 0, ended.stderr
    report = tmp_path / "report folder"
    assert {one.name for one in report.iterdir()} == {
        "report.html", "report.json", "report.txt", "metrics.txt", "junit.xml",
    }  # fmt: skip
    verdict = json.loads((report / "report.json").read_text())["verdict"]
    output = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    assert output == {"verdict": verdict["status"], "best": ",".join(verdict["best"])}
    assert verdict["best"]
    assert (report / "report.txt").read_text() in (tmp_path / "summary").read_text()


def test_the_action_fails_with_its_command(tmp_path: Path) -> None:
    ended = run_action(tmp_path, "compare", "sim:no-such-disk")
    assert ended.returncode == 2
    assert "no-such-disk" in ended.stderr
    assert not (tmp_path / "output").exists()


def test_the_action_reports_what_is_slower_than_its_baseline(tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "baseline.sqlite")]
    options = "-w 'my reads.fio' -s none,mq-deadline --blocks 3"
    (tmp_path / "my reads.fio").write_text(JOB)
    command = [sys.executable, "-m", "blklab", "compare", "sim:fixed,latency=200us,depth=4", "-q", *store]
    subprocess.run([*command, *shlex.split(options)], cwd=tmp_path, capture_output=True, check=True)
    arguments = f"sim:fixed,latency=300us,depth=4 {options} --against latest {shlex.join(store)}"
    ended = run_action(tmp_path, "compare", arguments)
    assert ended.returncode == 8, ended.stderr
    assert "is slower in 2 of 2 comparisons" in (tmp_path / "summary").read_text()
    assert "verdict=" in (tmp_path / "output").read_text()
    assert "<failure" in (tmp_path / "report folder" / "junit.xml").read_text()


@pytest.mark.parametrize("spelling", ["kernel judge", "judge"])
@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_a_patch_can_be_judged(tmp_path: Path, service: str, spelling: str) -> None:
    """The templates' options are those of the command, which then misses a kernel."""
    arguments = "--kernel no-such-kernel,another"
    if service == "github":
        ended = run_action(tmp_path, spelling, arguments)
    else:
        job = yaml.safe_load(GITLAB.read_text())[".blklab"]
        variables = {**job["variables"], "BLKLAB_COMMAND": spelling, "BLKLAB_ARGUMENTS": arguments}
        ended = run_script(["sh", "-ec"], "\n".join(job["script"]), tmp_path, **variables)
    assert ended.returncode != 0
    assert "no-such-kernel" in ended.stderr, ended.stderr
    assert "ption" not in ended.stderr


def test_gitlab_s_job_keeps_the_report(tmp_path: Path) -> None:
    job = yaml.safe_load(GITLAB.read_text())[".blklab"]
    variables = {**job["variables"], "BLKLAB_ARGUMENTS": ARGUMENTS}
    script = "\n".join(job["script"])
    ended = run_script(["sh", "-ec"], script, tmp_path, **variables)
    assert ended.returncode == 0, ended.stderr
    kept = {str(path.relative_to(tmp_path)) for path in (tmp_path / "blklab-report").iterdir()}
    named = [
        value.replace("$BLKLAB_FOLDER", "blklab-report") for value in job["artifacts"]["reports"].values()
    ]
    assert set(named) <= kept
    assert "blklab-report/report.html" in kept


def schema_check(schema: str, *files: Path) -> None:
    if shutil.which("check-jsonschema") is None:
        pytest.skip("check-jsonschema is not installed (pip install check-jsonschema)")
    command = ["check-jsonschema", "--builtin-schema", schema, *map(str, files)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_templates_satisfy_the_services_schemas() -> None:
    schema_check("vendor.github-actions", ACTION)
    schema_check("vendor.gitlab-ci", GITLAB)


def test_yaml_is_well_formed() -> None:
    yamllint = pytest.importorskip("yamllint.linter", reason="needs yamllint")
    config: Any = pytest.importorskip("yamllint.config").YamlLintConfig(
        "{extends: default, rules: {line-length: {max: 120}, document-start: disable,"
        " truthy: {check-keys: false}, comments: {min-spaces-from-content: 1}}}"
    )
    for path in (ACTION, GITLAB, *WORKFLOWS.glob("*.yml")):
        assert [str(one) for one in yamllint.run(path.read_text(), config)] == []


def test_actionlint_finds_nothing() -> None:
    workflows = sorted(WORKFLOWS.glob("*.yml"))
    assert workflows
    program = shutil.which("actionlint")
    if program is None:
        pytest.skip(
            "actionlint is not installed (go install github.com/rhysd/actionlint/cmd/actionlint@latest)"
        )
    checked = subprocess.run([program, *map(str, workflows)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
