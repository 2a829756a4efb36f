"""A skeleton allows what the program's own graph does, by brute force over all total orders."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.pure.definition import Call, computed
from litmusfuzz.corpus.pure.opaque import ROW
from litmusfuzz.corpus.tensors import TensorType
from litmusfuzz.fuzz.passes.opaque import without_opaque
from litmusfuzz.fuzz.programs.anomalies import Site, analyzed
from litmusfuzz.fuzz.programs.checking import check
from litmusfuzz.fuzz.programs.program import Entry, Function, Operation, Program
from litmusfuzz.fuzz.programs.skeleton import skeleton
from litmusfuzz.oracles.events import Access, unfold
from litmusfuzz.oracles.explorer import allowed_outcomes
from litmusfuzz.oracles.model import EXECUTOR
from litmusfuzz.oracles.reference import outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from litmusfuzz.fuzz.programs.skeleton import Skeleton
    from litmusfuzz.reports.checked import ReportedAnomaly

GRAPHS = 500
BLOCKS = 10


UPDATES = ("AssignAddVariableOp", "ResourceApplyAdagradV2", "ResourceCountUpTo")
SPLIT = "ResourceScatterUpdate"
"""Other accesses may come between its read and its write."""


def random_graph(rng: random.Random) -> Function:
    """Accesses of variables, pure ops and sections of a mutex, with random edges."""
    names = [f"h{n}" for n in range(rng.randint(1, 2))]
    operations = [Operation(name, "VarHandleOp", stateful=True) for name in names]
    operations.append(Operation("m", "MutexV2", stateful=True))
    operations.append(Operation("c", "Const"))
    values, effects, locks = ["c"], [], []
    most = rng.choice((0, 0, 2, 3))
    accesses = 0
    for number in range(rng.randint(4, 12)):
        name = f"n{number}"
        after = tuple(rng.sample(effects, min(len(effects), rng.choice((0, 0, 1, 2)))))
        if locks and rng.random() < 0.6:  # inside of a section, perhaps
            after = tuple(dict.fromkeys((*after, rng.choice(locks))))
        kind = rng.random()
        if len(locks) < most and rng.random() < 0.3:
            operations.append(Operation(name, "MutexLock", (("m", 0),), after, stateful=True))
            locks.append(name)
            effects.append(name)
        elif kind < 0.3 and values:
            inputs = tuple(
                (each, 0) for each in rng.sample(values, min(len(values), rng.randint(1, 2)))
            )
            operations.append(Operation(name, f"Pure{number}", inputs, after))
            values.append(name)
        elif accesses < 6:
            accesses += 1
            handle = (rng.choice(names), 0)
            op = "ReadVariableOp"
            if kind > 0.6:
                op = rng.choice(("AssignVariableOp", *UPDATES, "AssignAddVariableOp", SPLIT))
            inputs = (handle,) if op == "ReadVariableOp" else (handle, (rng.choice(values), 0))
            operations.append(Operation(name, op, inputs, after, stateful=True))
            if op in ("ReadVariableOp", "ResourceCountUpTo"):
                values.append(name)
            effects.append(name)
    for lock in locks:
        for end in range(rng.choice((0, 1, 1, 1, 2))):
            others = [each for each in effects if each != lock]
            after = tuple(rng.sample(others, min(len(others), rng.choice((0, 1, 1, 2)))))
            operations.append(
                Operation(f"{lock}e{end}", "ConsumeMutexLock", ((lock, 0),), after, stateful=True)
            )
    return Function("f", tuple(operations))


Step = tuple[str, str]
"""An op, and "" or a part of what it does: the read or the write of an update."""


@dataclass
class Brute:
    """All total orders of the ops of a graph, pure ones included, with who read what."""

    function: Function

    def __post_init__(self) -> None:
        self.ops = {each.name: each for each in self.function.operations}
        self.steps: list[Step] = []
        for each in self.function.operations:
            if each.op == SPLIT:
                self.steps += [(each.name, "read"), (each.name, "write")]
            elif each.name[0] == "n":
                self.steps.append((each.name, ""))
        self.consumers = {
            lock.name: [each.name for each in self.ops.values() if (lock.name, 0) in each.inputs]
            for lock in self.ops.values()
            if lock.op == "MutexLock"
        }

    def orders(self, done: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
        """All orders that come to an end, but for the place of what touches no variable."""
        if len(done) == len(self.steps):
            yield done
            return
        ready = [step for step in self.steps if step not in done and self.is_ready(step, done)]
        # What touches no variable runs at once; so do ends of sections, which keep nobody waiting.
        harmless = [step for step in ready if self.is_harmless(step)]
        for step in harmless[:1] or ready:
            yield from self.orders((*done, step))

    def is_harmless(self, step: Step) -> bool:
        """Touches no variable, and keeps no section waiting."""
        op = self.ops[step[0]].op
        return op.startswith("Pure") or op == "ConsumeMutexLock"

    def is_ready(self, step: Step, done: tuple[Step, ...]) -> bool:
        """Has its inputs; a lock finds the mutex free."""
        name, part = step
        if part == "write":
            return (name, "read") in done
        op = self.ops[name]
        if op.op == "MutexLock" and any(self.is_held(lock, done) for lock in self.consumers):
            return False
        return all(self.is_done(each, done) for each in (*dict(op.inputs), *op.after))

    def is_done(self, name: str, done: tuple[Step, ...]) -> bool:
        """Has its value."""
        return name[0] != "n" or (name, "") in done or (name, "write") in done

    def is_held(self, lock: str, done: tuple[Step, ...]) -> bool:
        """Is locked, and somebody still keeps the lock."""
        over = all((each, "") in done for each in self.consumers[lock])
        return (lock, "") in done and not over

    def who(self, order: tuple[Step, ...]) -> tuple[object, object]:
        """For each read, and in the end: the last write, and the additions since."""
        holds: dict[str, tuple[object, frozenset[object]]] = {}
        terms: dict[str, object] = {"c": ("c",)}
        halves: dict[str, object] = {}
        seen = []
        for name, part in order:
            op = self.ops[name]
            if op.op.startswith("Pure"):
                terms[name] = (op.op, *(terms[source] for source, _ in op.inputs))
                continue
            handle = op.inputs[0][0]
            if handle[0] != "h":
                continue
            held = holds.get(handle, (f"initial {handle}", frozenset()))
            if op.op in ("ReadVariableOp", "ResourceCountUpTo"):
                seen.append((name, held))
                terms[name] = name, held
            if op.op == "ReadVariableOp":
                continue
            given = (name, self.reads_in(terms[op.inputs[1][0]]))
            if part == "read":
                halves[name] = held
            elif op.op == "AssignAddVariableOp":
                holds[handle] = (held[0], held[1] | {given})
            elif op.op == "AssignVariableOp":
                holds[handle] = (given, frozenset())
            else:
                holds[handle] = ((*given, halves.get(name, held)), frozenset())
        return tuple(sorted(seen)), tuple(sorted(holds.items()))

    def reads_in(self, term: object) -> frozenset[object]:
        """Reads in a term: the pure parts between accesses are not looked into."""
        if isinstance(term, tuple) and isinstance(term[0], str) and term[0][0] == "n":
            return frozenset((term,))
        parts = term[1:] if isinstance(term, tuple) else ()
        return frozenset(each for part in parts for each in self.reads_in(part))


def placed(made: Skeleton, brute: Brute, order: tuple[Step, ...], sites: dict[str, Site]) -> object:
    """The events of the skeleton, in the order of the steps of the graph."""
    events = {
        (event.node.name, event.access is Access.RELEASE): event
        for event in unfold(made.test, EXECUTOR).events
    }
    found = []
    for place, (name, part) in enumerate(order):
        site = sites.get(name)
        section = made.sections.get(site) if site else None
        if name in brute.consumers:
            found.append(events[section, False])
        elif site:
            nodes = made.nodes[site]
            nodes = nodes[:1] if part == "read" else nodes[-1:] if part == "write" else nodes
            found += [events[section, False]] if section and part != "read" else []
            found += [events[node, False] for node in nodes]
            found += [events[section, True]] if section and part != "read" else []
        for lock in brute.consumers:
            was, now = order[:place], order[: place + 1]
            held = (lock, "") not in was or brute.is_held(lock, was)
            if (lock, "") in now and held and not brute.is_held(lock, now):
                found.append(events[made.sections[sites[lock]], True])
    return tuple(found)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_who_reads_what_is_the_same(block: int) -> None:
    """The outcomes of a skeleton are those of the graph's total orders, one to one."""
    checked = several = sections = seed = 0
    while checked < GRAPHS // BLOCKS:
        seed += 1
        function = random_graph(random.Random(f"{block} {seed}"))
        brute = Brute(function)
        program = Program("p", function, {}, (Entry("f", "", fetches_of(function)),))
        (side,) = analyzed(program).values()
        names = {access.name: Site(0, n) for n, access in enumerate(side.run.accesses)}
        reads = [each.name for each in side.run.accesses if each.effect.shows]
        if len(reads) < 2 or len(names) < 4:
            continue
        checked += 1
        made = skeleton([side], names.values())
        values: dict[object, object] = {}
        for order in brute.orders():
            who = brute.who(order)
            if who not in values:
                values[who] = outcome_of(made.test, EXECUTOR, placed(made, brute, order, names))
        allowed = allowed_outcomes(made.test, EXECUTOR)
        assert allowed.complete
        found = {each for each in allowed.witnesses if each.status is Status.COMPLETED}
        assert found == set(values.values()), seed
        assert len(found) == len(values), seed  # no two terms collide
        several += len(found) > 1
        sections += len(brute.consumers) > 1
    assert several > checked / 2
    assert sections > checked / 5


