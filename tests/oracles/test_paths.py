"""The walk of a long path against the unfolding, which it must agree with."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, corpus_entry, for_each

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.generators import FAMILIES, generate
from litmusfuzz.fuzz.generators import structured as structured_module
from litmusfuzz.fuzz.generators.unbuilt import UnbuiltTest
from litmusfuzz.oracles.events import (
    Access,
    Event,
    Finished,
    Held,
    Pick,
    Result,
    Seen,
    Stack,
    every_stricter,
    parts_of,
    unfold,
)
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.paths import Countable, LongPaths, Path

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.oracles.events import Unfolding

CHOICES = 12
"""Choices of strictness of one test that are compared."""


def unfolded(unfolding: Unfolding) -> tuple[list[Event], list[int]]:
    """The events of the long path and what is before each, by position: from all tokens."""
    weight = Counter(guard for event in unfolding.events for guard in event.guards)
    picks = {token.predicate for token in unfolding.tokens if isinstance(token, Pick)}
    taken = {
        predicate: weight[(predicate, True)] >= weight[(predicate, False)]
        for predicate in picks | {each for each, _ in weight}
    }
    bits: list[int] = []  # of each event; none if it is dead
    live: list[Event] = []
    for event in unfolding.events:
        alive = all(taken[predicate] is wanted for predicate, wanted in event.guards)
        bits.append(1 << len(live) if alive else 0)
        live += [event] if alive else []
    before: list[int] = []
    behind: list[int] = []  # a token: the events that are done when it is ready
    for event in unfolding.events:
        for token in unfolding.tokens[len(behind) : max(event.needs, default=-1) + 1]:
            mask = 0
            if isinstance(token, Held):
                for part in (token.token, *token.waits):
                    mask |= behind[part]
            elif isinstance(token, (Result, Seen, Stack, Finished)):
                alone = isinstance(token, (Result, Seen))
                for e in (token.event,) if alone else token.events:  # type: ignore[union-attr]
                    mask |= before[e] | bits[e] if bits[e] else 0
            elif isinstance(token, Pick):
                chosen = token.then if taken[token.predicate] else token.other
                mask = behind[token.predicate] | behind[chosen]
            else:
                for part in parts_of(token):
                    mask |= behind[part]
            behind.append(mask)
        mask = 0
        for part in event.needs:
            mask |= behind[part]
        for e in event.after:
            mask |= before[e] | bits[e]
        before.append(mask)
    return live, [mask for mask, bit in zip(before, bits, strict=True) if bit]


def check(walked: Countable, test: LitmusTest) -> None:
    """The path of a test, validated or not, is that of its unfolding.

    An op through a handle is one op on a path, and one for each variable in the unfolding, of which
    data decides: such tests are left out.
    """
    if "handles" in test.features:
        return
    stricter = every_stricter(test.nodes, test.clusters, test.bounds)
    paths = LongPaths(walked)
    for strictness in ({}, *islice(stricter, CHOICES)):
        path = paths.path(strictness)
        events, before = unfolded(unfold(test, RFC, strictness))
        assert list(path.before) == before
        # Where indices are computed, the unfolding has a node that reads and one that writes.
        ours = [(e.node.name, e.access, e.variables) for e in path.events]
        # A path has an accumulator, the unfolding its cells: `A.sum`, `A.count`, ...
        resources = [tuple(dict.fromkeys(v.partition(".")[0] for v in e.variables)) for e in events]
        theirs = [(e.node.name, e.access, r) for e, r in zip(events, resources, strict=True)]
        assert ours == theirs


@for_each("path", LITMUS, every=3)
def test_a_path_is_that_of_the_unfolding(path: FilePath) -> None:
    test = corpus_entry(path).test
    check(test, test)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_path_of_an_attempt_is_that_of_the_test_once_it_is_built(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are thrown away included: large ones. An ill-formed one cannot be built."""
    made: list[Countable] = []

    class Kept(LongPaths):
        def __init__(self, test: Countable) -> None:
            made.append(test)
            super().__init__(test)

    monkeypatch.setattr(structured_module, "LongPaths", Kept)
    for index in range(40):
        test = generate(family, 21, index)
        check(test, test)
    unbuilt = [each for each in made[:120] if isinstance(each, UnbuiltTest)]
    early = [each for each in unbuilt if structured_module.closes_early(each)]
    assert len(early) <= 2
    for each in unbuilt:
        if each in early:
            with pytest.raises(MalformedTest, match="is not ordered before it"):
                each.build()
        else:
            check(each, each.build())


