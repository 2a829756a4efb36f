"""Family `fetches`: runs that fetch and target parts of their graphs, and feed placeholders.

A test is one of `runs` or of `mixed`, of which some runs then name what they fetch, and some
constants become placeholders. Often two runs of one graph fetch different parts of it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    Graph,
    LitmusTest,
    Run,
    all_nodes,
    bodies,
    head,
    pruned,
)
from litmusfuzz.corpus.ops import BOOL, ConstAttrs, Kind, PlaceholderAttrs
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators import mixed, runs
from litmusfuzz.fuzz.generators.structured import small

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

    from litmusfuzz.corpus.model import Node
    from litmusfuzz.corpus.ops import Nested
    from litmusfuzz.fuzz.generators.structured import Attempt
    from litmusfuzz.fuzz.generators.unbuilt import UnbuiltTest
    from litmusfuzz.fuzz.support import Support

_MIXED: Final = frozenset({"critical sections", "queues", "conditionals", "loops"})
_EVENTS: Final = (5, 10)
"""Least and greatest number of events of most tests that have races, and few enough orders."""
_EVENTS_IF_IT_BLOCKS: Final = (8, 18)
"""The same of tests with mutexes or queues."""
_TRIES: Final = 4
"""Tests generated for an attempt, until there is one whose runs can ask for enough events."""
_CHANGES: Final = 8
"""Changes of what the runs of one test ask for, until its number of events is in the limits."""


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    base: Attempt = runs.attempt
    if rng.random() < 0.5 and support.features >= _MIXED:
        base = partial(mixed.attempt, pair=rng.choice(mixed.PAIRS), runs=rng.random() < 0.5)
    return small(rng, support, partial(_attempt, base=base), rng.randint(9, 14))


def _attempt(
    rng: random.Random, support: Support, events: int, *, arithmetic: bool, base: Attempt
) -> UnbuiltTest:
    """A test whose runs ask for parts of their graphs; for everything after too many tries."""
    for _ in range(_TRIES):
        unbuilt = _with_client(rng, base(rng, support, events, arithmetic=arithmetic))
        whole = _Whole(unbuilt)
        least, most = _EVENTS_IF_IT_BLOCKS if unbuilt.blocks else _EVENTS
        if sum([whole.size(run, ()) for run in unbuilt.client]) >= least:
            client = _asking(rng, whole, least, most)
            if client:
                return _fed(rng, whole, client)
    return _fed(rng, whole, unbuilt.client)


def _with_client(rng: random.Random, unbuilt: UnbuiltTest) -> UnbuiltTest:
    """The test, of which a client runs the graph once or twice unless it has a client."""
    if unbuilt.client:
        return replace(unbuilt, name="fetches", ends=())
    (graph,) = unbuilt.graphs
    closes = bool(unbuilt.queues) and any(n.definition.closes for n in all_nodes(graph.nodes))
    names = "a" if closes else rng.choice(("a", "ab", "ab"))
    client = tuple(Run(name, graph.name) for name in names)
    observe = tuple(f"{run.name}.{key}" for run in client for key in unbuilt.observe)
    return replace(unbuilt, name="fetches", client=client, observe=observe, ends=())


class _Whole:
    """A test before its runs ask for parts of its graphs.

    Attributes
    ----------
    graphs : dict of str to Graph
    keys, effects : dict of str to (list of str)
        By graph, values that a run may fetch, and nodes with an effect that it may target.
    events : dict of str to int
        By node.
    """

    def __init__(self, unbuilt: UnbuiltTest) -> None:
        self.unbuilt = unbuilt
        self.graphs = {graph.name: graph for graph in unbuilt.graphs}
        self.keys: dict[str, list[str]] = {}
        self.effects: dict[str, list[str]] = {}
        self.events: dict[str, int] = {}
        self._parts: dict[str, set[str]] = {}
        for graph in unbuilt.graphs:
            self.keys[graph.name], self.effects[graph.name] = _asked(graph.nodes)
            for node, number in zip(graph.nodes, _events(unbuilt, graph.nodes), strict=True):
                self.events[node.name] = number
            if not (unbuilt.context.mutexes and any(node.members for node in graph.nodes)):
                # What a node needs is itself, and what those need that it refers to.
                for node in graph.nodes:
                    needs = [self._parts[head(name)] for name in node.references]
                    self._parts[node.name] = {node.name}.union(*needs)

    def part(self, run: Run, wanted: Iterable[str]) -> set[str]:
        """Nodes that a run executes for the sake of what it asks for, or of everything."""
        there: set[str] = set()
        for key in wanted:
            name = head(key)
            if name not in self._parts:
                nodes = pruned(self.graphs[run.graph], (name,)).nodes
                self._parts[name] = {node.name for node in nodes}
            there |= self._parts[name]
        return there or {node.name for node in self.graphs[run.graph].nodes}

    def size(self, run: Run, wanted: Iterable[str]) -> int:
        """Number of events of a run that asks for `wanted`, or for everything if that is empty."""
        return sum([self.events[name] for name in self.part(run, wanted)])


def _events(unbuilt: UnbuiltTest, nodes: Iterable[Node]) -> list[int]:
    """Number of events of each node, where every loop reaches its bound."""
    numbers = []
    for node in nodes:
        kind = node.definition.kind
        if kind is Kind.QUEUE:
            number = unbuilt.elements(node)
        elif kind is Kind.BRANCH or kind is Kind.LOOP or kind is Kind.CALL:
            inside = [sum(_events(unbuilt, body.nodes)) for _, body in bodies(node)]
            number = max(inside) if kind is Kind.BRANCH else sum(inside)
            if kind is Kind.LOOP:  # its condition once more
                number = unbuilt.bounds[node.name] * number + inside[0]
        else:
            twice = kind is Kind.UPDATE or kind is Kind.SECTION
            number = len(node.resources) * (2 if twice else 1)
        numbers.append(number)
    return numbers


def _asking(rng: random.Random, whole: _Whole, least: int, most: int) -> tuple[Run, ...]:
    """A client of which most runs name what they fetch and target.

    Together its runs have a number of events between two limits; () if no such client was found.
    """
    client = whole.unbuilt.client
    asked = [_chosen(rng, whole, run) for run in client]
    sizes = [whole.size(run, wanted) for run, wanted in zip(client, asked, strict=True)]
    for _ in range(_CHANGES):
        if least <= sum(sizes) <= most:
            return tuple([_named(whole, run, asked[i]) for i, run in enumerate(client)])
        place = sizes.index(max(sizes))
        if sum(sizes) < least:
            place = rng.randrange(len(client))
        run, wanted = client[place], asked[place]
        possible = whole.keys[run.graph] + whole.effects[run.graph]
        if sum(sizes) < least and wanted:
            wanted.append(rng.choice(possible))
        elif len(wanted) > 1:
            wanted.remove(rng.choice(wanted))
        elif possible:
            asked[place] = [rng.choice(possible)]
        sizes[place] = whole.size(run, asked[place])
    return ()


def _chosen(rng: random.Random, whole: _Whole, run: Run) -> list[str]:
    """What a run asks for at first: [] for everything."""
    keys, effects = whole.keys[run.graph], whole.effects[run.graph]
    if not (keys or effects) or rng.random() >= 0.8:
        return []
    # What is observed mostly shows a race, so that it is often fetched.
    shown = whole.unbuilt.observe
    liked = [key for key in keys if f"{run.name}.{key}" in shown] or keys
    wanted = rng.sample(liked, min(len(liked), rng.choice((0, 1, 1, 2))))
    wanted += rng.sample(keys, min(len(keys), rng.choice((0, 0, 1))))
    return wanted + rng.sample(
        effects, min(len(effects), rng.choice((0, 1, 1, 2) if wanted else (1,)))
    )


def _named(whole: _Whole, run: Run, wanted: list[str]) -> Run:
    """The run, which asks for some values and nodes."""
    fetches = tuple([key for key in whole.keys[run.graph] if key in wanted])
    # What is fetched is not a target as well.
    fetched = set(map(head, fetches))
    targets = [name for name in whole.effects[run.graph] if name in wanted]
    targets = [name for name in targets if name not in fetched]
    return replace(run, fetches=fetches, targets=tuple(targets))


def _fed(rng: random.Random, whole: _Whole, client: tuple[Run, ...]) -> UnbuiltTest:
    """The test of that client; placeholders replace some constants that runs feed."""
    unbuilt = whole.unbuilt
    feeds: dict[str, list[tuple[str, Nested]]] = {run.name: [] for run in client}
    parts = {run.name: whole.part(run, run.wanted) for run in client}
    graphs: list[Graph] = []
    for graph in unbuilt.graphs:
        # Constants that bound loops stay, and with them predicates, sent values, and members of
        # sections.
        kept: set[str] = set()
        for node in graph.nodes:
            kept.update(node.members)
            if node.definition.kind in (Kind.LOOP, Kind.BRANCH, Kind.TRANSFER):
                kept.update(node.references)
        nodes = []
        for node in graph.nodes:
            attrs = node.attrs
            if (
                type(attrs) is ConstAttrs
                and node.name not in kept
                and not node.after
                and attrs.dtype != BOOL
                and rng.random() < 0.4
            ):
                for run in client:
                    if run.graph == graph.name and node.name in parts[run.name]:
                        more = rng.choice((0, 1, 10)) * len(feeds[run.name])
                        feeds[run.name].append((node.name, _raised(attrs.value, more)))
                node = replace(
                    node, op="Placeholder", attrs=PlaceholderAttrs(attrs.dtype, attrs.shape)
                )
            nodes.append(node)
        graphs.append(Graph(graph.name, tuple(nodes)))
    observe: list[str] = []
    for run in client:
        prefix = f"{run.name}."
        if run.wanted:
            observe += (prefix + key for key in run.fetches)
        else:
            observe += (key for key in unbuilt.observe if key.startswith(prefix))
    if len(client) == 1:
        observe = [key.partition(".")[2] for key in observe]
    client = tuple([replace(run, feeds=tuple(feeds[run.name])) for run in client])
    return replace(unbuilt, graphs=tuple(graphs), client=client, observe=tuple(observe))


def _raised(value: Nested, more: int) -> Nested:
    """A literal with `more` added to each int."""
    if isinstance(value, int):
        return value + more
    return tuple(_raised(part, more) for part in value)


def _asked(nodes: tuple[Node, ...]) -> tuple[list[str], list[str]]:
    """Values that a run may fetch, and nodes with an effect that it may target."""
    keys: list[str] = []
    effects: list[str] = []
    for node in nodes:
        op = node.definition
        if op.constant or op.fed or node.op == "Send":
            continue
        results = node.results
        if results:
            keys += node.keys[1:]
        elif op.has_value or node.op == "Recv":
            keys.append(node.name)
        if op.has_effect and not op.has_value:
            effects.append(node.name)
    return keys, effects
