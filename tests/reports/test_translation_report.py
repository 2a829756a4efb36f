"""Reports on clusters; tests/cli/test_validate.py tests the command's own output."""

from __future__ import annotations

from litmusfuzz.corpus.model import Cluster
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.reports.allowed import Refuted, Witnessed
from litmusfuzz.reports.translation import TranslationReport

CLUSTERS = (Cluster("k0", ("a", "b")), Cluster("long", ("c",)))
ADDED = Outcome((("X", (1,)),))


def report(**given) -> TranslationReport:
    return TranslationReport("f.yaml", "t", "file", CLUSTERS, **given)


def test_a_cluster_that_the_rules_permit_and_validation_rejects_is_reported() -> None:
    """The most valuable line that this can print: a rule is missing."""
    text = report(
        verdict="unsound", witness=Witnessed("rfc", ADDED, ("W(X) a",)), reason=Refuted("rfc")
    ).text()
    assert text.endswith("the pairwise analysis permits them")
    assert "no total order yields it: the search came to its end" in text


def test_sound_although_the_rules_do_not_permit_it() -> None:
    assert report(
        verdict="sound", outcomes=2, broken=("a and b: unsafe pair",)
    ).text() == "\n".join(
        [
            "t: sound, 2 outcomes with clusters",
            "clusters, by file:",
            "  k0    a b",
            "  long  c",
            "",
            "the rules do not permit:",
            "  a and b: unsafe pair",
        ]
    )


def test_clusters_that_only_we_join_are_listed_last() -> None:
    made = report(verdict="sound", outcomes=2, apart=("a and c",))
    assert made.text().endswith("\n\nwe join, and file keeps apart:\n  a and c")
    assert made.as_json()["apart"] == ["a and c"]


def test_unknown_names_the_budget() -> None:
    text = report(verdict="unknown", outcomes=1).text()
    assert text.startswith("t: unknown, 1 outcome with clusters\n")
    assert text.endswith("see --budget")


def test_a_result_that_is_no_litmus_test_is_explained() -> None:
    made = TranslationReport("f.yaml", "t", "mutant/x", (), "unsound", problem="cycle: a, b")
    assert made.text() == "t: unsound\n  cycle: a, b"
    assert made.as_json()["problem"] == "cycle: a, b"


def test_an_order_without_events_is_not_an_empty_line() -> None:
    text = report(verdict="unsound", witness=Witnessed("rfc", ADDED, ())).text()
    assert "of no event at all" in text


def test_orders_that_may_be_lost_are_named_and_are_why_nothing_is_known() -> None:
    made = report(verdict="unknown", outcomes=1, undecided=("a before c",))
    assert "  perhaps lost by file: a before c" in made.text().splitlines()
    assert made.text().endswith("whether the test orders these; see --budget")
    assert made.as_json()["undecided"] == ["a before c"]
