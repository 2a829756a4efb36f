"""Each mutant of the clusterer is killed by validation of one graph, and survives another.

No run, no luck. What it survives shows that it has one defect; and ours is sound
on both graphs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers import corpus_entry

from litmusfuzz import corpus
from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.mutants.clustering import CLUSTERING_MUTANTS, ClusteringMutant
from litmusfuzz.fuzz.passes.clustering import cluster
from litmusfuzz.oracles.translation import Soundness, validate

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest

MP = "X=1; Y=2 || r0=Y; r1=X"
AROUND = "X=1; r0=Z; Y=1 || r1=Y; Z=2"
"""With an edge from the first write to the last: the read between them stays outside."""


@dataclass(frozen=True)
class Kill:
    """A file of the corpus, whose clusters are left away, or a program, for either."""

    mutant: str
    killed_by: str
    survived_by: str


KILLS = [
    Kill("no-safety-analysis", "cl-blog-problem", MP),
    Kill("direct-dependencies-only", "pair-write-read-pure", "pair-write-read-direct"),
    Kill("data-edges-only", "pair-update-update-pure", MP),
    Kill("update-taken-for-a-write", "pair-write-update-direct", "pair-write-read-direct"),
    Kill("update-taken-for-a-read", "pair-update-read-direct", "pair-write-update-direct"),
    Kill("no-cycle-check", AROUND, "pair-write-read-direct"),
    Kill("region-without-analysis", "X=6; r0=Y ||| Y=8; X=7", "X=1; Y=2 ||| r0=Y; r1=X"),
]


def graph(text: str) -> LitmusTest:
    file = Path(corpus.__file__).parent / "litmus" / f"{text}.yaml"
    if "=" not in text:
        return replace(corpus_entry(file).test, clusters=())
    test = litmus(text)
    if text != AROUND:
        return test
    nodes = tuple(
        replace(n, after=(*n.after, "w0")) if n.name == "w1" else n for n in test.graph.nodes
    )
    return replace(test, graphs=(replace(test.graph, nodes=nodes),))


def killed(mutant: ClusteringMutant, test: LitmusTest) -> bool:
    """Convicted; or what it chose is no graph that could run: each waits for the other."""
    try:
        found = validate(mutant.cluster(test))
    except MalformedTest as error:
        return "cycle through a cluster" in str(error)
    assert found.verdict is not Soundness.UNKNOWN
    return found.verdict is Soundness.UNSOUND


@pytest.mark.parametrize("kill", KILLS, ids=lambda kill: kill.mutant)
def test_each_mutant_is_killed_by_one_graph_and_survives_another(kill: Kill) -> None:
    mutant = CLUSTERING_MUTANTS[f"mutant/{kill.mutant}"]
    assert killed(mutant, graph(kill.killed_by))
    assert not killed(mutant, graph(kill.survived_by))
    for text in (kill.killed_by, kill.survived_by):
        assert validate(cluster(graph(text))).verdict is Soundness.SOUND


def test_each_mutant_has_its_kill() -> None:
    assert {f"mutant/{kill.mutant}" for kill in KILLS} == set(CLUSTERING_MUTANTS)
