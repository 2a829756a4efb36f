"""How fast the explorer is: whole sets against the reference, and membership."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final, TypeVar

from corpus.builder import litmus
from corpus.outcome import Outcome, Verdict
from oracles import reference
from oracles.explorer import Budget, Explorer
from oracles.model import RFC

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpus.graph import LitmusTest

REPEATS: Final = 7
TESTS: Final = 50
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report; times are CPU times in seconds.

    `limit_s` is what we promise; `load_s` what it costs to load the test,
    `made_s` to make all outcomes as Python objects, `ratio` how many times
    longer the reference takes on the same test; `unknown` the share of answers
    that the budget cut off, `count` outcomes, or verdicts.
    """

    name: str
    seconds: float
    limit_s: float
    load_s: float
    count: int
    unknown: float = 0.0
    ratio: float | None = None
    made_s: float | None = None

    @property
    def met(self) -> bool:
        """Whether the promise is kept."""
        return self.seconds <= self.limit_s


def best(action: Callable[[], _T], repeats: int = REPEATS) -> tuple[float, _T]:
    """The least CPU time of several calls, and what the last returned."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = action()
        times.append(time.process_time() - start)
    return min(times), result


def chains(rng: random.Random, shape: tuple[int, int], names: str, values: int) -> LitmusTest:
    """So many chains of so many reads and writes; values 1..`values`, 0 for unique ones."""
    number = 0
    parts = []
    for _ in range(shape[0]):
        part = []
        for _ in range(shape[1]):
            number += 1
            name = rng.choice(names)
            value = rng.randint(1, values) if values else number
            part.append(f"{name}={value}" if rng.random() < 0.5 else f"r{number}={name}")
        parts.append("; ".join(part))
    return litmus(" || ".join(parts))


def whole_set(name: str, test: LitmusTest, limit_s: float, *, compare: bool = False) -> Figure:
    """Time to find a whole set; `compare` runs the reference beside it, once."""
    load_s, explorer = best(lambda: Explorer(test, RFC))
    seconds, allowed = best(explorer.allowed_outcomes)
    made_s, _ = best(lambda: frozenset(explorer.allowed_outcomes().witnesses), 3)
    ratio = None
    if compare:
        # Once: it takes many seconds, and its noise is small beside the ratio.
        slow_s, slow = best(lambda: reference.allowed_outcomes(test, RFC, 1 << 40), 1)
        assert set(slow.witnesses) == set(allowed.witnesses)
        ratio = slow_s / (load_s + seconds)
    unknown = float(not allowed.complete)
    count = len(allowed.witnesses)
    return Figure(name, seconds, limit_s, load_s, count, unknown, ratio, made_s)


def simulated(test: LitmusTest, rng: random.Random) -> Outcome:
    """The outcome of a random total order of plain reads and writes."""
    memory = {v.name: test.initial(v) for v in test.variables}
    values = {}
    done: set[str] = set()
    left = list(test.graph.nodes)
    while left:
        node = rng.choice([n for n in left if done.issuperset((*n.inputs, *n.after))])
        left.remove(node)
        done.add(node.name)
        if node.op == "Const":
            values[node.name] = test.constant(node)
        elif node.op == "ReadVariableOp":
            values[node.name] = memory[node.resources[0]]
        else:
            memory[node.resources[0]] = values[node.inputs[0]]
    return Outcome.of(test, values | memory)


def changed(test: LitmusTest, outcome: Outcome, rng: random.Random) -> Outcome:
    """The outcome with one to three values exchanged for others that are in it."""
    values = dict(outcome.values)
    pool = list(values.values())
    for name in rng.sample(list(values), rng.randint(1, 3)):
        values[name] = rng.choice(pool)
    return Outcome.of(test, values)


def membership(
    name: str, shape: tuple[int, int], names: str, values: int, limits_s: tuple[float, float]
) -> list[Figure]:
    """Median time of a verdict over random tests: of allowed outcomes, of forbidden ones."""
    times: dict[Verdict, list[float]] = {verdict: [] for verdict in Verdict}
    loads = []
    for number in range(TESTS):
        rng = random.Random(number)
        test = chains(rng, shape, names, values)
        load_s, explorer = best(lambda test=test: Explorer(test, RFC, Budget(states=200_000)))  # type: ignore[misc]
        loads.append(load_s)
        seen = simulated(test, rng)
        asked = {seen}
        for _ in range(200):
            other = changed(test, seen, rng)
            if other not in asked and explorer.judge(other) is not Verdict.ALLOWED:
                asked.add(other)
                break
        for outcome in asked:
            seconds, verdict = best(lambda o=outcome, e=explorer: e.judge(o))  # type: ignore[misc]
            assert verdict is not Verdict.FORBIDDEN or outcome != seen
            times[verdict].append(seconds)
    total = sum(map(len, times.values()))
    unknown = len(times[Verdict.UNKNOWN]) / total
    return [
        Figure(
            f"{name}, {verdict}",
            median(times[verdict]),
            limit_s,
            median(loads),
            len(times[verdict]),
            unknown,
        )
        for verdict, limit_s in zip((Verdict.ALLOWED, Verdict.FORBIDDEN), limits_s, strict=True)
        if times[verdict]
    ]


def figures(*, compare: bool = True) -> list[Figure]:
    """All of them; `compare` also runs the reference, for most of a minute."""
    rng = random.Random(1)
    unique = [chains(random.Random(seed), (4, 5), "XYZ", 0) for seed in range(8)]
    largest = max(unique, key=lambda t: len(Explorer(t, RFC).allowed_outcomes().witnesses))
    threads = 10
    sb = " || ".join(f"X{i}=1; r{i}=X{(i + 1) % threads}" for i in range(threads))
    three = chains(rng, (3, 5), "XYZ", 0)
    return [
        whole_set("set of 3x5", three, 0.001, compare=compare),
        whole_set("set of 3x6", chains(rng, (3, 6), "XYZ", 0), 0.005),
        whole_set("set of 8 increments", litmus(" || ".join(["X+=1"] * 8)), 0.05),
        whole_set("set of 4x5", largest, 0.1),
        whole_set("set of ten-thread SB", litmus(sb), 0.05),
        *membership("4x4 unique", (4, 4), "XYZ", 0, (20e-6, 20e-6)),
        *membership("8x8 unique", (8, 8), "WXYZ", 0, (1e-3, 2e-3)),
        *membership("8x8 of 1,2,3", (8, 8), "WXYZ", 3, (5e-3, 20e-3)),
    ]
