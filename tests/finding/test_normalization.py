"""Names and order of a reduced test: normalized as far as it still shows, and else in the key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from campaign.campaigns import Run
from campaign.test_loop import campaign
from helpers import LITMUS
from msgspec import structs

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import FileError, dumps, load, loads
from litmusfuzz.fuzz.campaign.probing import Prober
from litmusfuzz.fuzz.finding.canonical import form, key, key_of, ordered
from litmusfuzz.fuzz.finding.normalization import Normalized, normalize
from litmusfuzz.fuzz.finding.renaming import canonical_names, normalized, permuted, ranked_names
from litmusfuzz.fuzz.generators import FAMILIES, generate
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.reference import allowed_outcomes
from litmusfuzz.reports.events import Confirmed, FindingAdded, Unconfirmed
from litmusfuzz.reports.text import needs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest, Node


def normalization(test: LitmusTest, shows: Callable[[LitmusTest], bool]) -> Normalized:
    """The end of a normalization under a deterministic property, which its test has."""
    made = normalize(test, RFC)
    answer = None
    try:
        while True:
            answer = shows(next(made) if answer is None else made.send(answer))
    except StopIteration as end:
        made_of: Normalized = end.value
    assert shows(made_of.test)
    return made_of


SB = litmus("X=1; r0=Y || Y=1; r1=X", name="SB")
READ, OTHER = (node.name for node in SB.graph.nodes if node.op == "ReadVariableOp")


def named(names: dict[str, str], test: LitmusTest = SB) -> LitmusTest:
    """The test with some nodes under other names."""
    return test.renamed(replace(canonical_names(test), nodes=names))


def reads(test: LitmusTest) -> list[str]:
    return [node.name for node in test.graph.nodes if node.op == "ReadVariableOp"]


def test_a_test_that_shows_under_any_names_has_canonical_ones() -> None:
    test = named({READ: "zz", OTHER: "aa"})
    made = normalization(test, lambda _: True)
    assert made == Normalized(normalized(ordered(test), "finding"))
    assert made.test.description == ""


def test_one_name_that_is_needed_stays_and_the_others_do_not() -> None:
    test = named({READ: "n7", OTHER: "aa"})
    made = normalization(test, lambda each: "n7" in reads(each))
    assert made.names == ("n7",)
    assert not made.order
    plain = {node.name for node in normalized(ordered(SB), "x").graph.nodes}
    names = {node.name for node in made.test.graph.nodes}
    assert names - plain == {"n7"}
    assert plain - names in ({"r0"}, {"r1"})


def test_an_order_of_names_that_is_needed_stays() -> None:
    """The read that stands later in the file has the lesser name, unlike under canonical names."""

    def falling(each: LitmusTest) -> bool:
        return reads(each) == sorted(reads(each), reverse=True)

    first, second = reads(ordered(SB))
    made = normalization(named({first: "zz", second: "aa"}, ordered(SB)), falling)
    # One of the two is enough: the other one has its canonical name, on the right side of it.
    (name,) = made.names
    assert name in ("n0", "n5")
    assert not made.order
    again = named({first: "yy", second: "bb"}, ordered(SB))
    assert normalization(again, falling) == made


def test_an_order_in_the_file_that_is_needed_stays() -> None:
    backwards = next(
        test for test in (reordered(SB, n) for n in range(6)) if ops(test) != ops(ordered(SB))
    )
    made = normalization(backwards, lambda each: ops(each) == ops(backwards))
    assert made.order
    assert not made.names
    assert of(made.test, order=True) != of(made.test)


def ops(test: LitmusTest) -> list[str]:
    return [node.op for node in test.graph.nodes]


def reordered(test: LitmusTest, number: int) -> LitmusTest:
    """The test with its nodes in another order of the file, as far as edges permit."""
    nodes = list(test.graph.nodes)
    nodes = nodes[number % len(nodes) :] + nodes[: number % len(nodes)]
    placed: list[Node] = []
    while nodes:
        names = {node.name for node in nodes}
        placed.append(next(n for n in nodes if not set(n.edges) & names))
        nodes.remove(placed[-1])
    return replace(test, graphs=(replace(test.graph, nodes=tuple(placed)),))


def test_a_finding_that_shows_too_seldom_is_left_as_it_was_run() -> None:
    """It is not said to need its names: the same test, run again, did not show it either."""
    test = named({READ: "zz"})
    made = normalize(test, RFC)
    assert next(made) != test
    shown = False
    assert made.send(shown) == test
    with pytest.raises(StopIteration) as end:
        made.send(shown)
    assert end.value.value == Normalized(test)


# --- keys ------------------------------------------------------------------------------


def of(test: LitmusTest, **needs) -> str:
    return key(test, kind="forbidden", rules=(), executor_class="tf/xla", **needs)


def test_the_key_of_a_finding_that_needs_its_names_is_another_and_stable() -> None:
    test = named({READ: "n7", OTHER: "aa"})
    plain = of(test)
    assert plain == of(SB)
    needed = of(test, names=("n7",))
    assert needed != plain
    assert needed == of(named({OTHER: "bb"}, named({READ: "n7"})), names=("n7",))
    assert needed == of(reordered(test, 3), names=("n7",))
    assert needed != of(named({READ: "n8"}), names=("n8",))
    assert needed != of(test, names=("n7",), order=True)
    assert of(test, order=True) != plain


def test_a_canonical_name_that_is_needed_is_in_the_key_as_well() -> None:
    canonical = normalized(ordered(SB), "x")
    (read, *_) = reads(canonical)
    assert of(canonical, names=(read,)) != of(canonical)
    assert form(canonical, RFC, (read,)).description == f"only with {read}"


# --- names -----------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_permutation_keeps_the_test_and_its_names(family: str) -> None:
    changed = 0
    for index in range(6):
        test = generate(family, 3, index)
        again = permuted(test, index)
        assert permuted(test, index) == again
        changed += again != test
        assert sorted(n.name for n in again.nodes) == sorted(n.name for n in test.nodes)
        assert [n.op for n in again.nodes] == [n.op for n in test.nodes]
        assert form(again) == form(test)
        assert len(again.names) == len(test.names)
        ranked = again.renamed(ranked_names(again))
        before, after = ([n.name for n in each.nodes] for each in (again, ranked))
        assert sorted(range(len(before)), key=before.__getitem__) == sorted(
            range(len(after)), key=after.__getitem__
        )
    assert changed > 3


def test_a_permutation_renames_the_allowed_outcomes() -> None:
    test = litmus("X=1; Y=2 || r0=Y; r1=X")
    for seed in range(4):
        again = permuted(test, seed)
        names = dict(zip(test.names, again.names, strict=True))
        renamed = {
            tuple(sorted((names[name], value) for name, value in outcome.values))
            for outcome in allowed_outcomes(test, RFC).witnesses
        }
        there = {tuple(sorted(o.values)) for o in allowed_outcomes(again, RFC).witnesses}
        assert renamed == there


# --- files -----------------------------------------------------------------------------


def test_what_a_finding_needs_is_in_its_file(ended: Run) -> None:
    entry = load(next((ended.settings.out / "findings").glob("*.yaml")))
    assert entry.finding is not None
    name = entry.test.graph.nodes[-1].name
    line = f"needs_names: [{name}]\n"
    needing = replace(entry, finding=replace(entry.finding, needs_names=(name,), needs_order=True))
    text = dumps(needing)
    assert loads(text) == needing
    assert key_of(needing) != key_of(entry)
    for wrong, why in ((f"[{name}, {name}]", "stands twice"), ("[nobody]", "no node or resource")):
        with pytest.raises(FileError, match=why):
            loads(text.replace(line, f"needs_names: {wrong}\n"))


# --- campaigns -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return campaign(tmp_path_factory.mktemp("campaign"), tests=20).run()


def test_what_is_not_confirmed_is_tried_again_and_may_become_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first fresh process shows nothing of any test; the second one does."""
    honest, asked = Prober.confirm_as_run, []

    async def unlucky(self, slot, unreduced, rng):
        asked.append(unreduced)
        return await honest(self, slot, unreduced, rng) if asked.count(unreduced) > 1 else None

    monkeypatch.setattr(Prober, "confirm_as_run", unlucky)
    run = campaign(tmp_path, tests=20).run()
    refuted = [each.index for each in run.of(Unconfirmed)]
    found = [each.index for each in run.of(FindingAdded)]
    assert refuted
    assert set(found) <= set(refuted)
    assert {each.index for each in run.of(Confirmed)} == set(refuted)
    assert not run.report.unconfirmed
    assert not run.report.pending
    assert run.report.findings


def test_a_later_shard_tries_what_an_earlier_one_did_not_confirm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unlucky(*_) -> None:
        return None

    with monkeypatch.context() as patch:
        patch.setattr(Prober, "confirm_as_run", unlucky)
        earlier = campaign(tmp_path / "earlier", tests=20).run()
    left = earlier.report.unconfirmed
    assert left
    assert not earlier.report.findings
    entries = [load(earlier.path(each.file)) for each in left]
    options = structs.replace(earlier.settings.options, tests=0)
    settings = replace(earlier.settings, options=options, out=tmp_path / "later")
    later = Run(settings, unconfirmed=entries)
    assert {each.index for each in later.run().of(Confirmed)} == {each.index for each in left}
    assert later.report.findings


# --- words -----------------------------------------------------------------------------


def test_what_a_finding_needs_is_said_in_words() -> None:
    found = load(LITMUS[0].parents[1] / "findings" / "scatter-beside-read.yaml").finding
    assert found is not None
    assert needs(found) == []
    assert needs(replace(found, needs_names=("n7",))) == ["only with this name: n7"]
    both = replace(found, needs_names=("a", "b"), needs_order=True)
    assert needs(both) == ["only with these names: a, b and its nodes in this order"]