def fetches_of(function: Function) -> tuple[str, ...]:
    return tuple(each.name for each in function.operations if each.name[0] == "n")


def test_sections_permit_both_orders_of_an_anomaly() -> None:
    """Two runs of a random program beside each other, unless a run can never end."""
    anomalies = different = sections = 0
    for seed in range(60):
        function = random_graph(random.Random(f"anomalies {seed}"))
        if next(Brute(function).orders(), None) is None:
            continue
        program = Program("p", function, {}, (Entry("f", "", fetches_of(function)),))
        report, found = check(program, [("f", "f")])
        for reported, each in zip(report.anomalies, found, strict=True):
            assert each.skeleton is not None, (seed, reported.lines())
            anomalies += 1
            different += bool(reported.outcomes)
            sections += len(each.skeleton.ends) > 1
    assert sections > anomalies / 5
    assert different > 0.9 * anomalies


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
        Operation("one", "Const", value_digest=b"1"),
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
    assert first["h0 ends as"] == "the value of another access, which comes from 3"
    assert second["h0 ends as"] == "the value of another access, which comes from 3, then 2"


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


def checked(operations: tuple[Operation, ...]) -> ReportedAnomaly:
    """The anomaly of a function beside itself."""
    function = Function("f", operations)
    program = Program("p", function, {}, (Entry("f", "", fetches_of(function)),))
    report, (found,) = check(program, [("f", "f")])
    assert found.skeleton is not None
    (anomaly,) = report.anomalies
    return anomaly


