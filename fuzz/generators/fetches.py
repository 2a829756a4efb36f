"""Family `fetches`: runs that fetch and target parts of their graphs, and feed placeholders.

A test is one of `runs` or of `mixed`, of which some runs then name what they fetch, and some
constants become placeholders. Often two runs of one graph fetch different parts of it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import Graph, LitmusTest, Run, all_nodes, head, pruned
from litmusfuzz.corpus.ops import BOOL, ConstAttrs, Kind, PlaceholderAttrs
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators import mixed, runs
from litmusfuzz.fuzz.generators.structured import small

if TYPE_CHECKING:
    import random

    from litmusfuzz.corpus.model import Node
    from litmusfuzz.corpus.ops import Nested
    from litmusfuzz.fuzz.generators.structured import Attempt
    from litmusfuzz.fuzz.generators.unbuilt import UnbuiltTest
    from litmusfuzz.fuzz.support import Support

_MIXED: Final = frozenset({"critical sections", "queues", "conditionals", "loops"})


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    base: Attempt = runs.attempt
    if rng.random() < 0.5 and support.features >= _MIXED:
        base = partial(mixed.attempt, pair=rng.choice(mixed.PAIRS), runs=rng.random() < 0.5)
    return small(rng, support, partial(_attempt, base=base), rng.randint(9, 14))


def _attempt(
    rng: random.Random, support: Support, events: int, *, arithmetic: bool, base: Attempt
) -> UnbuiltTest:
    made = base(rng, support, events, arithmetic=arithmetic)
    nodes = tuple(all_nodes(node for graph in made.graphs for node in graph.nodes))
    client = made.client
    if not client:
        (graph,) = made.graphs
        closes = any(node.definition.closes for node in nodes)
        names = "a" if closes else rng.choice(("a", "ab", "ab"))
        client = tuple(Run(name, graph.name) for name in names)
    made = replace(made, name="fetches", client=client, observe=_keys(made, client), ends=())
    return _asking(rng, _fed(rng, made))


def _keys(made: UnbuiltTest, client: tuple[Run, ...]) -> tuple[str, ...]:
    """The observed values, of each run of their graph."""
    if made.client:
        return made.observe
    return tuple(f"{run.name}.{key}" for run in client for key in made.observe)


def _fed(rng: random.Random, made: UnbuiltTest) -> UnbuiltTest:
    """Let placeholders replace some constants that only nodes outside bodies use."""
    graphs: list[Graph] = []
    feeds: dict[str, list[tuple[str, Nested]]] = {run.name: [] for run in made.client}
    for graph in made.graphs:
        # Constants bound loops.
        kept = {name for n in graph.nodes for name in n.members}
        for node in graph.nodes:
            if node.definition.kind in (Kind.LOOP, Kind.BRANCH, Kind.TRANSFER):
                kept.update(node.references)
        nodes = []
        for node in graph.nodes:
            attrs = node.attrs
            free = node.name not in kept and not node.after
            if (
                isinstance(attrs, ConstAttrs)
                and free
                and attrs.dtype != BOOL
                and rng.random() < 0.4
            ):
                for run in made.client:
                    if run.graph == graph.name:
                        more = rng.choice((0, 1, 10)) * len(feeds[run.name])
                        feeds[run.name].append((node.name, _raised(attrs.value, more)))
                node = replace(
                    node, op="Placeholder", attrs=PlaceholderAttrs(attrs.dtype, attrs.shape)
                )
            nodes.append(node)
        graphs.append(Graph(graph.name, tuple(nodes)))
    client = (replace(run, feeds=tuple(feeds[run.name])) for run in made.client)
    return replace(made, graphs=tuple(graphs), client=tuple(client))


def _raised(value: Nested, more: int) -> Nested:
    if isinstance(value, int):
        return value + more
    return tuple(_raised(part, more) for part in value)


def _asking(rng: random.Random, made: UnbuiltTest) -> UnbuiltTest:
    """Let most runs name what they fetch and target."""
    graphs = {graph.name: graph for graph in made.graphs}
    client = []
    observe: list[str] = []
    for run in made.client:
        shown = [key.partition(".")[2] for key in made.observe if head(key) == run.name]
        keys, effects = _asked(graphs[run.graph].nodes)
        if keys + effects and rng.random() < 0.8:
            # What is observed mostly shows a race, so that it is often fetched.
            liked = [key for key in keys if key in shown] or keys
            fetches = set(rng.sample(liked, min(len(liked), rng.choice((0, 1, 1, 2)))))
            fetches |= set(rng.sample(keys, min(len(keys), rng.choice((0, 0, 1)))))
            rest = [name for name in effects if name not in set(map(head, fetches))]
            targets = rng.sample(
                rest, min(len(rest), rng.choice((0, 1, 1, 2) if fetches else (1,)))
            )
            run = replace(
                run,
                fetches=tuple(key for key in keys if key in fetches),
                targets=tuple(name for name in effects if name in targets),
            )
        if run.wanted:
            shown = list(run.fetches)
            part = pruned(graphs[run.graph], run.wanted)
            there = {node.name for node in part.nodes}
            run = replace(run, feeds=tuple(each for each in run.feeds if each[0] in there))
        observe += (f"{run.name}.{key}" for key in shown)
        client.append(run)
    if len(client) == 1:
        observe = [key.partition(".")[2] for key in observe]
    return replace(made, client=tuple(client), observe=tuple(observe))


def _asked(nodes: tuple[Node, ...]) -> tuple[list[str], list[str]]:
    """Values that a run may fetch, and nodes with an effect that it may target."""
    keys: list[str] = []
    effects: list[str] = []
    for node in nodes:
        if node.definition.constant or node.definition.fed or node.op == "Send":
            continue
        if node.results:
            keys += node.keys[1:]
        elif node.definition.has_value or node.op == "Recv":
            keys.append(node.name)
        if node.definition.has_effect and not node.definition.has_value:
            effects.append(node.name)
    return keys, effects
