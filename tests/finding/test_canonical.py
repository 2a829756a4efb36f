"""The canonical form: equal for equivalent tests, and different for all others."""

from __future__ import annotations

import random
import time
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import (
    Body,
    BranchAttrs,
    Graph,
    LoopAttrs,
    MalformedTest,
    captures_of,
    head,
    map_bodies,
)
from litmusfuzz.corpus.ops import SectionAttrs
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.finding.canonical import executor_class, form, key
from litmusfuzz.fuzz.finding.renaming import normalized
from litmusfuzz.fuzz.generators import FAMILIES, generate
from litmusfuzz.fuzz.generators.edits import (
    EDITS,
    add_edge,
    drop_edge,
    other_bound,
    other_dtype,
    other_lanes,
    wrap,
)
from litmusfuzz.oracles.errors import ValueTooLarge
from litmusfuzz.oracles.explorer import Budget, Explorer
from litmusfuzz.oracles.model import ACD, EXECUTOR, RFC

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node

    Edit = Callable[[random.Random, LitmusTest], tuple[str, Rewriter] | None]


def rewritten(rng: random.Random, test: LitmusTest) -> LitmusTest:
    """The same test in another order, under other names."""
    rewriter = Rewriter.of(test)
    clustered = {name for cluster in test.clusters for name in cluster.members}

    def shuffled(names: Sequence[str], first: int = 0) -> tuple[str, ...]:
        return (*names[:first], *rng.sample(names[first:], len(names) - first))

    def sources(node: Node) -> set[str]:
        outer = (name for _, name in captures_of(node))
        return {head(name) for name in (*node.edges, *outer)}

    def ordered(nodes: Sequence[Node]) -> tuple[Node, ...]:
        placed: list[Node] = []
        left = list(nodes)
        while left:
            names = {node.name for node in left}
            placed.append(rng.choice([node for node in left if not sources(node) & names]))
            left.remove(placed[-1])
        return tuple(map(within, placed))

    def body(old: Body) -> Body:
        return Body(ordered(old.nodes), old.results)

    def within(node: Node) -> Node:
        attrs, inputs = node.attrs, node.inputs
        if isinstance(attrs, SectionAttrs):
            attrs = SectionAttrs(shuffled(attrs.members))
        if isinstance(attrs, (BranchAttrs, LoopAttrs)):
            attrs = replace(attrs, captures=tuple(rng.sample(attrs.captures, len(attrs.captures))))
        if isinstance(attrs, BranchAttrs):
            places = rng.sample(range(len(attrs.results)), len(attrs.results))
            node = replace(node, attrs=replace(attrs, results=pick(attrs.results, places)))
            node = map_bodies(node, lambda b: Body(b.nodes, pick(b.results, places)))
        elif isinstance(attrs, LoopAttrs):
            places = [0, *rng.sample(range(1, len(inputs)), len(inputs) - 1)]
            following = replace(attrs.body, results=pick(attrs.body.results, places))
            attrs = replace(attrs, carried=pick(attrs.carried, places), body=following)
            node = replace(node, attrs=attrs, inputs=pick(inputs, places))
        else:
            node = replace(node, attrs=attrs)
        node = replace(node, after=shuffled(node.after))
        # The order of a body inside a member is its SSA order.
        return node if node.name in clustered else map_bodies(node, body)

    runs, client = {run.name: run for run in rewriter.client}, []
    while runs:
        name = rng.choice([name for name, run in runs.items() if not runs.keys() & {*run.after}])
        run = runs.pop(name)
        client.append(replace(run, after=shuffled(run.after)))
    made = replace(
        rewriter,
        variables=tuple(rng.sample(rewriter.variables, len(rewriter.variables))),
        mutexes=tuple(rng.sample(rewriter.mutexes, len(rewriter.mutexes))),
        queues=tuple(rng.sample(rewriter.queues, len(rewriter.queues))),
        graphs=tuple(
            Graph(g.name, ordered(g.nodes))
            for g in rng.sample(rewriter.graphs, len(rewriter.graphs))
        ),
        client=tuple(client),
        clusters=tuple(rng.sample(rewriter.clusters, len(rewriter.clusters))),
        observe=tuple(rng.sample(rewriter.observe, len(rewriter.observe))),
    )
    return normalized(made.build(), "rewritten")


def pick(names: Sequence[str], places: Sequence[int]) -> tuple[str, ...]:
    return tuple(names[place] for place in places)


@cache
def generated(number: int) -> list[LitmusTest]:
    return [generate(family, 7, index) for family in FAMILIES for index in range(number)]


def summary(test: LitmusTest) -> Counter[str] | None:
    """Of the allowed outcomes what renaming leaves as it is; None if there are too many."""
    try:
        found = Explorer(test, RFC, Budget(states=20_000)).allowed_outcomes()
    except ValueTooLarge:
        return None
    if not found.complete:
        return None
    return Counter(str(outcome.status) for outcome in found.witnesses)


def test_another_order_and_other_names_have_the_same_form() -> None:
    rng = random.Random(1)
    for test in [*generated(6), *(corpus_entry(path).test for path in LITMUS[::3])]:
        wanted = form(test)
        assert form(rewritten(rng, test)) == wanted, test.description
        assert form(wanted) == wanted


def test_the_form_means_the_same() -> None:
    known = 0
    for test in generated(6):
        if (meant := summary(test)) is not None:
            known += 1
            assert summary(form(test)) == meant
    assert known > 60


