"""Clusters that race with nodes outside them."""

from __future__ import annotations

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.finding.relations import races


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cluster {X=6; r0=Y} || Y=8; X=7", True),
        ("cluster {X=6; r0=Y} || r1=X", True),
        ("cluster {r0=X; r1=Y} || r2=X; r3=Y", False),  # nobody changes anything
        ("cluster {X=6; r0=Y}", False),  # no company
        ("cluster {X=6; r0=Y} || Z=1", False),  # on other variables
        ("cluster {X=6; r0=Y}; X=7", False),  # after it
        ("Y=1; cluster {X=6; r0=Y}", False),  # before it
        ("cluster {X=6; r0=1+1} || X=7", False),  # one resource op
        ("cluster {X=6; r0=Y} ||| X=7", True),  # a graph that runs beside it
        ("loop 2 {cluster {X=6; r0=Y}} || X=7", True),
        ("loop 2 {cluster {X=6; r0=Y}; r1=X}", False),
    ],
)
def test_a_cluster_races_with_what_no_path_leads_to_or_from(text: str, *, expected: bool) -> None:
    test = litmus(text)
    assert test.clusters
    assert races(test) is expected
