"""Pure ops that fail in some orders: by hand, and all oracles on random tests."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from helpers import WHOLE

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import MalformedTest, map_nodes
from litmusfuzz.corpus.ops import COMPUTED, OPS, ConstAttrs, RowsAttrs
from litmusfuzz.corpus.outcome import Outcome, Status, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, loads
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.oracles import reference
from litmusfuzz.oracles.axiomatic import Axiomatic
from litmusfuzz.oracles.errors import NoAllowedSet, ValueTooLarge
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, RFC

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest, Node

TESTS = 2000 if os.environ.get(WHOLE) else 60
FAILED = "failed"


def divided(rest: str, observe: str) -> LitmusTest:
    """8 is divided by what a read finds in X: 0 at first, then 2."""
    return loads(
        f"""
litmusfuzz: 2
name: divided
variables:
  X: {{dtype: int32, shape: [], init: 0}}
  Y: {{dtype: int32, shape: [], init: 0}}
graphs:
  main:
    two: {{op: Const, dtype: int32, value: 2}}
    eight: {{op: Const, dtype: int32, value: 8}}
    w: {{op: AssignVariableOp, resources: [X], inputs: [two]}}
    r: {{op: ReadVariableOp, resources: [X]}}
    d: {{op: FloorDiv, inputs: [eight, r]}}
{rest}
observe: [{observe}]
"""
    ).test


def sets(test: LitmusTest) -> set[str]:
    """The allowed set as text; all oracles agree on it, and forbid what is not in it."""
    found = reference.allowed_outcomes(test, RFC)
    assert found.complete
    outcomes = set(found.witnesses)
    explorer, axiomatic = Explorer(test, RFC), Axiomatic(test, RFC)
    assert set(explorer.allowed_outcomes().witnesses) == outcomes
    for outcome in (*outcomes, Outcome((), Status.FAILED)):
        failed = outcome.status is Status.FAILED
        wanted = Verdict.UNSPECIFIED if failed else Verdict.ALLOWED
        wanted = wanted if outcome in outcomes else Verdict.FORBIDDEN
        assert explorer.judge(outcome) is wanted
        assert axiomatic.judge(outcome) is wanted
    return {str(outcome) or str(outcome.status) for outcome in outcomes}


def test_a_needed_op_that_fails_ends_the_order() -> None:
    test = divided("    v: {op: AssignVariableOp, resources: [Y], inputs: [d]}", "r")
    assert sets(test) == {"_status=failed", "r=2 X=2 Y=4"}


def test_an_observed_op_is_needed() -> None:
    assert sets(divided("", "d")) == {"_status=failed", "d=4 X=2 Y=0"}


def test_a_control_edge_needs_the_op() -> None:
    test = divided("    v: {op: AssignVariableOp, resources: [Y], inputs: [two], after: [d]}", "r")
    assert sets(test) == {"_status=failed", "r=2 X=2 Y=2"}


def test_what_nothing_needs_may_be_left_out() -> None:
    assert sets(divided("", "r")) == {"_status=failed", "r=0 X=2 Y=0", "r=2 X=2 Y=0"}


def test_a_division_by_a_constant_does_not_fail() -> None:
    test = divided("    e: {op: FloorDiv, inputs: [r, two]}", "e")
    test = replace(test, graphs=map_nodes(test.graphs, lambda n: n))
    assert sets(test) == {"_status=failed", "e=0 X=2 Y=0", "e=1 X=2 Y=0"}  # d may fail still


BRANCH = """    zero: {op: Const, dtype: int32, value: 0}
    p: {op: Less, inputs: [zero, r]}
    i:
      op: If
      inputs: [p]
      captures: {a: r, b: eight}
      results: [q]
      then:
        nodes:
          e: {op: FloorDiv, inputs: [b, a]}
        results: [e]
      else:
        results: [b]"""


def test_an_op_in_a_branch_not_taken_does_not_fail() -> None:
    """Where the read finds 0, the branch without the division is taken."""
    test = divided(BRANCH, "i.q")
    lines = [node for node in test.graph.nodes if node.name != "d"]
    test = replace(test, graphs=(replace(test.graph, nodes=tuple(lines)),))
    assert test.failing == {"e"}
    assert sets(test) == {"i.q=8 X=2 Y=0", "i.q=4 X=2 Y=0"}


CONSTANT = """
litmusfuzz: 2
name: beyond
variables:
  X: {dtype: int32, shape: [2], init: 0}
  F: {dtype: int32, init: 0}
