"""A patched scheduler as a module of a stock kernel: built, compared beside the original, unloaded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from blklab.errors import ExitCode
from blklab.labs.judgement.host_document import HostJudgementDocument
from vm.accelerator import EMULATION, Accelerator
from vm.commands import READ, document, put_file
from vm.image import Image
from vm.machine import Machine
from vm.native import TYPES, build_natively
from waiting import wait_until

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("as_before")]

_PAGE = Path(__file__).parents[2] / "docs/how-to/patch-a-running-scheduler.md"
(SLOW,) = re.findall(r"```diff\n(.*?)```", _PAGE.read_text("utf-8"), re.DOTALL)
"""The patch of the how-to, which has to fit every kernel that it is tried on."""
BUILD = f"""
cat > /root/slow.patch <<'END'
{SLOW}END
cd /root
for_kernel="--release $(ls /lib/modules) --btf {TYPES}"
blklab kernel module slow --patch /root/slow.patch --no-gate $for_kernel
blklab kernel module same --scheduler bfq $for_kernel
blklab kernel module bfq-copy --scheduler bfq $for_kernel
blklab kernel module kyber-copy --scheduler kyber $for_kernel
blklab kernel module mqdeadline-copy --scheduler mq-deadline $for_kernel
tree=/root/tree
rm -rf $tree && mkdir $tree
tar -C $tree -xf /usr/src/linux-source-*.tar.* --strip-components=1 --wildcards --no-wildcards-match-slash \
    --anchored '*/block/*' '*/Makefile'
