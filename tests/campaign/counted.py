"""A clock for campaigns that executions turn: beside other work, as much fits into a second."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.executors.table import CANARY
from litmusfuzz.fuzz.executors.worker import Died, Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from litmusfuzz.fuzz.executors import messages
    from litmusfuzz.fuzz.executors.worker import Tests

REQUEST_S = 2e-3
EXECUTION_S = 2e-5
BLOCKED_S = 5e-3
LOOK_S = 1e-5
"""What a request to a worker takes, each execution, and what is done between two looks at the
clock: about what the native executor needs where it has a core of its own."""


@contextmanager
def counted_clock(*, one_at_a_time: bool = False) -> Iterator[None]:
    """The clock of campaigns is turned by each answer of a worker.

    A request that had no answer in time has taken all of it. The canary's take no time. Each look
    at the clock turns it as well: what has been done has taken some time. With `one_at_a_time`
    nothing else is done while a worker is at work, so that all happens in the same order each time.
    """
    ask, seconds = Worker.run, 0.0

    async def run(
        worker: Worker, request: messages.Request, timeout_s: float, test: Tests = None
    ) -> messages.Reply | Died:
        nonlocal seconds
        if one_at_a_time:
            reply = worker.ask(request, timeout_s, test)
        else:
            reply = await ask(worker, request, timeout_s, test)
        if worker.executor != CANARY:
            seconds += timeout_s if is_late(reply) else REQUEST_S + executed_s(reply)
        return reply

    def now() -> float:
        nonlocal seconds
        seconds += LOOK_S
        return seconds

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Worker, "run", run)
        patch.setattr(clock, "now", now)
        yield


def is_late(reply: messages.Reply | Died) -> bool:
    """True if there was no reply in time."""
    return isinstance(reply, Died) and reply.timed_out


def executed_s(reply: messages.Reply | Died) -> float:
    """What the executions of a reply have taken."""
    if isinstance(reply, Died):
        return 0.0
    return sum(
        row.count * (BLOCKED_S if row.status == Status.BLOCKED else EXECUTION_S)
        for rows in (reply.rows, *reply.packed)
        for row in rows
    )