graphs:
  main:
    i: {op: Const, dtype: int32, value: INDEX}
    zero: {op: Const, dtype: int32, value: 0}
    one: {op: Const, dtype: int32, value: 1}
    f: {op: ReadVariableOp, resources: [F]}
    w: {op: AssignVariableOp, resources: [F], inputs: [one]}
    p: {op: Less, inputs: [f, one]}
    node:
      op: If
      inputs: [p]
      captures: {a: i, b: one, c: zero}
      results: [y]
      then: {results: [a]}
      else:
        nodes:
          NODES
        results: [b]
observe: [node.y]
"""
"""In the branch that is taken if `f` reads 1, an op has a constant index."""


@pytest.mark.parametrize(
    ("nodes", "fails"),
    [
        ("s: {op: ResourceScatterAdd, resources: [X], inputs: [a, b]}", {-1, 2}),
        (
            "r: {op: ResourceGather, resources: [X], inputs: [a]}\n"
            "          k: {op: AssignVariableOp, resources: [F], inputs: [r]}",
            {-1, 2},
        ),
        (
            "v: {op: ReadVariableOp, resources: [X]}\n"
            "          r: {op: GatherV2, inputs: [v, a, c]}\n"
            "          k: {op: AssignVariableOp, resources: [F], inputs: [r]}",
            {-1, 2},
        ),
    ],
    ids=["scatter", "gather", "pure gather"],
)
@pytest.mark.parametrize("index", [-1, 0, 1, 2])
def test_a_constant_index_out_of_range_fails_as_a_computed_one(
    nodes: str, fails: set[int], index: int
) -> None:
    """Where the other branch is taken, nothing fails."""
    test = loads(CONSTANT.replace("NODES", nodes).replace("INDEX", str(index))).test
    assert bool(test.beyond) is bool(test.failing) is (index in fails)
    statuses = {each.partition(" ")[0] for each in sets(test)}
    assert f"node.y={index}" in statuses
    assert ("_status=failed" in statuses) is (index in fails)
    assert ("node.y=1" in statuses) is (index not in fails or index == 1)


ROWS = """
litmusfuzz: 2
name: rows
variables:
  X: {dtype: int32, shape: [2, LANES], init: 0}
  F: {dtype: int32, init: 0}
graphs:
  main:
    i0: {op: Const, dtype: int32, value: 1}
    f: {op: ReadVariableOp, resources: [F]}
    w: {op: AssignVariableOp, resources: [F], inputs: [i0]}
    p: {op: Less, inputs: [f, i0]}
    node:
      op: If
      inputs: [p]
      captures: {i1: i0}
      results: [y]
      then: {results: [i1]}
      else:
        nodes:
          u: {op: Const, dtype: int32, shape: [ROWS, LANES], value: 2}
          s: {op: OP, resources: [X], INPUTS, indices: INDICES}
        results: [i1]
observe: [f]
"""
"""As an attribute, in the branch that is taken if `f` reads 1."""


@pytest.mark.parametrize("op", [*(op for op in COMPUTED if OPS[op].attrs is RowsAttrs)])
@pytest.mark.parametrize(("indices", "lanes"), [("[2]", 1), ("[-1, 0]", 1), ("[0, 2, 5]", 3)])
def test_rows_that_are_not_there_fail_as_a_computed_index(
    op: str, indices: str, lanes: int
) -> None:
    """By hand: the order in which `f` reads 0 fails nothing, the other one ends with the op."""
    rows = indices.count(",") + 1
    given = "inputs: [u]" if OPS[op].operands else "inputs: []"
    text = ROWS.replace("OP", op).replace("INPUTS", given).replace("INDICES", indices)
    test = loads(text.replace("ROWS", str(rows)).replace("LANES", str(lanes))).test
    untouched = f"[{','.join(['0'] * 2 * lanes)}]"  # the whole tensor
    assert test.beyond == {"s"}
    assert sets(test) == {f"f=0 X={untouched} F=1", "_status=failed"}
    assert loads(dumps(Entry(test))).test == test


@pytest.mark.parametrize(
    ("text", "outcomes"),
    [
        ("{type int32[2]} X[5]=1", {"_status=failed"}),
        ("{type int32[2]} r0=X[0,-1]", {"_status=failed"}),
        ("{type int32[2]; X=[3,6]} X[2]/=3 || r0=X", {"_status=failed"}),
        ("{type int32[2]} X[1,0]+=1; r0=X[1]", {"r0=1 X=[1,1]"}),
        ("{type int32[2]} call { X[4]=1 } || r0=Y", {"_status=failed"}),
    ],
)
def test_rows_that_are_not_there_in_the_notation(text: str, outcomes: set[str]) -> None:
    assert sets(litmus(text)) == outcomes


def test_a_constant_that_refutes_the_op_is_refused() -> None:
    with pytest.raises(ValueError, match=r"d\.inputs\.1: FloorDiv: divides by zero"):
        loads(
            """
