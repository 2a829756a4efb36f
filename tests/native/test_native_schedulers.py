"""Schedulers of the controlled engine: sound, repeatable, with the documented probabilities.

Seeds are fixed, so nothing here changes from run to run; the odds say how unlikely
it was that a right scheduler fails.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import islice, pairwise, permutations

import pytest
from helpers import UNCLUSTERED, corpus_entry, for_each
from native.generated import generate_test
from native.helpers_native import is_supported, prepared

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Graph, LitmusTest, Node, Variable
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.fuzz.executors.native.executor import (
    MEASURES,
    Diverged,
    NativeExecutor,
    PreparedTest,
    controlled_config,
)
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.oracles.events import strictnesses
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, MODELS, RFC

CONFIGS = [c for c in NativeExecutor.configurations() if dict(c.settings)["engine"] == "controlled"]
NAMES = ("random", "pct", "pos", "urw", "surw", "uniform")
IRIW = "X=1 || Y=1 || r0=X; r1=Y || r2=Y; r3=X"
BUSY = "Q!1; lock M; X+=1; unlock M; r0=Q? || r2=X; lock M; X+=2; unlock M; Q!2; r1=Q?"


def under(scheduler: str, test: LitmusTest, depth: int = 3, *, split: bool = False) -> PreparedTest:
    """Prepare the test for a scheduler."""
    return PreparedTest(test, controlled_config("it", scheduler, depth, split_updates=split))


def test_each_scheduler_is_a_configuration_of_either_model() -> None:
    chosen = {(dict(c.settings)["scheduler"], c.guarantees) for c in CONFIGS}
    assert chosen == {(name, model) for name in NAMES[:-1] for model in MODELS}
    assert {c.name for c in CONFIGS} >= {"controlled", "pct", "pos", "urw", "surw", "pct_split"}


# --- sound -------------------------------------------------------------------------


@for_each("path", UNCLUSTERED, where=is_supported)
def test_every_outcome_is_allowed(path) -> None:
    test = corpus_entry(path).test
    judges = {name: Explorer(test, model) for name, model in MODELS.items()}
    for config in CONFIGS:
        seen = PreparedTest(test, config).run(50, Noise(), seed=1)
        assert sum(seen.values()) == 50
        for outcome in seen:
            verdict = judges[config.guarantees].judge(outcome)
            assert verdict in (Verdict.ALLOWED, Verdict.UNSPECIFIED), (config.name, str(outcome))


@pytest.mark.parametrize("chunk", range(4))
def test_every_outcome_of_a_generated_test_is_allowed(chunk: int) -> None:
    """Nested bodies, sections, queues, several runs; also `uniform` where it applies."""
    seeds = range(5_000 + 150 * chunk, 5_150 + 150 * chunk)
    generated = [generate_test(seed, effects=4) for seed in seeds]
    tests = [t for t in generated if t and len(list(islice(strictnesses(t, RFC), 17))) < 17]
    assert len(tests) > 60
    counted = 0
    for test in tests:
        judges = {name: Explorer(test, model) for name, model in MODELS.items()}
        configs = list(CONFIGS)
        if not {"loops", "conditionals"} & test.features:
            configs.append(controlled_config("uniform", "uniform", split_updates=True))
            counted += 1
        for config in configs:
            for outcome in PreparedTest(test, config).run(20, Noise(), seed=1):
                verdict = judges[config.guarantees].judge(outcome)
                assert verdict in (Verdict.ALLOWED, Verdict.UNSPECIFIED), (config, str(outcome))
    assert counted > 10


@pytest.mark.parametrize("name", NAMES)
def test_all_outcomes_of_iriw_are_shown(name: str) -> None:
    """Fifteen, of which 200,000 executions miss one with less than 1e-19.

    Each has an order with odds of at least 1/4**6 in a walk, 1/180 where orders are
    alike, and 1/(4 * 6**2) under PCT, since two changes of priority are enough. POS and
    SURW see all within some hundreds (docs/engines.md).
    """
    seen = under(name, litmus(IRIW)).run(200_000, Noise(), 0)
    assert len(seen) == 15


# --- repeatable --------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_histogram(name: str) -> None:
    test = litmus(BUSY, queues={"Q": 1})
    first, again, other = (under(name, test).run(5_000, Noise(), seed) for seed in (3, 3, 4))
    assert list(first.items()) == list(again.items())
    assert first != other


@pytest.mark.parametrize("name", NAMES)
def test_a_record_is_replayed_a_thousand_times(name: str) -> None:
    test = litmus(BUSY, queues={"Q": 1})
    executor = under(name, test, split=True)
    replayer = prepared(test, RFC)
    traces = set()
    for seed in range(20):
        outcome, choices = executor.record(seed)
        assert executor.record(seed) == (outcome, choices)
        traces.add(tuple(choices))
        for _ in range(50):
            assert replayer.replay(choices) == outcome
    assert len(traces) > 5


@pytest.mark.parametrize("name", NAMES)
def test_a_record_of_another_test_diverges(name: str) -> None:
    _, choices = under(name, litmus("X=1; r0=Y || Y=1; r1=X")).record(1)
    with pytest.raises(Diverged, match="after 0 of 4 choices"):
        under(name, litmus("X=1; r0=Y || Y=1; r1=X || Z=1")).replay(choices)


def test_invalid_scheduler_settings_are_refused_in_one_line() -> None:
    test = litmus("X=1")
    with pytest.raises(ValueError, match=r"^no scheduler 'best'; there are random, pct, pos, "):
        under("best", test).run(1, Noise(), 0)
    with pytest.raises(ValueError, match=r"^the depth of pct must be 1 to 64$"):
        under("pct", test, depth=0).run(1, Noise(), 0)
    with pytest.raises(Refused, match=r"^the scheduler uniform takes no conditionals and loops$"):
        under("uniform", litmus("loop 2 {X+=1}")).run(1, Noise(), 0)
    wide = litmus(" || ".join("X=1" for _ in range(18)))
    with pytest.raises(Refused, match=r"at most 131072 sets of events"):
        under("uniform", wide).run(1, Noise(), 0)


# --- probabilities -----------------------------------------------------------------

# The k events of A and B; what shows if A is left after X=1, and so on.
_DEPTHS = {
    1: ("p=P; q=P; s=P; X=1; X=2 || r0=X; r1=X", 7, {"r0": 2}),
    2: ("p=P; q=P; s=P; X=1; X=2 || r0=X", 6, {"r0": 1}),
    3: ("p=P; q=P; s=P; X=1; X=2 || r0=X; r1=X", 7, {"r0": 1, "r1": 2}),
}


@pytest.mark.parametrize("depth", _DEPTHS)
def test_pct_keeps_its_bound_on_an_outcome_of_known_depth(depth: int) -> None:
    """Two chains: at least 1/(2 k**(d-1)), and never with a smaller depth.

    Of 200,000 executions. The true odds are 1/(2 (k-1)**(d-1)), by which a right
    scheduler stays under the bound with less than 1e-9 for d > 1; for d = 1 they are
    the bound, and we allow six standard deviations (1e-9).
    """
    program, events, wanted = _DEPTHS[depth]
    test = litmus(program)

    def count(with_depth: int) -> int:
        seen = under("pct", test, with_depth).run(200_000, Noise(), seed=7)
        return sum(n for o, n in seen.items() if wanted.items() <= o.plain.items())

    least = 200_000 / (2 * events ** (depth - 1))
    assert count(depth) >= least - (6 * math.sqrt(200_000) / 2 if depth == 1 else 0)
    assert depth == 1 or count(depth - 1) == 0


INCREMENTS = " || ".join(["X+=1"] * 8)
RUNS = 200_000


def finals(scheduler: str, program: str = INCREMENTS, depth: int = 2) -> dict[int, float]:
    """Count the final values of X in `RUNS` executions."""
    seen = under(scheduler, litmus(program), depth, split=True).run(RUNS, Noise(), seed=1)
    shares: Counter[int] = Counter()
    for outcome, times in seen.items():
        shares[int(str(outcome.plain["X"]))] += times
    return {value: shares[value] / RUNS for value in range(1, 9)}


def as_exact(share: float, exact: float) -> bool:
    """Within seven standard deviations, and one execution: 1e-11 for a right one."""
    return abs(share - exact) <= 7 * math.sqrt(exact * (1 - exact) / RUNS) + 1 / RUNS


def uniform_final_of_one() -> float:
    """Probability that the last write's read comes before all writes, for uniform orders.

    The other seven chains interleave at random. The read stands in any of 15 places, and
    the places before their first write number the reads before it plus one.
    """
    reads_first = [
        math.perm(7, j) * 2**j * math.factorial(14 - j) / math.factorial(14) for j in range(8)
    ]
    return sum(reads_first) / 15


def random_walk_finals() -> dict[int, float]:
    """Exact probabilities, by states: the value each chain has read, and the value of X."""
    states: dict[tuple[tuple[int, ...], int, int], float] = {((), 8, 0): 1.0}
    ends: Counter[int] = Counter()
    for _ in range(16):
        following: Counter[tuple[tuple[int, ...], int, int]] = Counter()
        for (read, unread, x), odds in states.items():
            each = odds / (len(read) + unread)
            if unread:
                following[tuple(sorted((*read, x))), unread - 1, x] += each * unread
            for i, value in enumerate(read):
                following[read[:i] + read[i + 1 :], unread, value + 1] += each
        states = dict(following)
    for (_, _, x), odds in states.items():
        ends[x] += odds
    return dict(ends)


def test_eight_increments_under_each_scheduler_end_as_calculated() -> None:
    """Updates are split, so that each increment is a chain of a read and a write."""
    exact = random_walk_finals()
    walk = finals("random")
    assert all(as_exact(walk[value], exact[value]) for value in walk)
    # Of 15 places for the change, seven lie inside a chain that is not the last, and
    # the one inside the first that runs makes it write last of all.
    pct = finals("pct")
    assert as_exact(pct[1], 1 / 15)
    assert as_exact(pct[8], 8 / 15)
    for name in ("urw", "surw", "uniform"):
        uniform = finals(name)
        assert as_exact(uniform[1], uniform_final_of_one())
        # One after another: 8! orders of 16! / 2**8.
        assert as_exact(uniform[8], math.factorial(8) * 2**8 / math.factorial(16))


def test_pct_is_diluted_by_events_that_do_not_matter() -> None:
    """With 22 events elsewhere: 1/37 and 30/37, the 2.7% and 81% of 38 steps."""
    other = "; ".join(f"p{i}=P" for i in range(22))
    pct = finals("pct", f"{INCREMENTS} || {other}")
    assert as_exact(pct[1], 1 / 37)
    assert as_exact(pct[8], 30 / 37)


@pytest.mark.parametrize(
    ("program", "exact"),
    [
        # Each write races with the read anew.
        ("X=1; X=2; X=3 || r0=X", {0: 1 / 2, 1: 1 / 4, 2: 1 / 8, 3: 1 / 8}),
        # Nothing but the write does, so that the read's score must be the worst of four.
        ("p=P; q=P; X=1 || r0=X", {0: 3 / 4, 1: 1 / 4}),
        # Two reads of one variable do not race.
        ("p=X; q=X; X=1 || r0=X", {0: 3 / 4, 1: 1 / 4}),
    ],
)
def test_pos_resamples_exactly_the_racing_events(program: str, exact: dict[int, float]) -> None:
    shares: Counter[int] = Counter()
    for outcome, times in under("pos", litmus(program)).run(RUNS, Noise(), seed=1).items():
        shares[int(str(outcome.plain["r0"]))] += times
    assert set(shares) == set(exact)
    assert all(as_exact(shares[value] / RUNS, exact[value]) for value in exact)


def chi_square(counts: Counter[object], cells: int) -> float:
    """How far from the same count in each cell; about `cells` - 1 if they are alike."""
    mean = counts.total() / cells
    seen = sum((count - mean) ** 2 / mean for count in counts.values())
    return seen + (cells - len(counts)) * mean


# The value of each read gives its place among the writes: 20 orders.
_TWO_CHAINS = "X=1; X=2; X=3 || r0=X; r1=X; r2=X"


def chi_square_of_two_chains(scheduler: str, program: str) -> float:
    seen: Counter[object] = Counter()
    for outcome, times in under(scheduler, litmus(program)).run(40_000, Noise(), seed=5).items():
        seen[tuple(str(outcome.plain[name]) for name in ("r0", "r1", "r2"))] += times
    return chi_square(seen, 20)


def test_all_orders_of_two_independent_chains_are_equally_likely() -> None:
    """Of 19 degrees of freedom; 82, like the limits below, is passed with 1e-9."""
    for name in ("urw", "surw", "uniform"):
        assert chi_square_of_two_chains(name, _TWO_CHAINS) < 82
    for name in ("random", "pct", "pos"):
        assert chi_square_of_two_chains(name, _TWO_CHAINS) > 1_000


def test_surw_makes_the_order_on_one_variable_uniform_whatever_else_there_is() -> None:
    """No op writes P, so that X is the selected variable."""
    other = "; ".join(f"p{i}=P" for i in range(8))
    program = f"X=1; X=2; X=3 || {other}; r0=X; r1=X; r2=X"
    assert chi_square_of_two_chains("surw", program) < 82
    assert chi_square_of_two_chains("urw", program) > 1_000


def reads(edges: str) -> LitmusTest:
    """Reads of one variable; ``ab`` for an edge from a to b, or ``a`` alone."""
    names = sorted(set(edges) - {" "})
    before = {name: tuple(e[0] for e in edges.split() if e[1:] == name) for name in names}
    nodes = (Node(name, "ReadVariableOp", (), ("X",), before[name]) for name in names)
    return LitmusTest("reads", (Variable("X", "int32", ()),), (Graph("main", tuple(nodes)),))


def chi_square_of_orders(scheduler: str, test: LitmusTest, orders: int) -> float:
    executor = under(scheduler, test)
    traces = Counter(tuple(executor.record(seed)[1]) for seed in range(4_000))
    assert len(traces) <= orders
    # The digests of the enabled events at each step identify the order.
    return chi_square(Counter(dict(traces.items())), orders)


def test_all_orders_of_a_forest_are_equally_likely() -> None:
    """Of 6 events by hook lengths, 5 for a and 3 for c: 6! / 15 orders.

    That d comes after a follows from the rest, and changes nothing.
    """
    test = reads("ab ac cd ce ad h")
    for name in ("urw", "uniform"):
        assert chi_square_of_orders(name, test, 48) < 130  # of 47 degrees of freedom
    assert chi_square_of_orders("random", test, 48) > 300


def test_uniform_counts_joins_and_what_blocks() -> None:
    # Two chains that join, and one concurrent event: 3 orders of the chains, 5 or 6 places.
    join = reads("ab bd cd e")
    assert chi_square_of_orders("uniform", join, 15) < 72  # of 14 degrees of freedom
    # Sections exclude each other: 2 orders; the read stands in any of 7 places.
    locked = litmus("lock M; X=1; unlock M || lock M; X=2; unlock M || r0=P")
    assert chi_square_of_orders("uniform", locked, 14) < 70  # of 13
    assert chi_square_of_orders("random", locked, 14) > 200


# --- within a bound ----------------------------------------------------------------


def preemptions(order: tuple[int, ...]) -> int:
    """Of an order of chains, given as their numbers: switches from one that goes on."""
    pairs = pairwise(order)
    return sum(a != b and a in order[i + 1 :] for i, (a, b) in enumerate(pairs))


def delays(order: tuple[int, ...]) -> int:
    """How many chains that were not at an end the round-robin passed over."""
    total, last = 0, 0
    for i, chain in enumerate(order):
        left = sorted(set(order[i:]), key=lambda c, last=last: (c - last) % 3)
        total += left.index(chain)
        last = chain
    return total


@pytest.mark.parametrize("measure", MEASURES)
def test_exactly_the_executions_within_the_bound_are_performed(measure: str) -> None:
    """Three chains of two events: 90 orders, counted by the definition."""
    cost = {"preemptions": preemptions, "delays": delays}[measure]
    orders = Counter(cost(order) for order in set(permutations((0, 0, 1, 1, 2, 2))))
    searches = list(
        prepared(litmus("a=X; b=Y || X=1; c=Y || d=X; Y=1"), EXECUTOR).widen(measure, 100)
    )
    assert [s.bound for s in searches] == list(range(max(orders) + 1))
    for search in searches:
        assert search.executions == sum(n for c, n in orders.items() if c <= search.bound)
    assert [s.whole for s in searches] == [False] * max(orders) + [True]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("program", "model"),
    [
        ("X=1; r0=Y || Y=1; r1=X", EXECUTOR),
        (IRIW, EXECUTOR),
        ("X+=1 || X+=2 || r0=X", RFC),
        ("lock M; X+=1; unlock M; r0=X || r1=X; lock M; X+=2; unlock M", RFC),
        ("Q!1; r0=Q? || Q!2; r1=Q?", EXECUTOR),
        ("X=1 || r0=X; if r0==1 {Y=1} else {Y=2; Y=3} || r1=Y", EXECUTOR),
        ("loop 2 {X+=1} || r0=X", RFC),
        ("loop[2] 3 free {X=1; Y=2} || r0=Y", EXECUTOR),
        ("X=1; Y=1 ||| r0=Y; r1=X", EXECUTOR),
    ],
)
def test_growing_bounds_show_more_and_in_the_end_all(measure: str, program: str, model) -> None:
    test = litmus(program, queues={"Q": 1} if "Q" in program else None)
    executor = prepared(test, model)
    everything = executor.exhaust(10_000)
    assert everything.complete
    searches = list(executor.widen(measure, 50_000))
    assert all(search.complete for search in searches)
    for lower, higher in pairwise(searches):
        assert set(lower.histogram) <= set(higher.histogram)
        assert lower.executions < higher.executions
    assert searches[-1].whole
    assert set(searches[-1].histogram) == set(everything.histogram)


@pytest.mark.parametrize("chunk", range(2))
def test_a_whole_search_of_a_generated_test_equals_the_exhaustive_one(
    chunk: int,
) -> None:
    compared = 0
    for seed in range(7_000 + 100 * chunk, 7_100 + 100 * chunk):
        test = generate_test(seed, effects=4)
        if test is None:
            continue
        for model in MODELS.values():
            executor = prepared(test, model)
            everything = executor.exhaust(2_000)
            for measure in MEASURES:
                found = executor.search(measure, 1_000, 4_000)
                if found.complete and everything.complete:
                    assert found.whole
                    assert set(found.histogram) == set(everything.histogram), (seed, model.name)
                    compared += 1
    assert compared > 100


def test_a_search_cut_short_is_not_complete() -> None:
    executor = prepared(litmus(IRIW), EXECUTOR)
    found = executor.search("preemptions", 1, 95)
    assert not found.complete
    assert not found.whole
    assert found.executions == 95
    assert executor.search("preemptions", 1, 96).complete
    assert [s.complete for s in executor.widen("preemptions", 95)] == [True, False]
