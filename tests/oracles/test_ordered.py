"""Whether a test orders two nodes in all executions."""

from __future__ import annotations

import random

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Variable
from litmusfuzz.corpus.model.order import path_between
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators import dag
from litmusfuzz.fuzz.support import Support
from litmusfuzz.oracles.ordered import NotAsked, may_end_first


@pytest.mark.parametrize("seed", range(12))
def test_without_bodies_and_locks_a_path_alone_orders(seed: int) -> None:
    test = dag.generate(random.Random(seed), Support(features=frozenset()))
    names = [node.name for node in test.graph.nodes if node.resources]
    for earlier in names:
        for later in names:
            if earlier != later:
                ordered = bool(path_between(test.graph, later, earlier))
                assert may_end_first(test, earlier, later) is not ordered, (earlier, later)


def test_a_lock_orders_nothing_and_a_message_does() -> None:
    section = litmus("lock M; X=1; unlock M || lock M; Y=1; unlock M")
    message = litmus("X=1; Q!1 || r0=Q?; Y=1", queues={"Q": 1})
    for test, ordered in ((section, False), (message, True)):
        first, second = (n.name for n in test.nodes if n.op == "AssignVariableOp")
        assert may_end_first(test, first, second) is not ordered
        assert may_end_first(test, second, first) is True


def test_executions_that_fail_decide_nothing() -> None:
    """The write of Y comes after that of X in each that does not fail."""
    unset = Variable("Z", "int32", (), None)
    test = litmus("X=1; Y=1 || Z=1 || r0=Z")
    variables = tuple(unset if each.name == "Z" else each for each in test.variables)
    test = replace(test, variables=variables)
    first, second = (n.name for n in test.nodes if n.resources in (("X",), ("Y",)))
    assert may_end_first(test, first, second) is False
    assert may_end_first(test, second, first) is True


def test_several_runs_and_nodes_in_bodies_are_not_asked_about() -> None:
    runs = litmus("X=1; Y=1", client="a:main; b:main")
    loop = litmus("loop 1 { X=1 } || Y=1")
    inside, outside = (n.name for n in loop.nodes if n.op == "AssignVariableOp")
    for test, pair in ((runs, ("w0", "w1")), (loop, (inside, outside))):
        with pytest.raises(NotAsked, match=r"not one run|no nodes"):
            may_end_first(test, *pair)