litmusfuzz: 2
name: zero
variables: {X: {dtype: int32}}
graphs:
  main:
    zero: {op: Const, dtype: int32, value: 0}
    r: {op: ReadVariableOp, resources: [X]}
    d: {op: FloorDiv, inputs: [r, zero]}
"""
        )


def failing(seed: int) -> LitmusTest | None:
    """A test of the family `pure` in which some moduli are larger: indices leave their range."""
    rng = random.Random(seed)
    test = generate("pure", 3, seed)
    limits = {n.inputs[1] for n in test.nodes if n.op == "FloorMod"}

    def larger(node: Node) -> Node:
        if node.name not in limits or not isinstance(node.attrs, ConstAttrs):
            return node
        if not isinstance(node.attrs.value, int):
            return node
        value = node.attrs.value + rng.choice((2, 5, 9, 30))
        return replace(node, attrs=replace(node.attrs, value=value))

    try:
        return replace(test, graphs=map_nodes(test.graphs, larger))
    except MalformedTest:
        return None


def test_oracles_agree_on_random_tests_that_fail() -> None:
    seen: Counter[str] = Counter()
    for seed in range(TESTS):
        test = failing(seed)
        if test is None or not test.failing:
            continue
        for model in (RFC, EXECUTOR):
            try:
                exact = reference.allowed_outcomes(test, model, 3000)
            except ValueTooLarge:
                with pytest.raises(ValueTooLarge):
                    Explorer(test, model).allowed_outcomes()
                seen["too large"] += 1
                continue
            if not exact.complete:
                continue
            outcomes = set(exact.witnesses)
            explorer = Explorer(test, model)
            assert set(explorer.allowed_outcomes().witnesses) == outcomes, seed
            failed = Outcome((), Status.FAILED)
            asked = [*sorted(outcomes, key=str)[:3], failed]
            axiomatic = Axiomatic(test, model)
            for outcome in asked:
                wanted = Verdict.ALLOWED if outcome in outcomes else Verdict.FORBIDDEN
                if outcome == failed and outcome in outcomes:
                    wanted = Verdict.UNSPECIFIED
                assert explorer.judge(outcome) is wanted, (seed, str(outcome))
                verdict = axiomatic.judge(outcome)
                assert verdict in (wanted, Verdict.UNKNOWN), (seed, str(outcome), verdict)
                seen[f"axiomatic {verdict}"] += 1
            seen["fails" if failed in outcomes else "does not fail"] += 1
    assert seen["fails"] >= TESTS // 20, seen
    assert seen["axiomatic unknown"] <= sum(seen.values()) // 20, seen


def test_a_cluster_does_not_report_a_failure() -> None:
    test = divided("", "d")
    from litmusfuzz.corpus.model import Cluster

    clustered = replace(test, clusters=(Cluster("k", ("r", "d")),))
    with pytest.raises(NoAllowedSet, match=r"may fail inside cluster k"):
        reference.allowed_outcomes(clustered, RFC)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "{op: ResourceScatterNdAdd, resources: [X], inputs: [nine, nine]}",
            "inputs.0: ResourceScatterNdAdd: takes no scalar",
        ),
        (
            "{op: ResourceStridedSliceAssign, resources: [X], inputs: [v, v, z, v]}",
            "inputs.2: ResourceStridedSliceAssign: is zero",
        ),
        ("{op: ResourceGather, resources: [X], inputs: [f]}", "inputs.0: indices must be int32 or"),
        ("{op: ResourceGather, resources: [S], inputs: [nine]}", "resources.0: ResourceGather: "),
        ("{op: ResourceGather, resources: [X]}", "missing field `indices`"),
    ],
)
def test_indices_that_static_inference_refutes_are_refused(line: str, message: str) -> None:
    """With the line of the file, and the field."""
    text = f"""litmusfuzz: 2
name: refuted
variables:
  X: {{dtype: int32, shape: [3]}}
  S: {{dtype: int32}}
graphs:
  main:
    nine: {{op: Const, dtype: int32, value: 9}}
    f: {{op: Const, dtype: float32, value: 0}}
    v: {{op: Const, dtype: int32, shape: [1], value: 1}}
    z: {{op: Const, dtype: int32, shape: [1], value: 0}}
    n: {line}
"""
    with pytest.raises(ValueError, match=r"bad\.yaml:12: ") as caught:
        loads(text, "bad.yaml")
    assert message in str(caught.value)
