"""`litmusfuzz force` without `--outcome`: every allowed outcome, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from litmusfuzz import corpus
from litmusfuzz.fuzz.cli.force import configured
from litmusfuzz.fuzz.executors import table

LITMUS = Path(corpus.__file__).parent / "litmus"
SB = str(LITMUS / "SB.yaml")
LOST = str(LITMUS / "lost-update.yaml")
CLUSTERED = str(LITMUS / "cl-2-2w.yaml")


def test_all_that_needs_no_split_is_reached(litmusfuzz_here) -> None:
    result = litmusfuzz_here("force", LOST, "--executors", "native")
    assert result.stdout.splitlines() == [
        "judged by the model executor, which native/controlled guarantees",
        "lost-update: 1 of 1 on native/controlled; 1 apart: needs an update split in two",
        "  reached  X=2",
        "  apart    X=1  (needs an update split in two)",
    ]
    assert result.returncode == 0


@pytest.mark.parametrize(("executor", "config"), [("tf", "plain"), ("native", "controlled")])
def test_a_configuration_that_guarantees_executor_is_the_default(
    litmusfuzz_here, executor: str, config: str
) -> None:
    result = litmusfuzz_here("force", "SB", "lost-update", "--executors", executor, "--json")
    data = json.loads(result.stdout)
    assert [(each["test"], each["executor"], each["configuration"]) for each in data] == [
        ("SB", executor, config),
        ("lost-update", executor, config),
    ]
    assert [len(each["reached"]) for each in data] == [3, 1]
    assert result.returncode == 0


def test_tests_beyond_the_limits_are_listed_and_undecided(litmusfuzz_here) -> None:
    result = litmusfuzz_here(
        "force", SB, CLUSTERED, "--executors", "native,native:controlled_split"
    )
    assert (
        "left out: 1 test: native: unsupported: clusters; jax can run it: cl-2-2w" in result.stdout
    )
    assert "on native/controlled_split" in result.stdout
    assert result.returncode == 3
    few = litmusfuzz_here("force", SB, "--executors", "native", "--events", "3")
    assert few.stdout.splitlines() == [
        "judged by the model executor, which native/controlled guarantees",
        "SB: left out on native/controlled: 4 events, more than 3",
    ]
    assert few.returncode == 3


def test_a_test_beyond_the_support_of_an_executor_that_clusters_is_left_out(
    litmusfuzz_here,
) -> None:
    result = litmusfuzz_here(
        "force", str(LITMUS / "fetches-intermediate.yaml"), "--executors", "jax"
    )
    assert result.stdout.splitlines() == [
        "judged by rfc, which jax/plain guarantees",
        "fetches-intermediate: left out on jax/plain: "
        "jax: unsupported: fetches; tf, native, jax_refs can run it",
    ]
    assert result.returncode == 3


def test_another_outcome_than_the_orders_is_forbidden(litmusfuzz_here, tmp_path: Path) -> None:
    result = litmusfuzz_here(
        "force", str(LITMUS / "rule-fifo-1.yaml"), "--executors", "mutant/last-in-first-out"
    )
    assert "FORBIDDEN on mutant/last-in-first-out/" in result.stdout
    assert result.returncode == 1


def test_one_outcome_is_forced_with_the_clusters_that_the_executor_runs(litmusfuzz_here) -> None:
    """SB with its two writes in one cluster: one outcome of three is left."""
    forced = litmusfuzz_here("force", "SB", "--executors", "jax", "--outcome", "r0=1", "--json")
    data = json.loads(forced.stdout)
    assert (forced.returncode, data["configuration"]) == (0, "plain")
    assert [event.split("(")[0] for event in data["events"]] == ["write-back", "R", "R"]
    assert data["outcome"] == data["expected"] == {"r0": 1, "r1": 1, "X": 1, "Y": 1}
    none = litmusfuzz_here("force", "SB", "--executors", "jax", "--outcome", "r0=0 r1=1")
    assert (none.returncode, none.stderr) == (
        2,
        "litmusfuzz: SB: r0=0 r1=1: allowed under rfc, but by no order of the clusters of"
        " jax/plain; nearest is r0=1 r1=1 X=1 Y=1; other configurations have others\n",
    )
    apart = litmusfuzz_here(
        "force", "SB", "--executors", "jax:unclustered", "--outcome", "r0=0 r1=1"
    )
    assert apart.returncode == 0
    assert "which yields  r0=0 r1=1 X=1 Y=1" in apart.stdout


def test_a_forbidden_outcome_has_no_order_and_the_nearest_ones_are_named(litmusfuzz_here) -> None:
    for wanted, near in (
        ("r0=0 r1=0", "are r0=0 r1=1 X=1 Y=1, r0=1 r1=0 X=1 Y=1;"),
        ("r0=0 r1=0 X=1", "are r0=0 r1=1 X=1 Y=1, r0=1 r1=0 X=1 Y=1;"),
        ("r0=0 r1=7 X=1", "is r0=0 r1=1 X=1 Y=1;"),
        ("_status=blocked r0=1 r1=0", "is r0=1 r1=0 X=1 Y=1;"),
    ):
        result = litmusfuzz_here("force", "SB", "--outcome", wanted)
        assert result.returncode == 2
        assert result.stderr.endswith(
            f": there is no order; nearest {near} --model names another model\n"
        )
    many = litmusfuzz_here("force", "X=1 || X=2 || X=3 || X=4 || X=5", "--outcome", "X=9")
    assert "nearest are X=1, X=2, X=3 and 2 more; " in many.stderr


def test_a_configuration_is_that_of_the_executor_whose_name_it_follows(
    litmusfuzz_here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of one may end as that of the other: `mine-native:plain,native`."""
    known = {**table.EXECUTORS, "mine-native": table.EXECUTORS["native"]}
    monkeypatch.setattr(table, "EXECUTORS", known)
    chosen = configured("mine-native:plain, native", None, "executor")
    assert [(name, config.name) for name, config in chosen] == [
        ("mine-native", "plain"),
        ("native", "controlled"),
    ]


def test_mistakes_are_one_line(litmusfuzz_here) -> None:
    for arguments, message in (
        (("absent.yaml",), "absent.yaml: No such file or directory"),
        ((SB, "--executors", "nobody"), "--executors: no executor 'nobody'"),
        ((SB, "--executors", "tf:nothing"), "--executors: tf has no configuration 'nothing'"),
        ((SB, "--events", "0"), "--events"),
    ):
        result = litmusfuzz_here("force", *arguments)
        assert result.returncode == 2
        assert message in result.stderr
        assert not result.stdout
