"""Signatures of modules: whether the running kernel wants one, and with which key it can be made."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import KernelBuildError
from blklab.linux.machine.kernel_files import text_or_empty
from blklab.modules.headers import KernelHeaders

_PAIRS = (
    ("/var/lib/dkms/mok.key", "/var/lib/dkms/mok.pub"),
    ("/var/lib/shim-signed/mok/MOK.priv", "/var/lib/shim-signed/mok/MOK.der"),
    ("/etc/pki/akmods/private/private_key.priv", "/etc/pki/akmods/certs/public_key.der"),
)
"""Keys of machine owners: those of DKMS, of Ubuntu, and of Fedora's akmods."""


@dataclass(frozen=True)
class SigningKey:
    """A key and its certificate."""

    key: Path
    certificate: Path


def wants_signature(root: Path = Path("/")) -> str | None:
    """The reason why the running kernel takes only signed modules; None if it takes all."""
    lockdown = text_or_empty(root / "sys/kernel/security/lockdown")
    if lockdown and "[none]" not in lockdown:
        return f"the kernel is locked down ({lockdown.partition('[')[2].partition(']')[0]})"
    if text_or_empty(root / "sys/module/module/parameters/sig_enforce") == "Y":
        return "the kernel takes only signed modules (module.sig_enforce)"
    return None


def find_key(root: Path = Path("/")) -> SigningKey | None:
    """The machine owner's key that can be read here; None if there is none."""
    for key, certificate in _PAIRS:
        pair = SigningKey(root / key.lstrip("/"), root / certificate.lstrip("/"))
        if os.access(pair.key, os.R_OK) and os.access(pair.certificate, os.R_OK):
            return pair
    return None


def is_enrolled(key: SigningKey) -> bool | None:
    """Whether the firmware trusts a key; None if that cannot be found out."""
    if shutil.which("mokutil") is None:
        return None
    answer = subprocess.run(
        ["mokutil", "--test-key", str(key.certificate)], capture_output=True, check=False, text=True
    )
    if "is already enrolled" in answer.stdout:
        return True
    return False if "is not enrolled" in answer.stdout else None


def sign(module: Path, headers: KernelHeaders, key: SigningKey) -> None:
    """Appends a signature to a module.

    Raises:
        KernelBuildError: if that fails.
    """
    program = headers.folder / "scripts/sign-file"
    digest = headers.options.get("CONFIG_MODULE_SIG_HASH", "sha256")
    try:
        answer = subprocess.run(
            [program, digest, key.key, key.certificate, module], capture_output=True, check=False, text=True
        )
        complaint = " ".join(answer.stderr.split()) if answer.returncode else ""
    except OSError as error:
        complaint = str(error)
    if complaint:
        raise KernelBuildError(f"the module cannot be signed with {key.key}: {complaint}")


def signing_advice(reason: str, key: SigningKey | None) -> str:
    """How to have the kernel take the module."""
    if key is None:
        return (
            f"{reason}, and no key of the machine's owner was found: make one and enrol it (Debian: "
            "apt install dkms; dkms generate_mok; mokutil --import /var/lib/dkms/mok.pub; reboot), and build "
            "again as root"
        )
    return (
        f"{reason}, and the key is not enrolled: mokutil --import {key.certificate}, reboot, and confirm it "
        "at the prompt"
    )
