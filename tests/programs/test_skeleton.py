"""A skeleton allows what the program's own graph does, by brute force over all total orders."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from litmusfuzz.corpus.pure.definition import Call, computed
from litmusfuzz.corpus.pure.opaque import ROW
from litmusfuzz.corpus.tensors import TensorType
from litmusfuzz.fuzz.passes.opaque import without_opaque
from litmusfuzz.fuzz.programs.anomalies import Site, analyzed
from litmusfuzz.fuzz.programs.checking import check
from litmusfuzz.fuzz.programs.program import Entry, Function, Operation, Program
from litmusfuzz.fuzz.programs.skeleton import skeleton
from litmusfuzz.oracles.events import unfold
from litmusfuzz.oracles.explorer import allowed_outcomes
from litmusfuzz.oracles.model import EXECUTOR
from litmusfuzz.oracles.reference import outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterator

GRAPHS = 500
BLOCKS = 10


def random_graph(rng: random.Random) -> Function:
    """Reads, writes, additions and pure ops with random edges; pure ops are never contracted."""
    names = [f"h{n}" for n in range(rng.randint(1, 2))]
    operations = [Operation(name, "VarHandleOp", stateful=True) for name in names]
    operations.append(Operation("c", "Const"))
    values, effects = ["c"], []
    for number in range(rng.randint(4, 11)):
        name = f"n{number}"
        after = tuple(rng.sample(effects, min(len(effects), rng.choice((0, 0, 1, 2)))))
        kind = rng.random()
        if kind < 0.4 and values:
            inputs = tuple(
                (each, 0) for each in rng.sample(values, min(len(values), rng.randint(1, 2)))
            )
            operations.append(Operation(name, f"Pure{number}", inputs, after))
            values.append(name)
        elif len([e for e in effects if e[0] == "n"]) < 6:
            handle = (rng.choice(names), 0)
            if kind < 0.65:
                operations.append(
                    Operation(name, "ReadVariableOp", (handle,), after, stateful=True)
                )
                values.append(name)
            else:
                op = "AssignVariableOp" if kind < 0.85 else "AssignAddVariableOp"
                inputs = (handle, (rng.choice(values), 0))
                operations.append(Operation(name, op, inputs, after, stateful=True))
            effects.append(name)
    return Function("f", tuple(operations))


@dataclass
class Brute:
    """All total orders of the ops of a graph, pure ones included, with who read what."""

    function: Function

    def __post_init__(self) -> None:
        self.ops = {each.name: each for each in self.function.operations}
        self.effects = [each.name for each in self.function.operations if each.name[0] == "n"]

    def orders(self, done: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        """All orders, but for the place of pure ops."""
        if len(done) == len(self.effects):
            yield done
            return
        for name in self.effects:
            op = self.ops[name]
            before = {source for source, _ in op.inputs} | set(op.after)
            if name not in done and before - {"c"} <= {*done, "h0", "h1"}:
                # Pure ops touch nothing: their place does not matter, so they run at once.
                ready = [n for n in self.effects if self.is_pure(n) and n not in done]
                if not self.is_pure(name) and any(self.is_ready(n, done) for n in ready):
                    continue
                yield from self.orders((*done, name))
                if self.is_pure(name):
                    return

    def is_pure(self, name: str) -> bool:
        """Touches nothing."""
        return self.ops[name].op.startswith("Pure")

    def is_ready(self, name: str, done: tuple[str, ...]) -> bool:
        """Has its inputs."""
        op = self.ops[name]
        return {source for source, _ in op.inputs} | set(op.after) <= {*done, "c", "h0", "h1"}

    def who(self, order: tuple[str, ...]) -> tuple[tuple[str, object], ...]:
        """For each read the assignment that it sees, and the additions since."""
        holds: dict[str, tuple[object, frozenset[object]]] = {}
        terms: dict[str, object] = {"c": ("c",)}
        seen = []
        for name in order:
            op = self.ops[name]
            if self.is_pure(name):
                terms[name] = (op.op, *(terms[source] for source, _ in op.inputs))
                continue
            handle = op.inputs[0][0]
            held = holds.get(handle, (f"initial {handle}", frozenset()))
            if op.op == "ReadVariableOp":
                seen.append((name, held))
                terms[name] = name, held
            elif op.op == "AssignVariableOp":
                holds[handle] = ((name, self.reads_in(terms[op.inputs[1][0]])), frozenset())
            else:
                added = (name, self.reads_in(terms[op.inputs[1][0]]))
                holds[handle] = (held[0], held[1] | {added})
        return tuple(sorted(seen))

    def reads_in(self, term: object) -> frozenset[object]:
        """Reads in a term: the pure parts between accesses are not looked into."""
        if isinstance(term, tuple) and isinstance(term[0], str) and term[0][0] == "n":
            return frozenset((term,))
        parts = term[1:] if isinstance(term, tuple) else ()
        return frozenset(each for part in parts for each in self.reads_in(part))


@pytest.mark.parametrize("block", range(BLOCKS))
def test_who_reads_what_is_the_same(block: int) -> None:
    """The outcomes of a skeleton are those of the graph's total orders, one to one."""
    checked = several = seed = 0
    while checked < GRAPHS // BLOCKS:
        seed += 1
        function = random_graph(random.Random(f"{block} {seed}"))
        brute = Brute(function)
        program = Program("p", function, {}, (Entry("f", "", fetches_of(function)),))
        (side,) = analyzed(program).values()
        names = {access.name: Site(0, n) for n, access in enumerate(side.run.accesses)}
        reads = [each.name for each in side.run.accesses if each.op == "ReadVariableOp"]
        if len(reads) < 2 or len(names) < 4:
            continue
        checked += 1
        made = skeleton([side], names.values())
        events = {event.node.name: event for event in unfold(made.test, EXECUTOR).events}
        values: dict[object, object] = {}
        for order in brute.orders():
            who = brute.who(order)
            if who not in values:
                nodes = [made.nodes[names[each]] for each in order if each in names]
                places = tuple(events[node] for each in nodes for node in each)
                outcome = outcome_of(made.test, EXECUTOR, places)
                values[who] = tuple(dict(outcome.values)[each] for each in made.test.observe)
        allowed = allowed_outcomes(made.test, EXECUTOR)
        assert allowed.complete
        found = {
            tuple(dict(each.values)[name] for name in made.test.observe)
            for each in allowed.witnesses
        }
        assert found == set(values.values()), seed
        assert len(found) == len(values), seed  # no two terms collide
        several += len(found) > 1
    assert several > checked / 2


