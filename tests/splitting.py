"""Two executors that split their updates: one says that it does not, the other that it may.

As an executor of somebody else's is: in a module that knows nothing of the tests, so that a worker
can load it by an entry point.
"""

from __future__ import annotations

from dataclasses import dataclass

from litmusfuzz import Config, PreparedFunction, Refused, Support
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.fuzz.executors.protocol import Diverged

PURE = {"Identity": lambda x: x, "AddV2": lambda x, y: x + y, "Mul": lambda x, y: x * y}
UPDATES = {"AssignAddVariableOp": lambda old, x: old + x, "AssignSubVariableOp": lambda o, x: o - x}
KNOWN = {"Const", "NoOp", "ReadVariableOp", "AssignVariableOp", *PURE, *UPDATES}


class Splitting:
    """Guarantees that an update is indivisible, and splits it."""

    name = "splitting"
    guarantees = "executor"
    support = Support.scalars(ops=KNOWN)

    @classmethod
    def configurations(cls):
        """One."""
        return (Config("plain", guarantees=cls.guarantees),)

    @staticmethod
    def versions():
        """None."""
        return {}

    def prepare(self, test, config):
        """Takes graphs over scalars."""
        for lacking in self.support.lacking(test):
            raise Refused(lacking)
        return Forced(test, play)


class Honest(Splitting):
    """Does the same, and guarantees no more than the RFC."""

    name = "honest"
    guarantees = "rfc"


class Execution:
    """One execution: an update is a step that reads, and a later one that writes."""

    def __init__(self, test):
        self.test = test
        self.held = {variable.name: test.initial(variable)[0] for variable in test.variables}
        self.waiting = {node.name: node for node in test.graph.nodes}
        self.read = {}  # updates that have read, with what

    def ready(self):
        """Nodes whose next step may come."""
        return [n for n in self.waiting.values() if self.held.keys() >= {*n.inputs, *n.after}]

    def step(self, node):
        """Take the next step of a node."""
        if node.op in UPDATES and node.name not in self.read:
            self.read[node.name] = self.held[node.resources[0]]
            return
        del self.waiting[node.name]
        inputs = [self.held[name] for name in node.inputs]
        value = PURE[node.op](*inputs) if node.op in PURE else None
        if node.op == "Const":
            (value,) = self.test.constant(node)
        elif node.op == "ReadVariableOp":
            value = self.held[node.resources[0]]
        elif node.op == "AssignVariableOp":
            self.held[node.resources[0]] = inputs[0]
        elif node.op in UPDATES:
            self.held[node.resources[0]] = UPDATES[node.op](self.read[node.name], *inputs)
        self.held[node.name] = value


def play(test, rng):
    """Execute the test once."""
    execution = Execution(test)
    while ready := execution.ready():
        execution.step(rng.choice(ready))
    return execution.held


@dataclass(frozen=True, slots=True)
class Forced(PreparedFunction):
    """It writes for an update that is one event when somebody waits for it, or at the end."""

    def force(self, order, timeout_s):
        """Follow the order; it reads for an update at the update's first event."""
        execution = Execution(self.test)
        for event in order:
            node = execution.waiting[event.node]
            while node not in execution.ready():
                execution.step(self.next_of(execution))
            execution.step(node)
        while execution.waiting:
            execution.step(self.next_of(execution))
        values = {name: (execution.held[name],) for name in self.test.names}
        return Outcome.of(self.test, values)

    @staticmethod
    def next_of(execution):
        """A step that is no event of its own: of a pure op, or the second one of an update."""
        for node in execution.ready():
            if not node.resources or node.name in execution.read:
                return node
        raise Diverged("no op is ready")
