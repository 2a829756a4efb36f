"""Orders and races, counted by hand on shapes that have names."""

from __future__ import annotations

import math

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Graph, LitmusTest, Node, Queue, Run
from litmusfuzz.corpus.ops import ConstAttrs, CountAttrs, Kind
from litmusfuzz.fuzz.generators import FAMILIES, generate
from litmusfuzz.oracles import _explorer, reference
from litmusfuzz.oracles.arithmetic import bound_of_result, bound_of_stored, growth
from litmusfuzz.oracles.bounds import (
    coarse_bound,
    count,
    count_all,
    count_races,
    largest_magnitude,
    reaches,
)
from litmusfuzz.oracles.events import Strictness, every_stricter, unfold
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import ACD, EXECUTOR, RFC, Model
from litmusfuzz.oracles.paths import LongPaths

SECTIONS = "lock M; r0=X; X=r0+1; unlock M || lock M; r1=X; X=r1+1; unlock M"
CROSSED = (
    "lock M; r0=X; lock N; X=1; unlock N; unlock M || lock N; r1=X; lock M; X=2; unlock M; unlock N"
)


@pytest.mark.parametrize(
    ("text", "orders", "races"),
    [
        ("X=1; Y=2 || r0=Y; r1=X", 6, 2),  # MP: two from four; each read and its write
        ("X=1; r0=Y || Y=1; r1=X", 6, 2),  # SB
        ("X=1; r0=X", 1, 0),
        ("r0=X || r1=X", 2, 0),  # two reads do not race
        ("X+=1 || X+=1", 6, 3),  # R W against R W: all pairs but R with R
    ],
)
def test_orders_and_races_of_named_shapes(text: str, orders: int, races: int) -> None:
    test = litmus(text)
    assert count_all(test, 1000) == orders
    assert count_races(LongPaths(test).path(), races + 1) == races


def test_one_section_excludes_another() -> None:
    assert count_all(litmus(SECTIONS), 1000) == 2


@pytest.mark.parametrize(
    ("text", "queues"),
    [
        (CROSSED, {}),
        ("Q!1; Q!2; X=5 || r0=X; r1=Q?", {"Q": 1}),
        ("X=1; Q!1 || Q!2 || r0=Q?; r1=Q?", {"Q": 2}),
        ("Q!1,2,3 || r0=Q?2 || r1=Q?", {"Q": 2}),
        ("r0=Q? || X=1", {"Q": 1}),
        (f"loop 2 free {{ {SECTIONS.split(' || ', maxsplit=1)[0]} }} || X=1", {}),
    ],
)
def test_what_may_block_is_counted_as_the_reference_looks_at_it(
    text: str, queues: dict[str, int]
) -> None:
    """Over every choice of strictness."""
    test = litmus(text, queues=queues)
    assert count_all(test, 100_000) == reference.allowed_outcomes(test, RFC).orders


def test_a_count_stops_at_its_limit() -> None:
    test = litmus(" || ".join(f"X={i}" for i in range(12)))
    assert count_all(test, 1000) == 1000


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        (" || ".join(f"X={i}; Y={i}" for i in range(3)), 90),  # the lower bound is the number
        ("X=1; Y=1 || X=2; Y=2; X=3", 10),
        ("Y=1 || X=1; loop 3 { X+=1 }; Y=2", 810),
    ],
)
def test_a_count_is_exact_up_to_its_limit(text: str, orders: int) -> None:
    """A lower bound ends most counts early: it must not be above the number of orders."""
    for limit in (1, orders - 1, orders, orders + 1, 10 * orders):
        assert count_all(litmus(text), limit) == min(orders, limit)


@pytest.mark.parametrize("model", [RFC, EXECUTOR, ACD], ids=lambda model: model.name)
@pytest.mark.parametrize(
    ("text", "largest"),
    [
        ("X+=5 || X+=7", 21),  # each storing event acts on the largest contents: 7 + 7 + 7
        ("X=5; r0=X; Y=r0+7 || X+=9", 36),
        ("X=100 || r0=X", 100),
    ],
)
def test_a_bound_takes_the_unfolding_of_any_model(text: str, largest: int, model: Model) -> None:
    """An update is one event under some models, and two under others."""
    test = litmus(text)
    bound = largest_magnitude(test, Explorer(test, model).unfolding)
    assert bound == largest_magnitude(test) == largest


def test_a_bound_need_not_be_exact_beyond_its_limit() -> None:
    test = litmus("X=3; r0=X; X=r0*9 || r1=X; X=r1*7")
    exact = largest_magnitude(test)
    assert exact == largest_magnitude(test, limit=exact + 1)
    for limit in (1, 20, exact):
        assert limit <= largest_magnitude(test, limit=limit) <= exact
    assert largest_magnitude(test, limit=20) < exact


