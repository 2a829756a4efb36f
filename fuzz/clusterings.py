"""Where clusters come from, by name: what `litmusfuzz validate --clusters` takes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.mutants.clustering import CLUSTERING_MUTANTS, ClusteringMutant
from litmusfuzz.fuzz.passes.clustering import cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from litmusfuzz.corpus.graph import LitmusTest


def _own(test: LitmusTest) -> LitmusTest:
    return test


def _ours(test: LitmusTest) -> LitmusTest:
    return cluster(replace(test, clusters=()))


def _by(mutant: ClusteringMutant, test: LitmusTest) -> LitmusTest:
    return mutant.cluster(replace(test, clusters=()))


CLUSTERINGS: Final[Mapping[str, Callable[[LitmusTest], LitmusTest]]] = MappingProxyType(
    {
        "file": _own,
        "ours": _ours,
        **{name: partial(_by, mutant) for name, mutant in CLUSTERING_MUTANTS.items()},
    }
)
"""Name to a function that gives a test its clusters, or leaves those that it has."""
