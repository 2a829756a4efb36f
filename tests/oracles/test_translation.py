"""Translation validation: sound, unsound and unknown clusterings, and added outcomes."""

from __future__ import annotations

import pytest
from helpers import LITMUS, corpus_entry, for_each

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Cluster
from litmusfuzz.corpus.outcome import Outcome, Status, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.oracles import explorer, reference
from litmusfuzz.oracles.explorer import Budget
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.reference import outcome_of
from litmusfuzz.oracles.translation import MOST_ADDED, Soundness, clearest, validate

SMALL = Budget(states=20_000)
CLUSTERED = [path for path in LITMUS if corpus_entry(path).test.clusters]


@for_each("path", CLUSTERED)
def test_the_verdict_is_that_of_the_two_sets(path) -> None:
    """The corpus has the clustered set; the other is the explorer's, or judged by it."""
    entry = corpus_entry(path)
    test = replace(entry.test, clusters=())
    found = validate(entry.test)
    original = explorer.allowed_outcomes(test, RFC)
    assert original.complete
    clustered = explorer.allowed_outcomes(entry.test, RFC)
    added = clustered.witnesses.keys() - original.witnesses.keys()
    assert found.verdict is (Soundness.UNSOUND if added else Soundness.SOUND)
    assert found.outcomes == len(clustered.witnesses)
    if found.added is not None:
        assert found.added in added
        assert outcome_of(entry.test, RFC, found.witness) == found.added


def test_blogs_problem() -> None:
    """BLOG, "The Problem": v0 is 6, although r0 is not 8; by the reference as well."""
    test = litmus("cluster {X=6; r0=Y} || Y=8; X=7")
    found = validate(test)
    assert found.verdict is Soundness.UNSOUND
    assert str(found.added) == "r0=0 X=6 Y=8"
    assert [str(event) for event in found.witness] == [
        *("snapshot(Y) k0", "W(Y) w1", "W(X) w2", "write-back(X) k0")
    ]
    plain = replace(test, clusters=())
    assert reference.allowed_outcomes(plain, RFC).judge(found.added) is Verdict.FORBIDDEN


def test_an_order_that_ends_blocked_counts() -> None:
    """Without the cluster the read happens; in the cluster it waits forever."""
    test = litmus("r0=Q?; X=1 || Y=1; X=2", queues={"Q": 1})
    found = validate(replace(test, clusters=(Cluster("k", ("w0", "w1")),)))
    assert found.verdict is Soundness.UNSOUND
    assert found.added is not None
    assert found.added.status is Status.BLOCKED


def test_a_test_without_clusters_is_sound() -> None:
    found = validate(litmus("X=1; r0=Y || Y=1; r1=X"))
    assert (found.verdict, found.added, found.outcomes) == (Soundness.SOUND, None, 3)


@pytest.mark.parametrize(
    "program", ["cluster {X=1; Y=1} || r0=X; r1=Y", "cluster {X=1; r0=Y} || Y=1"]
)
def test_out_of_budget_is_unknown(program: str) -> None:
    assert validate(litmus(program), Budget(states=1)).verdict is Soundness.UNKNOWN


def test_a_partial_set_can_prove_a_clustering_unsound() -> None:
    """The budget is too small for the whole set."""
    test = litmus("cluster {X=6; r0=Y} || Y=8; X=7 || Z=1; Z=2; Z=3 || r1=Z; r2=X; r3=Y; r4=Z")
    verdicts = {validate(test, Budget(states=2**power)).verdict for power in range(16)}
    assert verdicts == {Soundness.UNKNOWN, Soundness.UNSOUND}


def test_the_clearest_outcome_completes_and_is_near_an_allowed_one() -> None:
    def seen(x: int, y: int, status: Status = Status.COMPLETED) -> Outcome:
        return Outcome((("X", (x,)), ("Y", (y,))), status)

    far, near, blocked = seen(5, 5), seen(0, 5), seen(0, 0, Status.BLOCKED)
    assert clearest([blocked, far, near], [seen(0, 0)]) == near
    assert clearest([blocked], []) == blocked
    assert MOST_ADDED > 1
