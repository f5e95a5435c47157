"""The content of ``queue/scheduler`` in sysfs, which people print between runs: ``none [bfq] kyber``."""

from __future__ import annotations

import re

SCHEDULERS = re.compile(r"^(?:[\w-]+ )*\[(?P<active>[\w-]+)\](?: [\w-]+)*$", re.MULTILINE)
"""A line by itself, with the active scheduler in brackets."""
