"""Whether a test orders two of its nodes, in all executions.

A path of edges is no proof: what a branch uses that is not taken, nobody waits for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import FreshNames, Graph, Node, Variable
from litmusfuzz.corpus.ops import ConstAttrs
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.struct import replace
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET, allowed_outcomes
from litmusfuzz.oracles.model import RFC

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.oracles.explorer import Budget


class NotAsked(Exception):
    """A question about several runs, a run that fetches, or nodes that lie in bodies."""


def may_end_first(
    test: LitmusTest, earlier: str, later: str, budget: Budget = DEFAULT_BUDGET
) -> bool | None:
    """True if `later` may be done before `earlier` begins; None if it is not known.

    In front of `earlier` comes a read of a new variable, and behind `later` a write: the question
    is whether the read may give what is written. A second variable keeps what it gives, since a
    run that is blocked returns nothing.

    Parameters
    ----------
    test : LitmusTest
        Without clusters, of one run that executes the whole graph.
    earlier, later : str
        Two nodes that lie in no body.
    budget : Budget, optional

    Raises
    ------
    NoAllowedSet
        If an order makes a value too large.
    NotAsked
    """
    names = FreshNames((*test.types, *(each.name for each in test.resources)))
    flag, kept, one, seen = map(names.like, ("flag", "kept", "one", "seen"))
    if len(test.runs) != 1 or test.runs[0].wanted:
        raise NotAsked("not one run of a whole graph")
    if not {earlier, later} <= {node.name for node in test.graph.nodes}:
        raise NotAsked(f"no nodes {earlier} and {later}")
    nodes = [
        Node(seen, "ReadVariableOp", (), (flag,)),
        Node(names.like("keep"), "AssignVariableOp", (seen,), (kept,)),
        *(
            replace(node, after=(*node.after, seen)) if node.name == earlier else node
            for node in test.graph.nodes
        ),
        Node(one, "Const", attrs=ConstAttrs("int32", (), 1)),
        Node(names.like("set"), "AssignVariableOp", (one,), (flag,), (later,)),
    ]
    asked = replace(
        test,
        variables=(*test.variables, *(Variable(name, "int32", ()) for name in (flag, kept))),
        graphs=(Graph(test.graph.name, tuple(nodes)),),
        observe=(),
    )
    found = allowed_outcomes(asked, RFC, budget)
    if any(dict(outcome.values).get(kept) == (1,) for outcome in found.witnesses):
        return True
    # Of an execution that fails nothing is specified: the others decide.
    known = found.complete and any(o.status is not Status.FAILED for o in found.witnesses)
    return False if known else None
