"""What TensorFlow shows of the corpus tests of edition 2, in every configuration.

``python -m tests.executors.edition_two [CONFIGURATION...]`` takes each corpus test that has what
edition 2 of the semantics added. Where a configuration can be forced, every allowed outcome must
be reached by an order of its own (`litmusfuzz force`); elsewhere the test is run, and no outcome
may be forbidden. It prints a line for each configuration, then what was left out or not reached,
each with the reason, and exits with 1 if an outcome is forbidden, wrong, or not reached.
`test_edition_two.py` does the same with a share of the tests.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).parents[1]))
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.ops import DEFINED_OPS
from litmusfuzz.fuzz.commands.force_all import Limits, cover
from litmusfuzz.fuzz.commands.replay import ReplayOptions, replay_entry
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.configurations import CONFIGURATIONS, Settings
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.oracles.errors import NoAllowedSet
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import GUARANTEES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from litmusfuzz.fuzz.executors.protocol import Config

ADDED: Final = frozenset(
    {
        *("calls", "handles", "fetches", "placeholders", "computed indices", "accumulators"),
        "uninitialized variables",
    }
)
"""Features of edition 2; its tests have one, or a pure op."""
EXECUTIONS: Final = 256
FORCED: Final = tuple(c.name for c in CONFIGURATIONS if Settings.of(c).may_wait)
RUN: Final = tuple(c.name for c in CONFIGURATIONS if not Settings.of(c).may_wait)


def edition_two() -> list[Path]:
    """The corpus tests that need edition 2, or a pure op that one function defines."""
    return [
        path
        for path in LITMUS
        if (test := corpus_entry(path).test).features & ADDED
        or any(node.op in DEFINED_OPS for node in test.nodes)
    ]


@dataclass(slots=True)
class Shown:
    """What one configuration showed.

    `left_out` has the tests that were not run by reason, `apart` the outcomes that cannot be
    forced by reason, `wrong` what must not be, each with its test.
    """

    tests: int = 0
    allowed: int = 0
    reached: int = 0
    executions: int = 0
    apart: Counter[str] = field(default_factory=Counter)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def leave_out(self, path: Path, reason: str) -> None:
        """Note a test that was not run."""
        self.left_out.setdefault(reason, []).append(path.stem)


def shown(name: str, paths: Iterable[Path], executions: int = EXECUTIONS) -> Shown:
    """Force the tests in a configuration, or run them."""
    chosen = configuration("tf", name)
    found = Shown()
    with closing(Worker("tf")) as worker:
        for path in paths:
            if name in FORCED:
                _forced(path, worker, chosen, found)
            else:
                _run(path, worker, chosen, found, executions)
    return found


def _forced(path: Path, worker: Worker, chosen: Config, found: Shown) -> None:
    covered = cover(corpus_entry(path).test, worker, chosen, Limits())
    if covered.left_out:
        found.leave_out(path, covered.left_out)
        return
    found.tests += 1
    found.reached += len(covered.reached)
    found.allowed += len(covered.reached) + len(covered.wrong) + len(covered.not_followed)
    found.apart.update(covered.apart.values())
    found.wrong += [f"{path.stem}: {seen} for {wanted}" for wanted, _, seen in covered.wrong]
    found.wrong += [f"{path.stem}: {wanted}: {why}" for wanted, why in covered.not_followed]


def _run(path: Path, worker: Worker, chosen: Config, found: Shown, executions: int) -> None:
    entry = corpus_entry(path)
    try:
        oracle = Explorer(entry.test, GUARANTEES[chosen.guarantees])
        allowed = oracle.allowed_outcomes()
    except NoAllowedSet as reason:
        found.leave_out(path, str(reason))
        return
    result = replay_entry(entry, oracle, worker, chosen, ReplayOptions(60, executions))
    if result.problem:
        found.leave_out(path, result.refused or result.problem)
        return
    judged = result.judgement
    assert judged is not None
    found.tests += 1
    found.executions += sum(judged.histogram.values())
    found.allowed += len(allowed.witnesses)
    found.reached += len(set(judged.histogram) & set(allowed.witnesses))
    found.wrong += [f"{path.stem}: died: {message}" for message in result.died]
    found.wrong += [f"{path.stem}: forbidden {outcome}" for outcome in judged.forbidden]


def main(names: Sequence[str]) -> int:
    """Print what the configurations show, all if none is named."""
    paths = edition_two()
    wrong = 0
    for name in names or (*FORCED, *RUN):
        found = shown(name, paths)
        wrong += len(found.wrong)
        apart = sum(found.apart.values())
        how = f"{found.executions:6} run" if found.executions else "    forced"
        sys.stdout.write(
            f"{name:28} {how} {found.tests:3} tests, {found.reached:4} of {found.allowed:4} "
            f"outcomes, {apart:3} apart, {len(found.wrong)} wrong\n"
        )
        for reason, count in found.apart.items():
            sys.stdout.write(f"  {count} apart: {reason}\n")
        for reason, stems in found.left_out.items():
            sys.stdout.write(f"  {len(stems)} left out: {reason}: {' '.join(stems)}\n")
        for line in found.wrong:
            sys.stdout.write(f"  WRONG {line}\n")
        sys.stdout.flush()
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
