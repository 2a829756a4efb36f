"""The clock of campaigns: their limits, their shares of time and what they measure are by it.

So one function decides what fits into a limit in seconds, and a test may replace it: there,
executions turn the clock, and nothing depends on what else the machine does. What waits for other
processes to end (the coordinator, scripts) is on the machine's own clock.
"""

from __future__ import annotations

import time


def now() -> float:
    """Seconds since some moment, which is the same for the whole process."""
    return time.monotonic()
