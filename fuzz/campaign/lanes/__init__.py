"""The policies of a campaign: what a worker may do, each a lane of the scheduler.

Each module has one lane (`fuzz.campaign.scheduler.Lane`): what waits in it, whether there is time
for it (`fuzz.campaign.shares`), and how it is done. No lane knows the engine.

A new policy is a file here, and a line in `LANES`: ``docs/adding.md`` has an example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.campaign.lanes.canary import Canary
from litmusfuzz.fuzz.campaign.lanes.crashes import Crashes
from litmusfuzz.fuzz.campaign.lanes.first import First
from litmusfuzz.fuzz.campaign.lanes.known import Known
from litmusfuzz.fuzz.campaign.lanes.reduce import Reduce
from litmusfuzz.fuzz.campaign.lanes.retry import Retry
from litmusfuzz.fuzz.campaign.lanes.rounds import Rounds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.fuzz.campaign.parts import Parts
    from litmusfuzz.fuzz.campaign.scheduler import Lane

LANES: Final[Sequence[Callable[[Parts], Lane]]] = (
    # The purpose of a campaign. Its share of the time leaves some to the lanes after it.
    Reduce,
    # Only while nothing waits in the lane before.
    Retry,
    # A crash has the time that findings leave of the share of reductions.
    Crashes,
    # Its share is small, and the lanes after it nearly always have work.
    Known,
    # A test that has earned further executions, within their share, before a new one.
    Rounds,
    # Alone on its worker, at any place.
    Canary,
    # All the time that is left: it has work as long as a test may be generated.
    First,
)
"""The lanes of a campaign. Their order is their priority: the first with work gets a worker."""
