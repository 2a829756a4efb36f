"""The model `acd`: what touches one resource comes in the order of the file."""

from __future__ import annotations

import pytest
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.oracles import explorer, reference
from litmusfuzz.oracles.errors import NoProgramOrder, NotOneCluster
from litmusfuzz.oracles.model import ACD, EXECUTOR, ONE_CLUSTER, PROGRAM

SB = corpus_entry(next(path for path in LITMUS if path.stem == "SB")).test


@pytest.mark.parametrize(
    ("test", "observed", "values"),
    [
        # X=1; r0=Y; Y=1; r1=X in the file: r0 comes before Y=1, and r1 after X=1.
        (SB, ("r0", "r1"), {(0, 1)}),
        # Of different resources: nothing is added.
        (litmus("X=1; Z=1 || r0=Y; r1=W"), ("r0", "r1"), {(0, 0)}),
        # A body counts with all that it touches.
        (litmus("r1=F; if r1==1 { X=1 } else { Y=1 } || r0=X", init={"F": 1}), ("r0",), {(1,)}),
    ],
    ids=["SB", "others", "bodies"],
)
def test_program_order_per_resource(test, observed, values) -> None:
    allowed = reference.allowed_outcomes(test, ACD).witnesses
    assert {tuple(outcome.plain[name] for name in observed) for outcome in allowed} == values


def test_no_program_has_clusters() -> None:
    test = litmus("cluster {X=1; r0=X} || Y=1")
    for oracle in (explorer, reference):
        with pytest.raises(NoProgramOrder, match=r"^clusters\.k0: no program has clusters .*acd"):
            oracle.allowed_outcomes(test, ACD)


def test_a_section_that_program_order_goes_through_is_a_cycle() -> None:
    """It waits for a write that stands behind its member in the file."""
    test = loads(
        """
litmusfuzz: 2
name: around
variables:
  X: {dtype: int32, shape: [], init: 0}
mutexes:
  M: {}
graphs:
  main:
    c: {op: Const, dtype: int32, shape: [], value: 1}
    r0: {op: ReadVariableOp, resources: [X]}
    w: {op: AssignVariableOp, resources: [X], inputs: [c]}
    s: {op: CriticalSection, resources: [M], members: [r0], after: [w]}
observe: [r0]
allowed: {}
"""
    ).test
    assert explorer.allowed_outcomes(test, EXECUTOR).complete
    with pytest.raises(NoProgramOrder, match=r"cycle through a section: .*, by program order"):
        explorer.allowed_outcomes(test, ACD)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        # X=1; r0=Y; Y=1; r1=X in the file.
        ("SB", {"r0=0 r1=1 X=1 Y=1"}),
        # The read of A, the whole call with both stores, the read of X, the store of A.
        ("call-needs-only", {"ra=0 sx=1 A=1 X=1 Z=0"}),
        # Inside of the outer call nothing is added: its read comes before or after the inner store.
        ("call-nested", {"r=1 outer.y=0 X=1 Y=1", "r=1 outer.y=1 X=1 Y=1"}),
        # Each of two runs in order, the runs not: as in the two chains of one graph.
        ("sb-two-graphs-no-edge", None),
    ],
)
def test_program_order_of_eager_threads(name: str, shown: set[str] | None) -> None:
    """Sets by hand, from the order of the nodes in the files."""
    test = corpus_entry(next(path for path in LITMUS if path.stem == name)).test
    allowed = reference.allowed_outcomes(test, PROGRAM).witnesses
    assert set(explorer.allowed_outcomes(test, PROGRAM).witnesses) == set(allowed)
    if shown is None:
        shown = {str(each) for each in reference.allowed_outcomes(test, EXECUTOR).witnesses}
        assert {str(each) for each in allowed} <= shown
    else:
        assert {str(each) for each in allowed} == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        # Both stores are through other handles, so only the edge orders them; s follows the first
        # store, which is through its handle, and is not ordered with the second.
        ("handle-two-of-one-variable", {"r=2 s=1 X=2", "r=2 s=2 X=2"}),
        # An Identity is looked through.
        ("handle-through-identity", {"r=1 s=1 X=1"}),
        # The call returns after its store.
        (
            "rule-results-1",
            {
                "reader.r0=0 reader.r1=0 X=1 Y=1",
                "reader.r0=0 reader.r1=1 X=1 Y=1",
                "reader.r0=1 reader.r1=1 X=1 Y=1",
            },
        ),
        ("rule-results-2", {"loop.i=2 X=1"}),
    ],
)
def test_automatic_control_dependencies_see_handles(name: str, shown: set[str]) -> None:
    """Sets by hand."""
    test = corpus_entry(next(path for path in LITMUS if path.stem == name)).test
    allowed = reference.allowed_outcomes(test, ACD).witnesses
    assert set(explorer.allowed_outcomes(test, ACD).witnesses) == set(allowed)
    assert {str(each) for each in allowed} == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        # The order of the file: X=1; r0=Y; Y=1; r1=X.
        ("SB", {"r0=0 r1=1 X=1 Y=1"}),
        # Two functions: both may read before either writes, which the graphs forbid.
        (
            "sb-two-graphs",
            {
                "g1.r0=0 g2.r1=0 X=1 Z=1",
                "g1.r0=0 g2.r1=1 X=1 Z=1",
                "g1.r0=1 g2.r1=0 X=1 Z=1",
            },
        ),
        ("rule-results-2", {"loop.i=2 X=1"}),
    ],
)
def test_a_function_that_xla_compiles_is_one_cluster(name: str, shown: set[str]) -> None:
    """Sets by hand: of two clusters one reads first, or both do."""
    test = corpus_entry(next(path for path in LITMUS if path.stem == name)).test
    allowed = reference.allowed_outcomes(test, ONE_CLUSTER).witnesses
    assert set(explorer.allowed_outcomes(test, ONE_CLUSTER).witnesses) == set(allowed)
    assert {str(each) for each in allowed} == shown


def test_what_waits_is_no_cluster() -> None:
    test = litmus("Q!1; r0=Q?", queues={"Q": 1})
    with pytest.raises(NotOneCluster, match=r"model one_cluster"):
        explorer.allowed_outcomes(test, ONE_CLUSTER)
