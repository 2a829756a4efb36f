"""The safety analysis: unsafe pairs by kinds of ops and kinds of paths; its options."""

from __future__ import annotations

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import LitmusTest, Node
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.passes.safety import Analysis, unsafe_pairs


def pairs(test: LitmusTest, analysis: Analysis | None = None) -> set[str]:
    found = unsafe_pairs(test.graph.nodes, analysis or Analysis())
    return {f"{first} {second}" for first, second in found}


@pytest.mark.parametrize(
    ("program", "unsafe"),
    [
        ("X=1; r0=Y", {"w0 r0"}),  # write, read
        ("X=1; Y+=1", {"w0 w1"}),  # write, update
        ("X+=1; r0=Y", {"w0 r0"}),  # update, read
        ("X+=1; Y+=1", {"w0 w1"}),  # update, update
        ("r0=X; r1=Y; Z=1", set()),  # a read comes before anything
        ("X=1; Y=1", set()),  # anything comes before a write
        ("r0=X; Y+=1; Z=1", set()),
        ("X=1; r0=X", {"w0 r0"}),  # whatever variables they touch
        ("X=1 || r0=Y", set()),  # no path
        ("X=1; Z=2; r0=Y", {"w0 r0", "w1 r0"}),
    ],
)
def test_kinds_of_pairs(program: str, unsafe: set[str]) -> None:
    """BLOG, "The Solution"; semantics.md, 5."""
    assert pairs(litmus(program)) == unsafe


def test_a_path_goes_through_pure_ops() -> None:
    test = litmus("X=1; r0=Y")
    nodes = [*test.graph.nodes[:-1], Node("pad", "NoOp", after=("w0",))]
    nodes.append(Node("r0", "ReadVariableOp", (), ("Y",), ("pad",)))
    assert unsafe_pairs(nodes) == {("w0", "r0")}
    assert not unsafe_pairs(nodes, Analysis(transitive=False))


def test_a_path_goes_through_a_section() -> None:
    """Before the section is before its members, and these come before what is after it."""
    assert pairs(litmus("X=1; lock M; r0=Y; Z=1; unlock M; r1=X")) == {"w0 r0", "w0 r1", "w1 r1"}


LOOP = """
litmusfuzz: 2
name: t
variables:
  X: {dtype: int32, shape: [], init: 0}
  Y: {dtype: int32, shape: [], init: 0}
graphs:
  main:
    zero: {op: Const, dtype: int32, shape: [], value: 0}
    first: {op: ReadVariableOp, resources: [Y]}
    loop:
      op: While
      inputs: [zero]
      carried: [i]
      captures: {kept: first}
      condition:
        nodes:
          two: {op: Const, dtype: int32, shape: [], value: 2}
          more: {op: Less, inputs: [i, two]}
        results: [more]
      body:
        nodes:
          one: {op: Const, dtype: int32, shape: [], value: 1}
          set: {op: AssignVariableOp, resources: [X], inputs: [kept]}
          get: {op: ReadVariableOp, resources: [Y], after: [set]}
          next: {op: AddV2, inputs: [i, one], after: [get]}
        results: [next]
    last: {op: ReadVariableOp, resources: [Y], after: [loop.i]}
"""


def test_a_loop_is_an_update_and_its_body_a_level_of_its_own() -> None:
    test = loads(LOOP).test
    assert pairs(test) == {"loop last"}
    (loop,) = (node for node in test.graph.nodes if node.name == "loop")
    assert unsafe_pairs(loop.attrs.body.nodes) == {("set", "get")}
    assert not unsafe_pairs(loop.attrs.condition.nodes)


def test_options_of_the_analysis_hide_pairs() -> None:
    test = litmus("X+=1; Y+=1; r0=Z || X=1; Y+=2")
    assert pairs(test) == {"w0 w1", "w0 r0", "w1 r0", "w2 w3"}
    assert pairs(test, Analysis(transitive=False)) == {"w0 w1", "w1 r0", "w2 w3"}
    assert pairs(test, Analysis(control=False)) == set()
    assert pairs(test, Analysis(update_reads=False)) == {"w0 r0", "w1 r0"}
    assert pairs(test, Analysis(update_writes=False)) == {"w2 w3"}
