"""Distributions: which packages have a kernel's headers and its source, and how to get them."""

from __future__ import annotations

from pathlib import Path

from blklab.linux.machine.kernel_files import text_or_empty


def distribution() -> str:
    """The family of this machine's distribution: debian, ubuntu, fedora, arch, or empty."""
    lines = text_or_empty(Path("/etc/os-release")).splitlines()
    facts = dict(line.split("=", 1) for line in lines if "=" in line)
    names = [facts.get("ID", ""), *facts.get("ID_LIKE", "").strip('"').split()]
    for name in names:
        family = {"rhel": "fedora", "centos": "fedora"}.get(name.strip('"'), name.strip('"'))
        if family in ("debian", "ubuntu", "fedora", "arch"):
            return family
    return ""


def header_advice(release: str) -> str:
    """How to install the headers of a kernel."""
    commands = {
        "debian": f"sudo apt-get install linux-headers-{release}",
        "ubuntu": f"sudo apt-get install linux-headers-{release}",
        "fedora": f"sudo dnf install kernel-devel-{release}",
        "arch": "sudo pacman -S linux-headers (linux-lts-headers, linux-zen-headers for those kernels)",
    }
    command = commands.get(distribution())
    if command is None:
        return "name the headers, or the kernel's build tree, with --headers"
    return f"{command}; or name the headers with --headers"


def source_advice(release: str, version: str, package: str) -> str:
    """How to get the source of a kernel.

    Args:
        release: The kernel's release.
        version: Its own number, for example ``6.1.192``.
        package: The version of the distribution's package; empty if it is not known.
    """
    series = ".".join(version.split(".")[:2])
    exactly = f"={package}" if package else ""
    commands = {
        "debian": f"sudo apt-get install linux-source-{series}{exactly}",
        "ubuntu": f"apt-get source linux-image-unsigned-{release} (with deb-src lines), then --source DIR",
        "fedora": (
            f"dnf download --source kernel-{release}, rpm2cpio kernel-*.src.rpm | cpio -id, then --source "
            "with the archive linux-*.tar.xz, if no patch of the package touches block/"
        ),
        "arch": f"download linux-{version}.tar.xz from kernel.org, then --source with it",
    }
    command = commands.get(distribution())
    if command is None:
        return f"name a tree or an archive of Linux {version}, as the kernel was built from, with --source"
    return command
