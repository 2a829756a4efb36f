"""Two logs side by side: outcomes that only one has, test by test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from corpus.herd import Cell, LoggedTest, State

    Judge = Callable[[str, State], str | None]
    """The verdict on a state of the test of that name; None if there is none."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One test that both logs have.

    Parameters
    ----------
    locations : tuple of str
        Those that both logs show; states are compared on these.
    left_out : tuple of str
        Those that only one shows.
    only : pair of tuples of (State, str or None)
        States that only the first log has, and only the second, with verdicts.
    """

    name: str
    locations: tuple[str, ...]
    left_out: tuple[str, ...]
    only: tuple[tuple[tuple[State, str | None], ...], tuple[tuple[State, str | None], ...]]

    @property
    def equal(self) -> bool:
        """Whether both logs have the same states, and any location to tell by."""
        return not any(self.only) and not (self.left_out and not self.locations)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two logs, by the names of their files."""

    files: tuple[str, str]
    tests: tuple[Difference, ...]
    missing: tuple[tuple[str, ...], tuple[str, ...]]
    """Tests that only the first log has, and only the second."""

    @property
    def equal(self) -> bool:
        """Whether the logs have the same tests, with the same states."""
        return not any(self.missing) and all(test.equal for test in self.tests)

    def as_json(self) -> dict[str, Any]:
        """Plain data, with everything that the screen shows."""
        return {
            "files": list(self.files),
            "equal": self.equal,
            "tests": [
                {
                    "test": test.name,
                    "equal": test.equal,
                    "locations": list(test.locations),
                    "left_out": list(test.left_out),
                    "only_in": [
                        [{"outcome": dict(state), "verdict": verdict} for state, verdict in side]
                        for side in test.only
                    ],
                }
                for test in self.tests
            ],
            "tests_only_in": [list(names) for names in self.missing],
        }

    def text(self) -> str:
        """What differs, then the sum of it; without a newline at the end."""
        lines = []
        for test in self.tests:
            if test.equal and not test.left_out:
                continue
            lines.append(f"{test.name}: {'equal' if test.equal else 'differs'}")
            if test.left_out:
                lines.append(f"  not compared, since only one log has it: {_row(test.left_out)}")
            for file, states in zip(self.files, test.only, strict=True):
                for state, verdict in states:
                    told = f"   {verdict.upper()}" if verdict else ""
                    lines.append(f"  only in {file}: {_state(state)}{told}")
        for file, names in zip(self.files, self.missing, strict=True):
            lines += [f"{name}: only in {file}" for name in names]
        same = sum(test.equal for test in self.tests)
        total = len(self.tests) + sum(map(len, self.missing))
        lines.append(f"{same} of {total} tests are equal")
        return "\n".join(lines)


def compared(
    files: tuple[str, str],
    logs: tuple[Sequence[LoggedTest], Sequence[LoggedTest]],
    judge: Judge,
) -> Comparison:
    """The comparison of two logs; `judge` is asked of states that only one has."""
    left, right = ({test.name: test for test in log} for log in logs)
    return Comparison(
        files,
        tuple(
            _difference(test, right[name], judge) for name, test in left.items() if name in right
        ),
        (
            tuple(name for name in left if name not in right),
            tuple(name for name in right if name not in left),
        ),
    )


def _difference(left: LoggedTest, right: LoggedTest, judge: Judge) -> Difference:
    both = left.locations & right.locations
    named = {place for test in (left, right) for state in test.states for place, _ in state}
    ours, theirs = (
        {tuple((place, cell) for place, cell in state if place in both) for state in test.states}
        for test in (left, right)
    )
    only = (_judged(left.name, ours - theirs, judge), _judged(left.name, theirs - ours, judge))
    return Difference(left.name, tuple(sorted(both)), tuple(sorted(named - both)), only)


def _judged(
    name: str, states: Iterable[State], judge: Judge
) -> tuple[tuple[State, str | None], ...]:
    return tuple((state, judge(name, state)) for state in sorted(states, key=str))


def _row(places: Iterable[str]) -> str:
    return " ".join(map(_place, places))


def _place(place: str) -> str:
    return place if ":" in place else f"[{place}]"


def _state(state: State) -> str:
    return " ".join(f"{_place(place)}={_cell(cell)};" for place, cell in state) or "no location"


def _cell(cell: Cell) -> str:
    return "{" + ",".join(map(str, cell)) + "}" if isinstance(cell, tuple) else str(cell)
