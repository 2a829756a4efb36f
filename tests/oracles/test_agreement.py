"""Small random tests of every family, and of `every_op`, pass all checks of `agreement`."""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Final

import agreement
import pytest
from agreement import Disagreement, Tally, check, renamed, reordered, smaller, with_implied_edge
from every_op import AT_ONCE, TABLE, every_op

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Graph, LitmusTest, Variable
from litmusfuzz.corpus.ops import OPS, MalformedTest, PureAttrs, TensorType
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.generators import FAMILIES, generate
from litmusfuzz.fuzz.generators.context import Context
from litmusfuzz.fuzz.generators.pure import PureBody
from litmusfuzz.fuzz.support import EVERYTHING
from litmusfuzz.oracles.bounds import count_all
from litmusfuzz.oracles.model import GUARANTEES, MODELS, RFC

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEED = 11
TESTS = 4
"""Tests of each family."""
ORDERS = 200
"""Largest number of total orders; `make nightly` takes larger tests."""

UNDECIDED: Final = {"every op": 0.02, "lookups": 0.05}
"""Share of the verdicts that the axiomatic oracle may leave open, by family: eight applications of
ops of any size may be more than it evaluates, and each test of `lookups` has ops of computed
shapes, which it decides only where their operands are known."""


def small(family: str) -> Iterator[tuple[int, LitmusTest]]:
    for index in range(4 * TESTS):
        test = agreement.made(family, SEED, index)
        if count_all(test, ORDERS) < ORDERS:
            yield index, test


ALL: Final = (*FAMILIES, *agreement.EXTRA)


@cache
def checked(family: str) -> tuple[Tally, int]:
    """What came out, and how many sets were asked for."""
    tally = Tally()
    asked = 0
    for (index, test), _ in zip(small(family), range(TESTS), strict=False):
        check(test, random.Random(index), tally)
        # Program order does not apply to clusters, nor `program` to members of a section elsewhere.
        asked += 1 + sum(agreement.says_something(model, test) for model in GUARANTEES.values())
    return tally, asked


@pytest.mark.parametrize("family", ALL)
def test_all_oracles_agree(family: str) -> None:
    tally, asked = checked(family)
    assert tally.rules["equal verdicts"] == asked >= (len(MODELS) + 1) * TESTS
    forbidden = sum(tally.verdicts[(oracle, "forbidden")] for oracle in ("reference", "explorer"))
    assert forbidden >= 2 * TESTS
    unknown = Counter(
        {oracle: n for (oracle, verdict), n in tally.verdicts.items() if "unknown" in verdict}
    )
    lenient = unknown.pop("axiomatic", 0) if family in UNDECIDED else 0
    assert lenient <= UNDECIDED.get(family, 0) * sum(tally.verdicts.values())
    assert unknown.total() <= 0.01 * sum(tally.verdicts.values())


def test_every_feature_is_counted() -> None:
    tally = Tally()
    for family in ALL:
        tally.add(checked(family)[0])
    assert set(tally.features) >= set(agreement.FEATURES)
    text = agreement.report(tally, 1.0)
    assert "critical sections" in text
    assert "Reshape" in text
    assert "0 disagreements" in text


