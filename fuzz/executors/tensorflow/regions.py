"""Which parts of a test a function with ``jit_compile`` holds.

A test's own clusters, or else some that our clusterer permits: those are sound
(docs/clusters.md), so that whatever else runs beside them the outcomes stay those that
`rfc` allows of the test as it was.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import bodies
from litmusfuzz.corpus.ops import SliceAttrs
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.passes.clustering import Clustering, chosen

if TYPE_CHECKING:
    import random

    from litmusfuzz.corpus.model import LitmusTest, Node


def without_clusters(test: LitmusTest) -> LitmusTest:
    """The test without its clusters.

    Raises
    ------
    Refused
        If XLA does not compile a member, or one lies inside a body.
    """
    outside = {node.name: node for graph in test.graphs for node in graph.nodes}
    for cluster in test.clusters:
        for name in cluster.members:
            if name not in outside:
                raise Refused(f"a cluster inside a body ({cluster.name})")
            if not _compiles(outside[name]):
                raise Refused(f"{outside[name].op} in a cluster ({name}) is not compiled")
    return replace(test, clusters=())


def with_regions(test: LitmusTest, rng: random.Random) -> LitmusTest:
    """The test with its own clusters, or else with some drawn from `rng`."""
    if test.clusters:
        return test
    outside = {node.name: node for graph in test.graphs for node in graph.nodes}
    options = Clustering(least=1, most=rng.choice((1, 2, 4, None)))
    found = [
        cluster
        for cluster in chosen(test, options, rng)
        if all(name in outside and _compiles(outside[name]) for name in cluster.members)
        and any(outside[name].resources for name in cluster.members)
    ]
    kept = rng.sample(found, rng.randint(min(1, len(found)), len(found)))
    return replace(test, clusters=tuple(kept))


def _compiles(node: Node) -> bool:
    """Whether XLA does, as far as TensorFlow tells it (docs/tensorflow.md).

    A loop or conditional it would, but not in the form in which we write them.
    """
    strided = isinstance(node.attrs, SliceAttrs) and node.attrs.strides != 1
    return not (strided or bodies(node)) and node.op != "ResourceGatherNd"