sed -i 's/^struct blk_mq_ctx {{/struct blk_mq_ctx {{ long before;/' $tree/block/blk-mq.h
if blklab kernel module wrong --scheduler kyber --source $tree $for_kernel 2> refused; then exit 1; fi
tr -s ' \\n' ' ' < refused | grep 'do not fit the kernel.*blk_mq_ctx'
"""
"""The last one is a source with another layout of a private structure, under the same version."""

WEIGH_GROUP = """
set -e
modprobe bfq
cd /sys/fs/cgroup
echo +io > cgroup.subtree_control
mkdir weighed
echo 200 > weighed/io.bfq.weight
"""
FORGET_GROUP = "cd /sys/fs/cgroup; rmdir weighed; echo -io > cgroup.subtree_control; rmmod bfq"
NOT_LOADED = 'test -z "$(ls -d /sys/module/blklab_* 2>/dev/null)"'


@pytest.fixture(scope="module", autouse=True)
def built(machine: Machine, image: Image) -> None:
    """Each scheduler's unchanged copy, and kyber with a delay of 100 ms, built on a real processor.

    The driver of loop devices is loaded before: the kernel loads it for the first one, and it stays.
    """
    build_natively(image, machine, BUILD)
    machine.run("modprobe loop")


def rates(result: Any) -> dict[str, float]:
    """The mean rate of I/Os of each scheduler."""
    return {row["scheduler"]: row["mean"] for row in result["results"] if row["metric"] == "iops"}


def compare(machine: Machine, schedulers: str, blocks: int) -> Any:
    """Compares schedulers on a disk that nothing else uses.

    Without the gate: a guest of the kernel takes an emulated processor hours to build.
    """
    load = put_file(machine, "/root/read.fio", READ)
    disk = f"/dev/{machine.names()['sata0']}"
    result = document(machine, f"compare {disk} -w {load} -s {schedulers} --blocks {blocks} --no-gate")
    assert result["state"] == "complete"
    assert not result["failed_runs"]
    return result


@pytest.mark.parametrize("scheduler", ["mq-deadline", "kyber"])
def test_a_scheduler_is_compared_with_its_copy(machine: Machine, scheduler: str) -> None:
    """The running kernel is the one that the copy was built for; nothing is left of it."""
    result = compare(machine, f"{scheduler},{scheduler}@copy", 2)
    assert {row["scheduler"] for row in result["results"]} == {scheduler, f"{scheduler}@copy"}
    machine.run(NOT_LOADED)


def test_a_variant_of_bfq_leaves_the_weights_of_groups_alone(machine: Machine) -> None:
    """Those of the stock bfq, which is loaded before, and stays."""
    machine.run(WEIGH_GROUP)
    try:
        result = compare(machine, "bfq,bfq@same", 2)
        assert {row["scheduler"] for row in result["results"]} == {"bfq", "bfq@same", "bfq@copy"}
        machine.run(NOT_LOADED)
        assert machine.run("cat /sys/fs/cgroup/weighed/io.bfq.weight").text.split()[-1] == "200"
    finally:
        machine.run(FORGET_GROUP)


def test_a_delay_of_100_ms_is_found(machine: Machine) -> None:
    """As the published study delays kyber; the placebo shows that it is the patch."""
    result = compare(machine, "kyber,kyber@slow", 3)
    mean = rates(result)
    assert mean["kyber@slow"] < mean["kyber"] / 4, mean
    assert mean["kyber@slow"] < mean["kyber@copy"] / 4, mean
    assert "kyber@slow" not in result["verdict"]["best"]
    machine.run(NOT_LOADED)


def judge(machine: Machine, arguments: str) -> tuple[int, HostJudgementDocument]:
    """Asks one question in its eight rounds; gives the exit code and the document."""
    command = f"blklab kernel judge --load random-readers --no-gate --json - --quiet {arguments}"
    output = machine.run(command, check=False)
    assert output.code in (ExitCode.OK, ExitCode.SLOWER), output.errors
    machine.run(NOT_LOADED)
    return output.code, HostJudgementDocument.model_validate_json(output.text)


def test_a_copy_is_judged_on_a_loop_device(machine: Machine) -> None:
    """One load of two arms. Its answers are noise; exit code and outcome have to agree on them."""
    code, judgement = judge(machine, "--module kyber-copy --on loop:512m")
    assert (judgement.base, judgement.other) == ("kyber", "kyber@kyber-copy")
    assert judgement.loads == ["random-readers"]
    assert judgement.answers
    assert not judgement.placebo
    assert judgement.outcome != "broken"
    assert (code == ExitCode.SLOWER) == (judgement.outcome in ("slower", "mixed"))


def test_a_delayed_module_is_judged_slower_on_null_blk(machine: Machine) -> None:
    """Its queue gets a turn every 100 ms, where kyber does a thousand reads a second."""
    machine.run("modprobe null_blk nr_devices=1 gb=1 memory_backed=1 irqmode=2 completion_nsec=1000000")
    try:
        code, judgement = judge(machine, "--module slow --on /dev/nullb0")
    finally:
        machine.run("rmmod null_blk")
    assert judgement.target == "/dev/nullb0"
    assert judgement.placebo
    if judgement.outcome != "withheld":
        assert (code, judgement.outcome) == (ExitCode.SLOWER, "slower")
    assert "slower" in {answer.outcome for answer in judgement.answers}


def test_a_killed_run_unloads_its_modules_at_the_next_start(machine: Machine) -> None:
    load = put_file(machine, "/root/read.fio", READ)
    disk = f"/dev/{machine.names()['sata0']}"
    running = machine.begin(f"blklab compare {disk} -w {load} -s kyber,kyber@slow --blocks 50 --no-gate")
    loaded = "test -d /sys/module/blklab_slow"
    wait_until(lambda: machine.run(loaded, check=False).code == 0, "the module is loaded", process=running)
    machine.run("kill -KILL $(pgrep -f 'blklab compare' | head -1)")
    running.wait()
    machine.run("blklab restore")
    machine.run(NOT_LOADED)


def test_a_module_is_built_on_the_machine_itself(machine: Machine, accelerator: Accelerator) -> None:
    if accelerator == EMULATION:
        pytest.skip("an emulated processor compiles for minutes; the others were built beside the machine")
    built = document(machine, "kernel module here --scheduler kyber")
    assert built["built"]
    assert built["module"]["proof"]["structures"] > 100
