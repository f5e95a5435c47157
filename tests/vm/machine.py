"""One virtual machine: start it, speak with it, cut its power, unplug its disks."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from vm.accelerator import PROGRAM, Accelerator
from vm.hardware import (
    DISK_BYTES,
    DISKS,
    PLUGGED_LATER,
    hardware_arguments,
    network_arguments,
    root_arguments,
    zoned_nvme_arguments,
)
from vm.image import Image
from vm.monitor import Monitor, MonitorError
from waiting import PATIENCE_SECONDS, wait_until

_BOOT_SECONDS = 2 * PATIENCE_SECONDS
# The network is set up before udev could rename it; ssh over a virtual socket needs modules of its own.
_KERNEL_ARGUMENTS = "root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 systemd.ssh_auto=no"
_BOOT = "cat /proc/sys/kernel/random/boot_id"
_SERIAL_NUMBERS = "lsblk --nodeps --noheadings --output NAME,SERIAL"


@dataclass(frozen=True)
class Output:
    """The output of a command in the machine, and its exit code."""

    text: str
    errors: str
    code: int


class Machine:
    """A virtual machine; use it as a context manager, which ends it and removes its disks."""

    def __init__(self, image: Image, accelerator: Accelerator) -> None:
        self._image = image
        self._accelerator = accelerator
        # scripts/test-vm removes the session's folder in any case; its path is short, as a socket's must be.
        self.folder = Path(tempfile.mkdtemp(prefix="m-", dir=image.session))
        self._process: subprocess.Popen[bytes] | None = None
        self._monitor: Monitor | None = None
        self._port = 0

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    # ---- life ------------------------------------------------------------------------------------------

    def boot(self, root: Path, *, snapshot: bool = True, zoned_nvme: bool = False) -> None:
        """Boots the system on ``root``."""
        self._start(root, snapshot=snapshot, arguments=zoned_nvme_arguments() if zoned_nvme else [])
        self._wait_for_ssh()

    def thaw(self, root: Path, memory: Path, *, snapshot: bool = True) -> None:
        """Goes on where a frozen machine stopped, with empty disks."""
        self._start(root, snapshot=snapshot, arguments=["-incoming", f"exec:cat {memory}"])
        wait_until(lambda: self.monitor.do("query-status")["status"] == "paused", "the machine is thawed")
        self.monitor.do("cont")
        self._wait_for_ssh()
        self.run(f"date --set=@{time.time():.0f}")

    def freeze(self, memory: Path) -> None:
        """Writes the memory to a file and ends the machine; what it wrote to its root is kept."""
        self.run("sync")
        self._hang_up()
        self.monitor.do("stop")
        self.monitor.do("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
        self.monitor.do("migrate", uri=f"exec:cat > {memory}")
        wait_until(lambda: self._migration() == "completed", "the memory is written")
        self.stop()

    def _migration(self) -> str:
        status = str(self.monitor.do("query-migrate")["status"])
        assert status not in {"failed", "cancelled"}, status
        return status

    def stop(self) -> None:
        """Ends it at once, as a power cut would."""
        self._hang_up()
        if self._monitor is not None:
            self._monitor.close()
            self._monitor = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _start(self, root: Path, *, snapshot: bool, arguments: list[str]) -> None:
        for name in DISKS:
            with (self.folder / f"{name}.img").open("wb") as file:
                file.truncate(DISK_BYTES)
        ours, of_qemu = socket.socketpair()
        folder = self._image.folder
        command = [
            *("setpriv", "--pdeathsig", "KILL", PROGRAM, *self._accelerator.arguments),
            *hardware_arguments(self.folder),
            *root_arguments(root, snapshot=snapshot),
            *network_arguments(),
            *("-kernel", str(folder / self._accelerator.kernel), "-initrd", str(folder / "initrd")),
            *("-append", f"{_KERNEL_ARGUMENTS} {self._accelerator.command_line}"),
            *("-serial", f"file:{self.folder}/console"),
            *("-chardev", f"socket,id=monitor,fd={of_qemu.fileno()}"),
            *("-mon", "chardev=monitor,mode=control"),
            *arguments,
        ]
        with (self.folder / "qemu.log").open("wb") as log, of_qemu:
            # In a session of its own: an interrupt from the terminal is for the tests, which end the machine.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=[of_qemu.fileno()],
            )
        try:
            self._monitor = Monitor(ours)
            self._port = self._monitor.forwarded_port()
        except (MonitorError, OSError) as error:
            raise MonitorError(f"{error}\n{(self.folder / 'qemu.log').read_text('utf-8')}") from error

    @property
    def monitor(self) -> Monitor:
        """QEMU's monitor."""
        assert self._monitor is not None, "the machine does not run"
        return self._monitor

    # ---- ssh -------------------------------------------------------------------------------------------

    def run(
        self, command: str, *, user: str = "root", check: bool = True, stdin: bytes | None = None
    ) -> Output:
        """Runs a shell command in the machine, for as long as it takes: scripts/test-vm limits all."""
        done = subprocess.run(
            [*self._ssh(), f"{user}@127.0.0.1", command],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            check=False,
        )
        output = Output(
            done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), done.returncode
        )
        assert not check or output.code == 0, (
            f"{command}\nended with {output.code}\n{output.text}\n{output.errors}"
        )
        return output

    def begin(self, command: str) -> subprocess.Popen[str]:
        """Starts a shell command in the machine, as root."""
        return subprocess.Popen(
            [*self._ssh(), "root@127.0.0.1", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def copy(self, source: Path, target: str) -> None:
        """Copies a file of this machine into the virtual one."""
        self.run(f"cat > {target}", stdin=source.read_bytes())

    def _ssh(self) -> list[str]:
        options = {
            "Port": self._port,
            "IdentityFile": self._image.key,
            "IdentitiesOnly": "yes",
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
            "LogLevel": "ERROR",
            "ControlMaster": "auto",
            "ControlPath": f"{self.folder}/%r",
            "ControlPersist": "yes",
            "ConnectTimeout": 60,
        }
        return ["ssh", "-F", "none", *(f"-o{name}={value}" for name, value in options.items())]

    def _hang_up(self) -> None:
        for user in ("root", "alice"):
            if (self.folder / user).exists():
                goodbye = [*self._ssh(), "-O", "exit", f"{user}@127.0.0.1"]
                subprocess.run(goodbye, capture_output=True, check=False, timeout=PATIENCE_SECONDS)

    def _answers(self) -> bool:
        try:
            done = subprocess.run(
                [*self._ssh(), "root@127.0.0.1", "true"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
                timeout=120,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def _wait_for_ssh(self) -> None:
        deadline = time.monotonic() + _BOOT_SECONDS
        while not self._answers():
            assert self._process is not None
            assert self._process.poll() is None, (self.folder / "qemu.log").read_text("utf-8")
            assert time.monotonic() < deadline, f"no answer: {self._end_of_console()}"
            time.sleep(0.5)

    def _end_of_console(self) -> str:
        return (self.folder / "console").read_bytes()[-2000:].decode(errors="replace")

    # ---- what happens to a machine ---------------------------------------------------------------------

    def cut_power(self) -> None:
        """Loses all memory and boots again from the same disks."""
        before = self.run(_BOOT).text
        self._hang_up()
        self.monitor.do("system_reset")
        self._wait_for_ssh()
        assert self.run(_BOOT).text != before

    def unplug(self, disk: str) -> None:
        """Removes a disk while the machine runs."""
        self.monitor.do("device_del", id=disk)

    def plug_in_nvme(self) -> None:
        """Adds the NVMe disk, which a thawed machine lacks."""
        self.monitor.type(f"device_add {PLUGGED_LATER}")
        self.run(
            "until lsblk --noheadings --output SERIAL | grep -qx nvme0; do sleep 0.2; done; udevadm settle"
        )

    def slow_down(self, disk: str, *, iops: int) -> None:
        """Lets a disk do so many I/Os a second; 0 lifts the limit."""
        self.monitor.do(
            "block_set_io_throttle", id=disk, bps=0, bps_rd=0, bps_wr=0, iops=iops, iops_rd=0, iops_wr=0
        )

    def load_runs_on(self, path: str) -> bool:
        """Whether fio has a disk, or a file in a folder, open; blklab also starts fio to ask it questions."""
        opened = "for process in $(pgrep -x fio); do ls -l /proc/$process/fd 2>/dev/null || true; done"
        return f"-> {path}" in self.run(opened).text

    def names(self) -> dict[str, str]:
        """The kernel's name of each disk, by serial number."""
        pairs = [line.split() for line in self.run(_SERIAL_NUMBERS).text.splitlines()]
        return {pair[1]: pair[0] for pair in pairs if len(pair) == 2}
