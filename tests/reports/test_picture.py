"""Drawings as SVG: boxes that do not collide, orders downwards, the cycle marked."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.generators import FAMILIES, generate
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.reason import explain
from litmusfuzz.reports.html.layout import PAD, Box, Line, place, svg
from litmusfuzz.reports.html.picture import MOST_EFFECTS, boxes, picture

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest


def named() -> dict[str, LitmusTest]:
    return {path.stem: corpus_entry(path).test for path in LITMUS}


def parsed(drawing: str) -> ElementTree.Element:
    """Well-formed as XML, hence in a page of HTML, too."""
    return ElementTree.fromstring(drawing)  # noqa: S314 - we wrote it


def lines_of(drawing: str) -> list[tuple[str, str]]:
    """Classes and numbers of the lines, as far as they have one, in their order."""
    root = parsed(drawing)
    return [(path.get("class", ""), path.get("d", "")) for path in root.iter("path")]


def racing(drawing: str) -> set[str]:
    """Statements in boxes that are marked as racing."""
    root = parsed(drawing)
    groups = [group for group in root.iter("g") if group.get("class") == "op race"]
    return {group.find("text").text for group in groups}


@pytest.mark.parametrize("name", ["litmus", *FAMILIES])
def test_boxes_do_not_collide_and_orders_lead_downwards(name: str) -> None:
    """The whole corpus, and generated tests of each family."""
    tests = named().values() if name == "litmus" else [generate(name, 5, i) for i in range(20)]
    for test in tests:
        top = boxes(test)
        place(top)
        for box in top.all():
            for a, b in combinations(box.inside, 2):
                apart = a.right < b.x or b.right < a.x or a.bottom < b.y or b.bottom < a.y
                assert apart, (test.name, a.name, b.name)
                if a.name in box.before.get(b.name, ()):
                    assert a.bottom < b.y, (test.name, a.name, b.name)
            for inner in box.inside:
                assert box.x + PAD <= inner.x, test.name
                assert inner.right + PAD <= box.right, test.name
                assert box.y + PAD <= inner.y, test.name
                assert inner.bottom + PAD <= box.bottom, test.name
        names = [box.name for box in top.all()]
        assert len(names) == len(set(names))
        effects = {node.name for node in test.effects}
        assert effects <= set(names) or test.clusters, test.name


def test_every_test_of_the_corpus_has_a_drawing_or_is_too_large() -> None:
    for test in named().values():
        made = picture(test)
        if len(test.effects) > MOST_EFFECTS:
            assert made is None
            continue
        root = parsed(made.svg)
        assert root.get("role") == "img"
        assert test.name in root.get("aria-label")
        for _, way in lines_of(made.svg):
            assert "nan" not in way
            assert "inf" not in way
    assert picture(named()["MP"]) is not None


def test_the_cycle_of_mp_is_numbered() -> None:
    """X=1; Y=1 || r0=Y; r1=X with r0=1 and r1=0: two orders of the graph, two of the values."""
    test = named()["MP"]
    reason = explain(test, RFC, {"r0": (1,), "r1": (0,)})
    assert reason.arcs == (("w0", "w1"), ("w1", "r0"), ("r0", "r1"), ("r1", "w0"))
    assert len(reason.arcs) == len(reason.cycle)
    made = picture(test, [(e.source, e.target) for e in reason.edges], reason.arcs)
    assert sorted(kind for kind, _ in lines_of(made.svg)) == sorted(
        ["control cycle", "control cycle", "values cycle", "values cycle"]
    )
    assert re.findall(r'<g class="no">.*?>(\d)</text>', made.svg) == ["1", "3", "2", "4"]
    assert racing(made.svg) == {"w0: X = 1", "w1: Y = 1", "r0 = Y", "r1 = X"}
    assert made.kinds == ("racing", "control", "values", "cycle")


def test_without_a_cycle_the_edges_of_the_reason_are_marked() -> None:
    made = picture(named()["MP"], [("w0", "w1")])
    assert sorted(kind for kind, _ in lines_of(made.svg)) == ["control", "control blamed"]


def test_data_and_control_edges_through_pure_nodes() -> None:
    """The write needs what the read returned; an order that another implies has no line."""
    test = litmus("r0=X; Y=r0; Z=1")
    kinds = [kind for kind, _ in lines_of(picture(test).svg)]
    assert sorted(kinds) == ["control", "data"]


def test_ordered_effects_and_two_reads_do_not_race() -> None:
    assert racing(picture(litmus("X=1; r0=X")).svg) == set()
    assert racing(picture(litmus("r0=X || r1=X; Y=1")).svg) == set()
    assert racing(picture(litmus("X=1 || r1=X; Y=1")).svg) == {"w0: X = 1", "r1 = X"}


def test_runs_race_unless_the_client_orders_them() -> None:
    test = named()["runs-ordered"]
    assert racing(picture(test).svg) == set()
    # Two runs of one graph, concurrent: each op meets its own kind.
    section = named()["section-rfc-order"]
    assert racing(picture(section).svg) == {"n0 = X", "w: X = (n0 + 10)", "n1 = X"}


def test_branches_of_one_conditional_do_not_race() -> None:
    made = picture(named()["cl-if-two-branches"])
    root = parsed(made.svg)
    kinds = {group.get("class") for group in root.iter("g")}
    assert {"body", "nest"} <= kinds


def test_text_in_boxes_is_escaped() -> None:
    top = Box("", (), "", [[Box("a", ('<b> & "c"',), "op")], [Box("b", ("x",), "op")]])
    place(top)
    made = svg(top, [Line("a", "b", "data", sideways=True)], '"><script>')
    assert "<script>" not in made
    texts = [text.text for text in parsed(made).iter("text")]
    assert texts == ['<b> & "c"', "x"]


def test_a_large_test_is_left_to_text() -> None:
    assert picture(litmus("; ".join(["X=1"] * (MOST_EFFECTS + 1)))) is None
