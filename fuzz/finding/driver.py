"""Drives a reduction: tries each candidate that it yields, and tells it whether it still shows.

Reductions of tests, settings, names and crashes are generators that run nothing. What a candidate
has to show, and how long that may take, their callers say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

Candidate = TypeVar("Candidate")
Result = TypeVar("Result")


class Driven(NamedTuple, Generic[Result]):
    """The end of a reduction.

    Parameters
    ----------
    complete : bool
        False if the time was up before the reduction ended.
    result : object
        What the reduction returned; None if it is not complete.
    """

    complete: bool
    result: Result | None


async def drive(
    reduction: Generator[Candidate, bool, Result],
    shows: Callable[[Candidate], Awaitable[bool]],
    in_time: Callable[[], bool],
) -> Driven[Result]:
    """Try candidates until the reduction ends, or the time is up.

    Parameters
    ----------
    reduction : generator
        Yields candidates, and receives whether each shows what it has to.
    shows : callable
        Tries a candidate. It may keep what was accepted.
    in_time : callable
        Asked after each candidate. If the time is up by then, the answer is not used: perhaps there
        was no time to see it.
    """
    try:
        candidate = next(reduction)
        while True:
            shown = await shows(candidate)
            if not in_time():
                return Driven(complete=False, result=None)
            candidate = reduction.send(shown)
    except StopIteration as ended:
        return Driven(complete=True, result=ended.value)


def drive_now(
    reduction: Generator[Candidate, bool, Result],
    shows: Callable[[Candidate], bool],
    in_time: Callable[[], bool],
) -> Driven[Result]:
    """As `drive`, outside an event loop: `shows` waits for nothing."""

    async def answered(candidate: Candidate) -> bool:
        return shows(candidate)

    driving = drive(reduction, answered, in_time)
    try:
        driving.send(None)
    except StopIteration as ended:
        driven: Driven[Result] = ended.value
        return driven
    raise RuntimeError("a reduction that is driven now waits for something")