def test_attempts_that_are_too_large_are_not_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are nearly half of the attempts."""
    counts: Counter[str] = Counter()

    class Kept(LongPaths):
        def __init__(self, test: Countable) -> None:
            counts["made"] += 1
            super().__init__(test)

    build = UnbuiltTest.build

    def counted(self: UnbuiltTest) -> LitmusTest:
        counts["built"] += 1
        return build(self)

    monkeypatch.setattr(structured_module, "LongPaths", Kept)
    monkeypatch.setattr(UnbuiltTest, "build", counted)
    for index in range(40):
        generate("loops", 1, index)
    assert 40 <= counts["built"] < 45 < 60 < counts["made"]


@pytest.mark.parametrize("family", ["conditionals", "loops", "mixed", "runs", "sections"])
def test_what_an_attempt_has_up_to_one_of_its_ends_is_a_test(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its path is that of the attempt, without the events of what is left out."""
    attempts: list[UnbuiltTest] = []

    class Kept(LongPaths):
        def __init__(self, test: Countable) -> None:
            attempts.extend([test] if isinstance(test, UnbuiltTest) else [])
            super().__init__(test)

    monkeypatch.setattr(structured_module, "LongPaths", Kept)
    for index in range(30):
        generate(family, 5, index)
    compared = shared = 0
    for made in attempts[:60]:
        whole = LongPaths(made).path()
        for end in made.ends:
            shorter = made.ending(end)
            shorter.build()
            names = {node.name for node in shorter.nodes}
            kept = [i for i, event in enumerate(whole.events) if event.node.name in names]
            if whole.shares:
                shared += 1  # the larger branch may be another one
            else:
                assert LongPaths(shorter).path() == whole.only(kept)
                compared += 1
    assert compared > max(50, 4 * shared)


SHARED = """\
litmusfuzz: 2
name: shared
variables:
  X: {{dtype: int32, shape: [], init: 0}}
graphs:
  main:
    r: {{op: ReadVariableOp, resources: [X]}}
    c: {{op: Const, dtype: int32, shape: [], value: 1}}
    p: {{op: Less, inputs: [r, c]}}
    a:
      op: If
      inputs: [p]
      captures: {{c1: c}}
      results: [o1]
      then:
        results: [c1]
      else:
        nodes:
          w1: {{op: AssignVariableOp, resources: [X], inputs: [c1]}}
        results: [c1]
    b:
      op: If
      inputs: [p]
      captures: {{c2: c}}
      results: [o2]
      then:
        nodes:
          w2: {{op: AssignVariableOp, resources: [X], inputs: [c2]}}
          {}
        results: [c2]
      else:
        results: [c2]
"""


@pytest.mark.parametrize(
    ("more", "events"),
    [
        ("w3: {op: AssignAddVariableOp, resources: [X], inputs: [c2]}", 4),
        ("w3: {op: NoOp}", 2),  # as many events in both: the first branches
    ],
)
def test_conditionals_with_one_predicate_take_the_same_branch(more: str, events: int) -> None:
    """By the number of their events together."""
    test = loads(SHARED.format(more)).test
    check(test, test)
    path = LongPaths(test).path()
    assert path.shares
    assert len(path.events) == events


def test_a_path_of_a_named_shape() -> None:
    """MP: X=1; Y=2 || r0=Y; r1=X."""
    path = LongPaths(litmus("X=1; Y=2 || r0=Y; r1=X")).path()
    assert isinstance(path, Path)
    assert [e.access for e in path.events] == [Access.WRITE] * 2 + [Access.READ] * 2
    assert path.before == (0, 0b1, 0, 0b100)