def test_the_bound_holds_where_every_update_is_read_and_written_apart() -> None:
    """It is computed on the events of `executor`: `rfc` has more orders, and the same values."""
    texts = (
        "X=9 || X+=7 || X+=5",
        "X=3; r0=X; Y=r0 || r1=Y; X+=r1 || r2=X; Y+=r2",
        "X=2; r0=X; X+=r0 || r1=X; X+=r1",
    )
    for text in texts:
        test = litmus(text)
        bound = largest_magnitude(test, unfold(test, EXECUTOR))
        shown = {
            abs(value)
            for outcome in reference.allowed_outcomes(test, RFC).witnesses
            for _, row in outcome.values
            for value in (row if isinstance(row, tuple) else (row,))
        }
        assert max(shown) <= bound, text


@pytest.mark.parametrize("family", FAMILIES)
def test_no_op_grows_faster_than_its_factor(family: str) -> None:
    """By the bound of each op: with any operands, but for those that are constants."""
    found = 0
    for index in range(40):
        test = generate(family, 8, index)
        constants = {
            node.name: max(map(abs, test.constant(node)), default=0)
            for node in test.nodes
            if node.definition.constant
        }
        for node in test.nodes:
            factor = growth(node, constants)
            if factor is None or not node.inputs:
                continue
            for largest in (1, 13, 1_000):
                operands = [constants.get(name, largest) for name in node.inputs]
                if node.definition.kind is Kind.PURE:
                    value = bound_of_result(node, ())(operands)
                elif node.definition.kind in (Kind.WRITE, Kind.UPDATE):
                    seen = [largest] * len(node.definition.roles)
                    value = bound_of_stored(node, len(seen))([*seen, *operands])
                else:
                    continue
                known = [constants[name] for name in node.inputs if name in constants]
                assert value <= factor * max(largest, *known, 1), node
                found += 1
    # Ops of the pure table, on computed indices and on accumulators have no factor.
    assert found > 50


def test_the_coarse_bound_counts_each_instance() -> None:
    """By hand: the largest constant, twice for each addition."""
    assert coarse_bound(litmus("X=100 || r0=X")) == 100
    assert coarse_bound(litmus("X+=5 || X+=7")) == 7 * 2 * 2
    # The counter's limit and step are constants; the counter is added to in each iteration.
    assert coarse_bound(litmus("X=1 || loop 3 { X+=9 }")) == 9 * 2**3 * 2**3
    assert coarse_bound(litmus("X=3; r0=X; X=r0*9 || r1=X; X=r1*7")) == 9 * 9 * 7


@pytest.mark.parametrize(
    "family", ["dag", "dense", "pure", "queues", "runs", "sections", "sparse", "training"]
)
def test_a_test_with_few_features_needs_no_unfolding(family: str) -> None:
    """Each run has one instance of each of its nodes."""
    few = frozenset(("several runs", "critical sections", "queues"))
    tests = [test for index in range(40) if (test := generate(family, 5, index)).features <= few]
    assert len(tests) >= 25
    for test in tests:
        found = largest_magnitude(test)
        assert found == largest_magnitude(test, unfold(test, EXECUTOR))
        assert found == largest_magnitude(test, unfold(test, RFC))


@pytest.mark.parametrize(("runs", "largest"), [(1, 54), (2, 486), (3, 4374), (5, 354294)])
def test_a_node_of_several_elements_counts_for_each_in_each_run(runs: int, largest: int) -> None:
    """Two elements are taken, tripled and put back: each of them may be what was tripled last."""
    three = ConstAttrs("int32", (), 3)
    nodes = (
        Node("d", "QueueDequeueManyV2", resources=("Q",), attrs=CountAttrs(2)),
        Node("three", "Const", attrs=three),
        Node("t", "Mul", ("d", "three")),
        Node("e", "QueueEnqueueManyV2", ("t",), ("Q",)),
    )
    test = LitmusTest(
        "tripled",
        (),
        (Graph("g", nodes),),
        queues=(Queue("Q", "int32", (), 4, (1, 2)),),
        client=tuple(Run(f"r{number}", "g") for number in range(runs)),
    )
    assert largest_magnitude(test) == largest_magnitude(test, unfold(test, RFC)) == largest


def test_the_bound_by_hand() -> None:
    # X may grow by 7 in each round but the first: to 107, and to 114 before the last one.
    assert largest_magnitude(litmus("X=100; r0=X; Y=r0*3 || X+=7")) == 3 * 114