def fetches_of(function: Function) -> tuple[str, ...]:
    return tuple(each.name for each in function.operations if each.name[0] == "n")


def test_equal_terms_are_equal_and_others_differ() -> None:
    scalar = TensorType("int32", ())

    def term(label: int, *inputs: int) -> int:
        attrs = ROW.attributes({"label": label})
        call = Call(ROW, attrs, (scalar,) * len(inputs))
        return int(computed(call, list(map(_array, inputs))))

    assert term(1, 2, 3) == term(1, 2, 3)
    different = {term(a, b, c) for a in range(20) for b in range(20) for c in range(-2, 2)}
    assert len(different) == 1600
    assert term(1, 2) != term(1, 2, 0)


def _array(value: int) -> object:
    import numpy as np

    return np.array(value, np.int64)


def test_orders_with_one_last_writer_differ_by_what_its_value_comes_from() -> None:
    """A constraint after a gradient's step: a step in between is in the result, or it is not."""
    operations = (
        Operation("h0", "VarHandleOp", stateful=True),
        Operation("n0", "AssignSubVariableOp", (("h0", 0), ("one", 0)), stateful=True),
        Operation("one", "Const", constant=b"1"),
        Operation("n1", "ReadVariableOp", (("h0", 0),), ("n0",), stateful=True),
        Operation("p1", "Pure", (("n1", 0),)),
        Operation("n2", "AssignVariableOp", (("h0", 0), ("p1", 0)), stateful=True),
    )
    function = Function("f", (operations[2], *operations[:2], *operations[3:]))
    program = Program("p", function, {}, (Entry("f", "", fetches_of(function)),))
    report, _ = check(program, [("f", "f")])
    (anomaly,) = report.anomalies
    assert anomaly.kind == "lost update"
    assert [each.operation for each in anomaly.accesses] == ["n1", "n0", "n2"]
    first, second = anomaly.outcomes
    assert first["h0 ends as"] == "another value, which comes from 3"
    assert second["h0 ends as"] == "another value, which comes from 2 and 3"


def test_an_executable_skeleton_has_no_opaque_op_and_at_most_as_many_outcomes() -> None:
    operations = (
        Operation("h0", "VarHandleOp", stateful=True),
        Operation("h1", "VarHandleOp", stateful=True),
        Operation("n0", "ReadVariableOp", (("h0", 0),), stateful=True),
        Operation("n1", "Pure", (("n0", 0),)),
        Operation("n2", "AssignVariableOp", (("h1", 0), ("n1", 0)), stateful=True),
        Operation("n3", "ReadVariableOp", (("h1", 0),), stateful=True),
        Operation("n4", "AssignAddVariableOp", (("h0", 0), ("n3", 0)), stateful=True),
    )
    function = Function("f", operations)
    program = Program("p", function, {}, (Entry("f", "", fetches_of(function)),))
    (side,) = analyzed(program).values()
    made = skeleton(
        [side, side], [Site(s, n) for s in (0, 1) for n in range(len(side.run.accesses))]
    )
    executable = without_opaque(made.test)
    assert {node.op for node in made.test.nodes} & {"Opaque"}
    assert not {node.op for node in executable.nodes} & {"Opaque"}
    abstract = allowed_outcomes(made.test, EXECUTOR)
    concrete = allowed_outcomes(executable, EXECUTOR)
    assert abstract.complete
    assert concrete.complete
    assert 1 < len(concrete.witnesses) <= len(abstract.witnesses)
