"""Chooses the parts of a test that functions with ``jit_compile`` contain.

These are the test's own clusters, or else random clusters that LitmusFuzz's clusterer
permits. Such clusters are sound (docs/clusters.md): every outcome of the clustered test
is one that the model `rfc` allows for the test itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import bodies
from litmusfuzz.corpus.ops import SliceAttrs
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.passes.clustering import Clustering, choose_clusters

if TYPE_CHECKING:
    import random

    import tensorflow as tf

    from litmusfuzz.corpus.model import LitmusTest, Node

_NOT_COMPILED: Final = re.compile(
    "must be a compile-time constant|tf2xla conversion failed|Duplicate variable passed to XLA"
)
"""What TensorFlow says of a function or cluster that XLA cannot compile."""
_ONE_GRAPH: Final = re.compile(r"\{\{.*?\}\}|\[id=\d+ .*?\]|__inference_\w+")
"""What it names of one graph: refusals are counted by their texts."""


def without_clusters(test: LitmusTest) -> LitmusTest:
    """The test without its clusters.

    Raises
    ------
    Refused
        If XLA cannot compile a member, or a member is inside a body.
    """
    by_name = {node.name: node for graph in test.graphs for node in graph.nodes}
    for cluster in test.clusters:
        for name in cluster.members:
            if name not in by_name:
                raise Refused(f"a cluster inside a body ({cluster.name})")
            if not _compiles(by_name[name], test):
                raise Refused(f"XLA does not compile {by_name[name].op} in a cluster ({name})")
    return replace(test, clusters=())


def with_regions(test: LitmusTest, rng: random.Random) -> LitmusTest:
    """The test with its own clusters, or else with randomly choose_clusters ones."""
    if test.clusters:
        return test
    by_name = {node.name: node for graph in test.graphs for node in graph.nodes}
    options = Clustering(least=1, most=rng.choice((1, 2, 4, None)))
    found = [
        cluster
        for cluster in choose_clusters(test, options, rng)
        if all(name in by_name and _compiles(by_name[name], test) for name in cluster.members)
        and any(by_name[name].resources for name in cluster.members)
    ]
    kept = rng.sample(found, rng.randint(min(1, len(found)), len(found)))
    return replace(test, clusters=tuple(kept))


def refuse_uncompiled(test: LitmusTest) -> None:
    """Refuse a test with an op that XLA cannot compile.

    Raises
    ------
    Refused
        Naming the op.
    """
    for node in test.nodes:
        if not bodies(node) and not _compiles(node, test):
            raise Refused(f"XLA does not compile {node.op} ({node.name})")


def refuse_compiler(error: tf.errors.OpError) -> None:
    """Refuse a test that XLA does not compile; of an op that fails, say nothing.

    Raises
    ------
    Refused
        With TensorFlow's reason.
    """
    message = str(error.message)
    if _NOT_COMPILED.search(message) and "Read variable failure" not in message:
        reason = _ONE_GRAPH.sub("", message.partition("\n")[0])
        raise Refused(f"XLA does not compile it: {reason}") from None


def _compiles(node: Node, test: LitmusTest) -> bool:
    """True if XLA can compile the node (docs/tensorflow.md).

    XLA can compile loops and conditionals, but not in the form that `emission` writes. A shape
    must be known when it compiles, and it does not report an op that fails.
    """
    row = node.definition.meaning
    if row is not None and (not row.compiles or node.name in test.failing):
        return False
    strided = isinstance(node.attrs, SliceAttrs) and node.attrs.strides != 1
    return not (strided or bodies(node)) and node.op != "ResourceGatherNd"
