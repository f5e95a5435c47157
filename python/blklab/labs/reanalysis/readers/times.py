"""Times at which tools say that a run was made."""

from __future__ import annotations

import calendar
import re
from datetime import datetime, timezone

_ASCTIME = re.compile(
    r"\b(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}(?P<day>\d{1,2}) "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d) (?P<year>\d{4})\b"
)
"""C's asctime(), as in ``Sun Nov 29 18:39:34 2026``: in the C locale, whatever that of the reader."""
_ISO = re.compile(
    r"\b(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)T"
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d(?:\.\d+)?)"
)
_MONTHS = {name: number for number, name in enumerate(calendar.month_abbr) if name}


def local_time_s(text: str) -> float | None:
    """Seconds from 1970 to the first time in a line, without its time zone; None if there is none.

    They serve to put runs in order, so the zone does not matter as long as all runs have the same.
    """
    found = _ASCTIME.search(text) or _ISO.search(text)
    if found is None:
        return None
    month, seconds = found["month"], float(found["second"])
    try:
        minute = datetime(
            int(found["year"]),
            _MONTHS[month] if month in _MONTHS else int(month),
            int(found["day"]),
            int(found["hour"]),
            int(found["minute"]),
            tzinfo=timezone.utc,
        )
    except ValueError:
        return None
    return minute.timestamp() + seconds
