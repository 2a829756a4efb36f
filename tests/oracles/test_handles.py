"""Handles: what no test of the corpus can say by itself."""

from __future__ import annotations

import pytest
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.model import Graph, LitmusTest, Node
from litmusfuzz.corpus.ops import HandleAttrs
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import FileError, dumps, loads
from litmusfuzz.oracles import explorer
from litmusfuzz.oracles.model import MODELS

CLASSIC = ("SB", "MP", "IRIW", "R", "2+2W", "lost-update", "CoWR", "scatter-disjoint-rows")
CHOSEN = dumps(corpus_entry(next(p for p in LITMUS if p.stem == "handle-chosen-by-a-race")))


def aliased(test: LitmusTest) -> LitmusTest:
    """The test in which each op on one variable has a handle of its own."""
    graphs = []
    for graph in test.graphs:
        nodes: list[Node] = []
        for node in graph.nodes:
            if node.definition.on_variables and len(node.resources) == 1:
                handle = f"h_{node.name}"
                nodes.append(Node(handle, "VarHandleOp", attrs=HandleAttrs(node.resources[0])))
                node = replace(node, handle=handle)
            nodes.append(node)
        graphs.append(Graph(graph.name, tuple(nodes)))
    return replace(test, graphs=tuple(graphs))


@pytest.mark.parametrize("name", CLASSIC)
def test_an_alias_changes_no_allowed_set(name: str) -> None:
    test = corpus_entry(next(path for path in LITMUS if path.stem == name)).test
    for model in MODELS.values():
        plain, other = (explorer.allowed_outcomes(t, model) for t in (test, aliased(test)))
        assert plain.complete
        assert set(plain.witnesses) == set(other.witnesses)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "resources: [X, Y], handle: pick.mine, inputs",
            "resources: [X], handle: pick.mine, inputs",
            "main.w.resources: 'pick.mine' stands for X, Y, which are to be listed",
        ),
        (
            "handle: pick.other, after",
            "handle: flag, after",
            "s.handle: no handle 'flag' above",
        ),
        ("variable: Y", "variable: Z", "main.hy.variable: no variable 'Z'"),
        (
            "  Y: {dtype: int32",
            "  Y: {dtype: int64",
            "pick.else.results.0: both branches",
        ),
        ("observe: [f,", "observe: [hx, f,", "observe.0: 'hx' is a handle"),
        ("{op: Equal, inputs: [f, one]}", "{op: Equal, inputs: [f, hx]}", "inputs.1"),
    ],
)
def test_a_handle_is_refused_with_its_line_and_field(old: str, new: str, message: str) -> None:
    text = CHOSEN.replace(old, new, 1)
    assert text != CHOSEN
    if "inputs.1" in message:  # stands above the handles
        text = text.replace("    flag:", "    hz: {op: VarHandleOp, variable: X}\n    flag:")
        text = text.replace("[f, hx]", "[f, hz]")
        message = "main.flag.inputs.1: Equal takes no handle"
    with pytest.raises(FileError) as error:
        loads(text, "a.yaml")
    assert message in str(error.value)
