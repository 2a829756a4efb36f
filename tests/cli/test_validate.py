"""`litmusfuzz validate`: output, source of the clusters, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from litmusfuzz import corpus

LITMUS = Path(corpus.__file__).parent / "litmus"
PROBLEM = str(LITMUS / "cl-blog-problem.yaml")
MP = str(LITMUS / "MP.yaml")
BLOCKED = str(LITMUS / "cl-blocked-by-clustering.yaml")
LARGE = str(LITMUS / "cl-while-reads-own-writes.yaml")


def test_an_unsound_clustering_is_reported_with_witness_reason_and_pair(litmusfuzz_here) -> None:
    result = litmusfuzz_here("validate", PROBLEM)
    assert result.returncode == 1
    assert result.stdout.splitlines() == [
        "cl-blog-problem: unsound",
        "clusters, by file:",
        "  k0  storex6 loady",
        "",
        "added by the clusters  loady=0 v0=6 v1=8",
        "witness, a total order of the clustered graph:",
        "  1  snapshot(v1) k0",
        "  2  W(v1) storey",
        "  3  W(v0) storex7",
        "  4  write-back(v0) k0",
        "",
        "forbidden without them (dependencies):",
        "  loady waits for storex6",
        "  loady read 0 of v1, so it came before storey",
        "  storex7 waits for storey",
        "  v0 ended as 6, so storex7 came before storex6",
        "which is a cycle: no total order has all of it",
        "",
        "the rules do not permit:",
        "  storex6 and loady: unsafe pair",
    ]


def test_json_has_the_same(litmusfuzz_here) -> None:
    (found,) = json.loads(litmusfuzz_here("validate", PROBLEM, "--json").stdout)
    assert found["verdict"] == "unsound"
    assert found["clusters"] == {"k0": ["storex6", "loady"]}
    assert found["added"] == {"loady": 0, "v0": 6, "v1": 8}
    assert found["witness"][0] == "snapshot(v1) k0"
    assert found["reason"]["cycle"] is True
    assert found["broken"] == ["storex6 and loady: unsafe pair"]


def test_ours_are_sound(litmusfuzz_here) -> None:
    result = litmusfuzz_here("validate", PROBLEM, "--clusters", "ours")
    assert result.returncode == 0
    assert result.stdout.splitlines() == [
        "cl-blog-problem: sound, 3 outcomes with clusters",
        "clusters, by ours:",
        "  c0  six storex6",
        "  c1  eight seven storey storex7",
    ]


@pytest.mark.parametrize("source", ["ours", "tf"])
@pytest.mark.parametrize(
    ("stem", "message"),
    [
        ("rule-fetches-2", "client.a.targets: in a test with clusters each run executes its"),
        ("uninitialized-stays", "variables.X.initialized: in a test with clusters each variable"),
    ],
)
def test_a_test_that_may_have_no_clusters_is_a_mistake_and_not_unsound(
    litmusfuzz_here, stem: str, message: str, source: str
) -> None:
    result = litmusfuzz_here("validate", str(LITMUS / f"{stem}.yaml"), "--clusters", source)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"{stem}.yaml: {message}" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_of_several_files_the_worst_decides(litmusfuzz_here) -> None:
    """A file without clusters gets ours."""
    result = litmusfuzz_here("validate", MP, BLOCKED)
    assert result.returncode == 1
    assert "MP: sound" in result.stdout
    assert "clusters, by ours:" in result.stdout
    assert "added by the clusters  blocked, X=0 P=[] Q=[]" in result.stdout
    assert "the pairwise analysis permits them" in result.stdout
    assert "r0 and wx: different blocking inputs" in result.stdout
    unknown = litmusfuzz_here("validate", MP, LARGE, "--budget", "100")
    assert unknown.returncode == 3
    assert "--budget" in unknown.stdout


def test_a_mutants_clusters(litmusfuzz_here) -> None:
    """One without a safety analysis chooses what BLOG warns of."""
    result = litmusfuzz_here("validate", PROBLEM, "--clusters", "mutant/no-safety-analysis")
    assert result.returncode == 1
    assert "c0  six storex6 loady" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--clusters", "theirs"), "no source 'theirs'; there are file, ours, mutant/"),
        (("--budget", "0"), "--budget"),
    ],
)
def test_bad_input(litmusfuzz_here, arguments: tuple[str, ...], message: str) -> None:
    result = litmusfuzz_here("validate", PROBLEM, *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert litmusfuzz_here("validate", "no-such-file.yaml").returncode == 2
