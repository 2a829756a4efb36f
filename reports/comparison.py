"""Report of `litmusfuzz herd compare`: outcomes that only one of two logs has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.herd.log import STATUS, LoggedTest, State
from litmusfuzz.reports.tables import counted, table, the_model, verdict_cell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

MAX_SHOWN: Final = 20


class Incomparable(ValueError):
    """Two logs that have nothing in common to compare."""


@dataclass(frozen=True, slots=True)
class Log:
    """A log, and the file that it came from."""

    file: str
    tests: Mapping[str, LoggedTest]


@dataclass(frozen=True, slots=True)
class Only:
    """A state that only one log has, with its count and the oracle's verdict."""

    file: str
    state: State
    count: int
    verdict: str | None


@dataclass(frozen=True, slots=True)
class TestComparison:
    """One test in both logs, or in one; `missing` is then the file without it.

    `both` counts the outcomes that both logs have, `both_forbidden` the forbidden ones
    among them. `left_out` has, by file, locations that only this log shows: outcomes are
    compared without them.
    """

    name: str
    only: tuple[Only, ...]
    both: int
    both_forbidden: int
    left_out: Mapping[str, tuple[str, ...]]
    missing: str = ""

    @property
    def same(self) -> bool:
        """True if the two logs agree on the test."""
        return not (self.only or self.missing)

    @property
    def forbidden(self) -> int:
        """Number of forbidden outcomes that only one log has."""
        return sum(each.verdict == "forbidden" for each in self.only)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two logs, compared; `judged` says whether any test was given to judge by.

    `judged_by` says which model judges, and why it is that one.
    """

    files: tuple[str, str]
    tests: tuple[TestComparison, ...]
    judged: bool
    model: str
    judged_by: str

    @property
    def same(self) -> bool:
        """True if the two logs agree."""
        return all(each.same for each in self.tests)

    @property
    def forbidden(self) -> int:
        """Number of forbidden outcomes that only one log has."""
        return sum(each.forbidden for each in self.tests)

    @property
    def exit_code(self) -> int:
        """0 the logs agree, 1 they differ in a forbidden outcome, 3 they differ in others."""
        return 0 if self.same else 1 if self.forbidden else 3

    def text(self) -> str:
        """The differences, test by test, and a summary."""
        parts = [_test(each) for each in self.tests if not each.same and not each.missing]
        absent = [_test(each) for each in self.tests if each.missing]
        parts += ["\n".join(absent)] if absent else []
        return "\n\n".join([*parts, self._summary()])

    def _summary(self) -> str:
        paired = [each for each in self.tests if not each.missing]
        differing = sum(not each.same for each in paired)
        said = f"{counted(differing, 'test')} differ{'s' if differing == 1 else ''}"
        lines = [self.judged_by] if self.judged else []
        same = said if differing else "all the same"
        lines.append(f"{counted(len(paired), 'test')} in both: {same}")
        for file in self.files:
            mine = [only for each in self.tests for only in each.only if only.file == file]
            absent = sum(bool(each.missing) and each.missing != file for each in self.tests)
            if not (mine or absent):
                continue
            line = f"only in {file}: {counted(len(mine), 'outcome')}"
            if self.judged:
                verdicts = [only.verdict for only in mine]
                line += f", {verdicts.count('forbidden')} forbidden under {the_model(self.model)}"
                line += "".join(
                    f", {verdicts.count(key)} {word}"
                    for key, word in (("unknown", "unknown"), (None, "not judged"))
                    if key in verdicts
                )
            lines.append(line + (f"; {counted(absent, 'test')}" if absent else ""))
        both = sum(each.both_forbidden for each in self.tests)
        if both:
            lines.append(
                f"{counted(both, 'outcome')} forbidden under {the_model(self.model)} in both"
            )
        unpaired: dict[str, set[str]] = {}
        for each in self.tests:
            for file, places in each.left_out.items():
                unpaired.setdefault(file, set()).update(places)
        for file, found in unpaired.items():
            names = sorted(found)
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            lines.append(f"not compared, since only {file} has them: {', '.join(names[:8])}{more}")
        if not self.judged and not self.same:
            lines.append("what of it is forbidden is not known: give the tests with --tests")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        return {
            "files": list(self.files),
            "same": self.same,
            "forbidden": self.forbidden,
            "model": self.model if self.judged else None,
            "judged_by": self.judged_by if self.judged else None,
            "tests": [
                {
                    "test": each.name,
                    "same": each.same,
                    "in_both": each.both,
                    "in_both_forbidden": each.both_forbidden,
                    "missing_in": each.missing or None,
                    "not_compared": dict(each.left_out),
                    "only": [
                        {
                            "in": only.file,
                            "state": dict(only.state),
                            "count": only.count,
                            "verdict": only.verdict,
                        }
                        for only in each.only
                    ],
                }
                for each in self.tests
            ],
            "exit_code": self.exit_code,
        }


def _test(each: TestComparison) -> str:
    """A test that differs; if a log lacks the test, only its forbidden outcomes."""
    differing = each.only
    line = f"{each.name}: {counted(each.both, 'outcome')} in both"
    if each.missing:
        line = f"{each.name}: not in {each.missing}, {counted(len(differing), 'outcome')} elsewhere"
        differing = tuple(only for only in differing if only.verdict == "forbidden")
    lines = [line]
    by_file: dict[str, list[Only]] = {}
    for only in differing:
        by_file.setdefault(only.file, []).append(only)
    for file, found in by_file.items():
        lines.append(f"  only in {file}:")
        rows = [
            [spelled(only.state), str(only.count), verdict_cell(only.verdict)]
            for only in found[:MAX_SHOWN]
        ]
        lines += [f"    {line}" for line in table(["outcome", "count", ""], rows).splitlines()]
        if len(found) > MAX_SHOWN:
            lines.append(f"    and {len(found) - MAX_SHOWN} more; --json has all")
    return "\n".join(lines)


def spelled(state: State) -> str:
    """A state as a log has it."""
    return " ".join(
        f"{name}={'{' + ','.join(map(str, cell)) + '}' if isinstance(cell, tuple) else cell};"
        for name, cell in state
    )


def compare(
    left: Log,
    right: Log,
    judge: Callable[[str, State], str | None] | None = None,
    model: str = "rfc",
    why: str = "",
) -> Comparison:
    """Compare two logs, test by test, by the locations that both show.

    Parameters
    ----------
    judge : callable, optional
        The verdict on a state of the test of that name, under `model`; None where
        there is no such test.
    model, why : str
        Name of the memory model, and why it is that one.

    Raises
    ------
    Incomparable
        If no test is in both, or one has no location in both.
    """
    if not left.tests.keys() & right.tests.keys():
        raise Incomparable(f"{left.file} and {right.file} have no test in common")
    names = dict.fromkeys([*left.tests, *right.tests])
    compared = tuple(_compare(name, (left, right), judge) for name in names)
    return Comparison(
        (left.file, right.file),
        compared,
        judge is not None,
        model,
        f"judged by {the_model(model)}, {why}",
    )


def _compare(
    name: str, logs: Sequence[Log], judge: Callable[[str, State], str | None] | None
) -> TestComparison:
    logged = [log.tests.get(name) for log in logs]
    places = [_places(each.states) if each else frozenset() for each in logged]
    missing = next((log.file for log, each in zip(logs, logged, strict=True) if not each), "")
    shared = places[0] | places[1] if missing else places[0] & places[1]
    if not shared and (places[0] or places[1]):
        raise Incomparable(f"{name}: {logs[0].file} and {logs[1].file} have no location in common")
    seen = [_projected(each.states if each else {}, shared) for each in logged]

    def verdict(originals: Iterable[State]) -> str | None:
        """The worst verdict of the states that became one."""
        found = [judge(name, state) for state in originals] if judge else [None]
        return next((v for v in ("forbidden", "unknown", None) if v in found), found[0])

    only = [
        Only(log.file, state, sum(originals.values()), verdict(originals))
        for log, mine, others in zip(logs, seen, reversed(seen), strict=True)
        for state, originals in mine.items()
        if state not in others
    ]
    only.sort(key=lambda o: (o.file != logs[0].file, o.verdict != "forbidden", spelled(o.state)))
    common = [state for state in seen[0] if state in seen[1]]
    bad = sum(verdict([*seen[0][s], *seen[1][s]]) == "forbidden" for s in common)
    left_out = {
        log.file: tuple(sorted(mine - shared))
        for log, mine in zip(logs, places, strict=True)
        if mine - shared
    }
    return TestComparison(name, tuple(only), len(common), bad, left_out, missing)


def _places(states: Iterable[State]) -> frozenset[str]:
    """The locations of a test; a blocked outcome may lack some."""
    return frozenset(name for state in states for name, _ in state) - {STATUS}


def _projected(
    states: Mapping[State, int], shared: frozenset[str]
) -> dict[State, dict[State, int]]:
    """The states by what is shared, each with those that it is made of."""
    found: dict[State, dict[State, int]] = {}
    for state, count in states.items():
        kept = tuple(
            (name, cell)
            for name, cell in state
            if name in shared or (name == STATUS and cell != "completed")
        )
        found.setdefault(kept, {})[state] = count
    return found