def test_another_test_has_another_form() -> None:
    """Any edit: where the allowed sets differ in what no renaming changes."""
    rng = random.Random(2)
    differing = 0
    for test in [corpus_entry(path).test for path in LITMUS[::3]]:
        meant = summary(test)
        for edit in rng.sample(EDITS, 6):
            edited = apply(rng, edit, test)
            if edited is None or None in (meant, other := summary(edited)):
                continue
            if other != meant:
                differing += 1
                assert form(edited) != form(test), edit.__name__
    assert differing > 100


@pytest.mark.parametrize("edit", [drop_edge, add_edge, other_dtype, other_lanes, other_bound, wrap])
def test_a_change_of_structure_gives_another_form(edit: Edit) -> None:
    """An edge, a dtype, lanes, a capacity, parallel iterations, a section."""
    rng = random.Random(3)
    edited = 0
    for test in generated(6):
        other = apply(rng, edit, test)
        if other is not None and other != test:
            edited += 1
            assert form(other) != form(test)
    assert edited > 3


def apply(rng: random.Random, edit: Edit, test: LitmusTest) -> LitmusTest | None:
    done = edit(rng, test)
    try:
        return done and done[1].build()
    except MalformedTest:
        return None


def same(one: str, other: str) -> bool:
    return form(litmus(one)) == form(litmus(other))


def test_values_that_are_only_copied_may_be_others() -> None:
    assert same("X=1; Y=2 || r0=Y; r1=X", "X=7; Y=9 || r0=Y; r1=X")
    assert same("X=1 || X=2 || r0=X", "X=5 || X=3 || r0=X")


def test_whether_values_are_equal_matters() -> None:
    assert not same("X=1 || X=2 || r0=X", "X=1 || X=1 || r0=X")
    assert not same("X=0 || r0=X", "X=1 || r0=X")


def test_values_that_are_computed_with_stay() -> None:
    assert not same("X+=1 || X+=1", "X+=2 || X+=2")
    assert not same("X+=1 || X=3", "X+=1 || X=4")
    # Another variable's are not touched by that.
    assert same("X+=1 || Y=3; r0=Y", "X+=1 || Y=4; r0=Y")


def test_many_like_parts_take_no_long_search() -> None:
    """16 writers and readers alike: 16! labellings, of which a few dozen are looked at."""
    many = litmus(" || ".join(f"X=1; r{i}=X" for i in range(16)))
    assert form(rewritten(random.Random(4), many)) == form(many)


@pytest.mark.parametrize("between", [" || ", "; "])
def test_a_large_test_has_a_form_that_means_the_same(between: str) -> None:
    """The search for the order of 1,500 nodes would take minutes, or more calls than Python has."""
    test = litmus(between.join(f"X={i % 7}" for i in range(1_500)))
    start = time.process_time()
    made = form(test)
    assert time.process_time() - start < 10  # one to two on an idle machine
    assert len(made.graph.nodes) == len(test.graph.nodes)
    assert form(test) == made


def test_the_order_of_the_file_counts_where_the_model_says_so() -> None:
    one, other = litmus("X=1 || r0=X"), litmus("r0=X || X=1")
    assert form(one) == form(other)
    assert form(one, ACD) != form(other, ACD)
    assert form(form(one, ACD), ACD) == form(one, ACD)


def test_keys_never_change() -> None:
    """They stand in files of known findings: another form needs another `VERSION`."""
    folder = LITMUS[0].parent
    found = {
        name: key(
            corpus_entry(folder / f"{name}.yaml").test,
            kind="forbidden",
            rules=["runs"],
            executor_class="tf/xla",
        )
        for name in ("MP", "h-nested-frames", "cl-blog-worked", "enqueue-many-size")
    }
    assert found == {
        "MP": "v3-b2a59eb2c1aa5a47",
        "cl-blog-worked": "v3-e2823d3ba8c7eeb9",
        "enqueue-many-size": "v3-816b843e6a0ebb4c",
        "h-nested-frames": "v3-c3cb7d3cc8888dff",
    }


def test_a_key_tells_sort_rules_and_class() -> None:
    test = litmus("X=1 || r0=X")
    keys = {
        key(test, kind=kind, rules=rules, executor_class=of)
        for kind in ("forbidden", "crashed")
        for rules in ([], ["runs"], ["runs", "capacity"])
        for of in ("tf/xla", "tf/executor")
    }
    assert len(keys) == 12
    assert key(test, kind="a", rules=["b", "c"], executor_class="d") == key(
        test, kind="a", rules=["c", "b"], executor_class="d"
    )


def test_the_executor_class_depends_on_the_settings_of_a_configuration() -> None:
    def of(executor: str, name: str) -> str:
        config = configuration(executor, name)
        return executor_class(executor, dict(config.settings), config.guarantees)

    assert {of("tf", n) for n in ("plain", "grappler", "inter_op_8")} == {"tf/executor"}
    assert {of("tf", n) for n in ("autocluster_min_4", "jit_compile")} == {"tf/xla"}
    assert of("tf", "function_grappler") == "tf/function"
    assert of("tf", "functional_kernels") == "tf/functional_kernels"
    assert of("native", "plain") == f"native/{EXECUTOR.name}"
    assert of("jax", "plain") == f"jax/{RFC.name}"


def test_needed_settings_are_part_of_a_key() -> None:
    test = corpus_entry(LITMUS[0].parent / "MP.yaml").test

    def of(**settings: int | str) -> str:
        return key(test, kind="forbidden", rules=(), executor_class="tf/rfc", settings=settings)

    assert of() == key(test, kind="forbidden", rules=(), executor_class="tf/rfc")
    assert of(pool="second", workers=2) == of(workers=2, pool="second")
    assert len({of(), of(pool="second"), of(pool="global"), of(workers=2)}) == 4
