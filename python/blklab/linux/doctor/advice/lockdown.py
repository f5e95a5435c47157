"""The kernel's lockdown, as under Secure Boot: what it forbids root (kernel_lockdown(7)).

``integrity`` refuses modules without a valid signature; ``confidentiality`` also refuses BPF programs that
read the kernel's memory, kprobes and tracefs (security/security.c: ``lockdown_reasons``).
"""

from __future__ import annotations

import re
from pathlib import Path

from blklab.linux.doctor.finding import Finding
from blklab.linux.machine.kernel_files import text_or_empty

SECURITY = Path("/sys/kernel/security")
_FORBIDDEN = {
    "integrity": "modules without a valid signature (a scheduler of your own) cannot be loaded",
    "confidentiality": "modules without a valid signature cannot be loaded, and neither BPF nor tracefs can "
    "be used to record I/O",
}


def check(security: Path = SECURITY) -> list[Finding]:
    """Reads the mode in force: ``none [integrity] confidentiality``."""
    active = re.search(r"\[(\w+)\]", text_or_empty(security / "lockdown"))
    if active is None or active[1] not in _FORBIDDEN:
        return []
    return [
        Finding(
            "lockdown",
            "lacking",
            f"the kernel is locked down ({active[1]}): {_FORBIDDEN[active[1]]}",
            "sign the module, or boot without lockdown= and Secure Boot",
        )
    ]