def test_every_op_takes_each_op_of_the_table_in_turn() -> None:
    """A few have no sample with a result that has elements; the next turn is another."""
    tests = [every_op(SEED, index) for index in range(-(-2 * len(TABLE) // AT_ONCE))]
    counted = Counter(name for test in tests for name in {node.op for node in test.nodes})
    missing = [row.name for row in TABLE if not counted[row.name]]
    assert len(missing) <= 3, missing
    assert {"MatMul", "NoOp", "Opaque"} <= counted.keys()


def test_the_schedule_has_each_family_in_its_share() -> None:
    places = [agreement.place_of(agreement.SCHEDULE, i) for i in range(2 * len(agreement.SCHEDULE))]
    numbers: dict[str, list[int]] = {}
    for family, number in places:
        numbers.setdefault(family, []).append(number)
    assert numbers.keys() == set(ALL)
    assert all(found == list(range(len(found))) for found in numbers.values())


def test_an_op_in_too_few_tests_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def counted(times: int) -> Iterator[Tally]:
        tally = Tally(Counter({"dag": 10_000}))
        tally.features.update(dict.fromkeys(agreement.FEATURES, 500))
        tally.ops.update(dict.fromkeys(agreement.ALL_OPS, 50) | {"Tile": times})
        yield tally

    for times, code in ((50, 0), (49, 2)):
        monkeypatch.setattr(agreement, "parts", lambda *_, times=times: counted(times))
        assert agreement.main(["--tests", "10000", "--json"]) == code
    assert "ops in fewer than 50 tests: Tile 49" in capsys.readouterr().err


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_test_that_cannot_be_generated_loses_nothing_of_the_others(
    workers: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(agreement, "run", _run_or_fail)
    asked = ["--tests", "60", "--json", "--workers", workers]
    assert agreement.main(asked) == 1
    said, err = capsys.readouterr()
    assert json.loads(said)["tests"] == {"dag": 40}
    assert "MalformedTest: graphs: bad luck" in err
    assert "1 parts of 20 tests each could not be checked" in err


def _run_or_fail(_families: object, _seed: int, chunk: range, **_: object) -> Tally:
    """Count the tests of a chunk; the second one cannot be generated."""
    if chunk.start == 20:
        raise MalformedTest("bad luck", ("graphs",))
    return Tally(Counter({"dag": len(chunk)}))


# --- wrong oracles -------------------------------------------------------------------------


def test_a_wrong_verdict_is_found_and_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle forbids every outcome with the final value X = 11."""

    def liar(test, model):
        def judge(outcome):
            if dict(outcome.values).get("X") == (11,):
                return Verdict.FORBIDDEN
            return agreement._explorer(test, model)(outcome)

        return judge

    monkeypatch.setattr(agreement, "membership_oracles", lambda: {"liar": liar})
    generated = litmus("X=11; r0=Y; r1=X || r2=Y; Y=2; Z=3 || r3=Z; r4=X")
    monkeypatch.setattr(agreement, "generate", lambda *_: generated)
    tally = agreement.run(["dag"], 1, [7], shrink=True)
    ((rule, detail, file),) = tally.disagreements
    assert rule == "equal verdicts"
    assert "liar says forbidden, the set allowed" in detail
    assert [node.op for node in loads(file).test.graph.effects] == ["AssignVariableOp"]
    assert loads(file).test.description.startswith("dag, seed 1, number 7. equal verdicts: ")


def test_sets_that_differ_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The explorer ignores control edges."""
    from litmusfuzz.oracles import explorer

    honest = explorer.allowed_outcomes

    def forgetful(test, model):
        def change(nodes):
            return [replace(node, after=()) for node in nodes]

        return honest(agreement.rebuilt(test, change), model)

    monkeypatch.setattr(explorer, "allowed_outcomes", forgetful)
    with pytest.raises(Disagreement, match="equal sets: rfc: explorer alone has "):
        check(litmus("X=1; Y=2 || r0=Y; r1=X"), random.Random(0), Tally())


def test_the_command_line_writes_json_and_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["--tests", "2", "--family", "dag", "--json", "--out", str(tmp_path / "found")]
    assert agreement.main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["tests"] == {"dag": 2}
    assert not (tmp_path / "found").exists()
    monkeypatch.setattr(
        agreement,
        "membership_oracles",
        lambda: {"liar": lambda _test, _model: lambda _outcome: Verdict.ALLOWED},
    )
    assert agreement.main(arguments) == 1
    found = json.loads(capsys.readouterr().out)["disagreements"]
    assert len(list((tmp_path / "found").iterdir())) == len(found) > 0


# --- variants of tests ---------------------------------------------------------------------


def test_an_implied_edge_follows_a_path() -> None:
    test = litmus("X=1; Y=2; r0=X")
    for seed in range(10):
        changed = with_implied_edge(test, random.Random(seed))
        assert changed is not None
        edges = {
            (source, node.name)
            for old, node in zip(test.graph.nodes, changed.graph.nodes, strict=True)
            for source in set(node.after) - set(old.after)
        }
        assert len(edges) == 1
        paths = {("w0", "r0"), ("c1_0", "w0"), ("c1_0", "w1"), ("c1_0", "r0")}
        assert edges <= paths | {("c2_0", "w1"), ("c2_0", "r0")}


@pytest.mark.parametrize("family", FAMILIES)
def test_changed_and_smaller_tests_are_tests(family: str) -> None:
    rng = random.Random(5)
    for index in range(6):
        test = generate(family, SEED, index)
        changed, outcome_of = renamed(test, rng)
        assert len(changed.observe) == len(test.observe)
        assert changed.features == test.features
        for outcome in agreement.explorer.allowed_outcomes(test, RFC).witnesses:
            assert {str(v) for _, v in outcome_of(outcome).values} == {
                str(v) for _, v in outcome.values
            }
        again = reordered(test, rng)
        for old, new in zip(test.graphs, again.graphs, strict=True):
            assert {n.name for n in old.nodes} == {n.name for n in new.nodes}
        assert all(candidate != test for candidate in smaller(test))


def test_an_op_of_which_a_size_says_that_nothing_results_is_not_generated() -> None:
    """RaggedRange from 0 up to the size of a value, by -3: known to be empty, and so refused."""
    body = PureBody(_context())
    read = body.effect(OPS["ReadVariableOp"], ())
    out_type = PureAttrs((("out_type", "int64"),))
    size = body.call(OPS["Size"], (read,), out_type)
    assert size is not None
    number = TensorType("int64", ())
    first, down, up = (body.literal(number, value) for value in (0, -3, 3))
    attrs = PureAttrs((("result", "rt_dense_values"), ("Tsplits", "int64")))
    assert body.call(OPS["RaggedRange"], (first, size, down), attrs) is None
    found = body.call(OPS["RaggedRange"], (first, size, up), attrs)
    assert found is not None
    test = LitmusTest("t", body.context.variables, (Graph("main", tuple(body.nodes)),), (read,))
    assert test.type_of(found) == body.types[found] == TensorType("int64", (2,))


def _context() -> Context:
    variable = Variable("X", "int32", (2, 2), 1)
    return Context(random.Random(1), EVERYTHING, "int32", (variable,))