@pytest.mark.parametrize("family", ["calls", "mixed", "queues", "runs", "sections"])
def test_stricter_choices_have_no_more_orders_than_the_loosest(family: str) -> None:
    """So that a product decides for most tests whether all of them together reach a limit."""
    several = 0
    for index in range(60):
        test = generate(family, 4, index)
        paths = LongPaths(test)
        loosest = count(test, paths.path(), 10_000)
        for strictness in every_stricter(test.nodes, test.clusters, test.bounds):
            assert count(test, paths.path(strictness), 10_000) <= loosest
            several += 1
        for limit in (1, loosest, loosest + 1, 100, 2_000, 4_000):
            assert reaches(paths, min(loosest, limit), limit) == (count_all(test, limit) >= limit)
    assert several > 100 or family in ("queues", "runs", "sections")


def test_an_unfolding_is_remembered_for_its_own_test_and_model_only() -> None:
    test, equal = litmus("X=1 || X+=2"), litmus("X=1 || X+=2")
    first = unfold(test, RFC)
    assert unfold(test, RFC) is first
    assert unfold(equal, RFC) is not first
    assert unfold(test, EXECUTOR).axioms != first.axioms
    assert unfold(test, RFC, {"": Strictness()}) is not first


# --- counts, where the events do not fit into one word -------------------------------------


def poset(events: int, edges: list[tuple[int, int]]) -> bytes:
    """The events before each, as `_explorer.count_orders` takes them."""
    above = [0] * events
    for before, after in edges:
        above[after] |= 1 << before | above[before]
    return b"".join(each.to_bytes((events + 63) // 64 * 8, "little") for each in above)


@pytest.mark.parametrize("length", [10, 50, 90, 400])
def test_two_chains_have_as_many_orders_as_their_shuffles(length: int) -> None:
    """All of one chain, and three events of the other: in a word, in four, in many."""
    chain = [(i, i + 1) for i in range(length - 1)]
    short = [(length, length + 1), (length + 1, length + 2)]
    above = poset(length + 3, chain + short)
    wanted = math.comb(length + 3, 3)
    assert _explorer.count_orders(length + 3, above, [], 1 << 40) == wanted
    assert _explorer.count_orders(length + 3, above, [], wanted) == wanted
    assert _explorer.count_orders(length + 3, above, [], wanted - 1) == wanted - 1


@pytest.mark.parametrize("length", [8, 80])
def test_a_take_waits_for_a_put_or_for_the_end(length: int) -> None:
    """A chain whose last event puts, beside takes: counted by hand."""
    put, one, other, close = length - 1, length, length + 1, length + 2
    chain = [(i, i + 1) for i in range(length - 1)]
    size = (length + 3 + 63) // 64 * 8

    def orders(number: int, *takes: int) -> int:
        def bits(*events: int) -> bytes:
            return sum(1 << each for each in events if each < number).to_bytes(size, "little")

        gates = [(each, True, 0, 9, bits(put), bits(one, other), bits(close)) for each in takes]
        return _explorer.count_orders(number, poset(number, chain), gates, 1 << 40)

    assert orders(length + 1, one) == 1  # after the put, the last of the chain
    assert orders(length + 2, one, other) == 2  # either; the other one waits for ever
    # Here the other one does not wait: it comes anywhere, and unless it is last, the take waits on.
    assert orders(length + 2, one) == length + 2


@pytest.mark.parametrize("length", [8, 80])
def test_a_take_need_not_wait_after_a_close(length: int) -> None:
    put, take, close = length - 1, length, length + 1
    size = (length + 2 + 63) // 64 * 8
    sets = [(1 << each).to_bytes(size, "little") for each in (put, take, close)]
    above = poset(length + 2, [(i, i + 1) for i in range(length - 1)])
    found = _explorer.count_orders(length + 2, above, [(take, True, 0, 9, *sets)], 1 << 40)
    # Of all places of the two in the chain, half have the close first; of the others, the take may
    # come in one place: after the put, which is the last of the chain.
    assert found == (length + 2) * (length + 1) // 2 + 1


def test_what_is_no_set_for_each_event_is_refused() -> None:
    with pytest.raises(ValueError, match="a set for each event"):
        _explorer.count_orders(2, b"\0" * 8, [], 10)
    with pytest.raises(ValueError, match="a gate of an event"):
        _explorer.count_orders(1, b"\0" * 8, [(3, True, 0, 1, b"", b"", b"")], 10)
    with pytest.raises(ValueError, match="4097 events"):
        _explorer.count_orders(4097, b"\0" * (4097 * 65 * 8), [], 10)
