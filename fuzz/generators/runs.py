"""The family `runs`: several graphs, and a client that runs them in an order.

Some runs are ordered, some concurrent; one graph may run twice. Now and then a
graph holds a queue op, so that a run waits for another or never ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import Graph, LitmusTest, Run
from litmusfuzz.fuzz.generators.structured import Mix, Scene, Stage, observed, resources, small

if TYPE_CHECKING:
    import random

_MIX = Mix()


def draw(rng: random.Random) -> LitmusTest:
    """One random test; all choices come from `rng`."""
    return small(rng, _sketch, rng.randint(10, 15))


def _sketch(rng: random.Random, most: int, arithmetic: bool) -> LitmusTest:  # noqa: FBT001
    blocks = rng.random()
    draft = resources(
        rng, queues=int(blocks < 0.15), mutexes=int(blocks > 0.88), arithmetic=arithmetic
    )
    kinds, weights = ("plain", "queue", "section"), (4, 2 if draft.queues else 0, 0)
    if draft.mutexes:
        weights = (2, 0, 2)
    stage = Stage(draft, _MIX, most, balanced=rng.random() < 0.8)
    client = drawn_client(rng, rng.choice((1, 2, 2, 2, 3)))
    scenes = {}
    for graph in sorted({run.graph for run in client}):
        times = sum(run.graph == graph for run in client)
        scenes[graph] = scene = Scene(stage, times=times)
        scene.play(
            rng.choices(kinds, weights, k=rng.choice((1, 2, 2, 3, 4))), rng.choice((1, 1, 2))
        )
    if stage.balanced:
        scene.balance()
    return several("runs", rng, client, scenes)


def drawn_client(rng: random.Random, graphs: int) -> tuple[Run, ...]:
    """Two to four runs, each graph at least once; some after others."""
    which = [f"g{number}" for number in range(graphs)]
    which += rng.choices(which, k=rng.choice((0, 0, 1, 1, 2)) if graphs > 1 else rng.choice((1, 2)))
    rng.shuffle(which)
    runs: list[Run] = []
    for name, graph in zip("abcdef", which, strict=False):
        after = tuple(run.name for run in runs if rng.random() < 0.3)
        runs.append(Run(name, graph, after))
    return tuple(runs)


def several(
    name: str, rng: random.Random, client: tuple[Run, ...], scenes: dict[str, Scene]
) -> LitmusTest:
    """The test of several graphs that scenes have become, under a client."""
    draft = next(iter(scenes.values())).draft
    shown = [f"{run.name}.{key}" for run in client for key in scenes[run.graph].shown]
    return LitmusTest(
        name,
        draft.variables,
        tuple(Graph(graph, tuple(scene.nodes)) for graph, scene in scenes.items()),
        observed(rng, shown),
        mutexes=draft.mutexes,
        queues=draft.queues,
        client=client,
    )