def test_a_count_in_a_table_can_be_lost() -> None:
    anomaly = checked(
        (
            Operation("table", "MutableHashTableV2", stateful=True),
            Operation("c", "Const"),
            Operation("n0", "LookupTableFindV2", (("table", 0), ("c", 0)), stateful=True),
            Operation("n1", "Pure", (("n0", 0),)),
            Operation(
                "n2", "LookupTableInsertV2", (("table", 0), ("c", 0), ("n1", 0)), stateful=True
            ),
        )
    )
    assert anomaly.kind == "lost update"
    assert [(each.run, each.operation) for each in anomaly.accesses] == [
        ("f", "n0"),
        ("f", "n2"),
        ("f", "n2"),
    ]
    first, second = anomaly.outcomes
    assert first["table ends as"] == "the value of 3"
    assert second["table ends as"] == "the value of 2"


def test_an_update_in_one_step_keeps_what_another_wrote() -> None:
    anomaly = checked(
        (
            Operation("h0", "VarHandleOp", stateful=True),
            Operation("c", "Const"),
            Operation("n0", "ResourceApplyAdagradV2", (("h0", 0), ("c", 0)), stateful=True),
        )
    )
    assert anomaly.kind == "order only"
    assert [each["h0 ends as"] for each in anomaly.outcomes] == [
        "the value of 2 after 1",
        "the value of 1 after 2",
    ]


def test_an_update_in_two_steps_loses_what_comes_between() -> None:
    anomaly = checked(
        (
            Operation("h0", "VarHandleOp", stateful=True),
            Operation("c", "Const"),
            Operation("n0", "ResourceScatterAdd", (("h0", 0), ("c", 0)), stateful=True),
        )
    )
    assert anomaly.kind == "lost update"
    assert anomaly.orders == ((0, 1, 0), (0, 1))
    assert [each["h0 ends as"] for each in anomaly.outcomes] == [
        "the value of 1",
        "the value of 2 after 1",
    ]


def test_a_section_that_may_end_before_a_write_is_named() -> None:
    def step(*consumes: str) -> tuple[Operation, ...]:
        return (
            Operation("h0", "VarHandleOp", stateful=True),
            Operation("m", "MutexV2", stateful=True),
            Operation("n0", "MutexLock", (("m", 0),), stateful=True),
            Operation("n1", "ReadVariableOp", (("h0", 0),), ("n0",), stateful=True),
            Operation("p1", "Pure", (("n1", 0),)),
            Operation("n2", "AssignVariableOp", (("h0", 0), ("p1", 0)), stateful=True),
            Operation("n3", "ConsumeMutexLock", (("n0", 0),), consumes, stateful=True),
        )

    anomaly = checked(step("n1"))
    assert anomaly.kind == "lost update"
    assert anomaly.repairs == (
        "the CriticalSection may end before 2 and 3: let its result depend on that",
    )
    function = Function("f", step("n2"))
    program = Program("p", function, {}, (Entry("f", "", fetches_of(function)),))
    report, _ = check(program, [("f", "f")])
    assert not report.anomalies
