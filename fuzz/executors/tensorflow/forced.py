"""Makes unmodified TensorFlow follow one given total order, by gates that the client opens.

The test gets gates (`litmusfuzz.fuzz.passes.gates`): a gate is a queue that only the
client fills, and from which an op instance takes an element before it begins. The
client opens a gate, waits until the instance has put its number into the *done queue*,
and opens the next gate. A blocked dequeue holds no thread, so that there can be as many
gates as instances. At the end the done queue shows which instances ran, and in which
order; this is compared with the requested order.

Two things that TensorFlow does in one step cannot be separated: the read and write of
an update, and the elements that a many-op (QueueEnqueueMany, QueueDequeueMany) can put
or take at once. While a many-op waits for its next element, the sizes of the queues
must equal those of the requested order after each event.

A take of an accumulator joins its line when it takes (`_joined_late`).

After the last event all remaining gates are opened: nothing else may happen then.

References
----------
semantics.md, section 3.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.corpus.ops import CountAttrs, Kind
from litmusfuzz.corpus.outcome import Outcome, Status, Value
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.protocol import Diverged, Noise, Refused
from litmusfuzz.fuzz.executors.tensorflow import lowering
from litmusfuzz.fuzz.executors.tensorflow.histogram import ALL_DROPPED, HistogramBuilder
from litmusfuzz.fuzz.executors.tensorflow.node_defs import Emitter, const, typed
from litmusfuzz.fuzz.executors.tensorflow.quiescence import is_quiescent, stays_quiescent
from litmusfuzz.fuzz.executors.tensorflow.session import LiveSession, callable_of
from litmusfuzz.fuzz.passes.gates import with_gates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.fuzz.executors.protocol import EventKey
    from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
    from litmusfuzz.fuzz.passes.gates import Gate, Gated, Instance

_STILL: Final = Noise(copies=1, shuffle=False, padding=0)
_COPY: Final = "c0"
_POLLS: Final = 50
"""Reads of the done queue's size before a check of all threads: an event takes
microseconds, a check of all threads a millisecond."""
_GROWTH: Final = {"put": 1, "take": -1}


@dataclass(frozen=True, slots=True)
class _Step:
    """Expected effect of opening one gate.

    Parameters
    ----------
    name : str
        Name of the instance behind the gate.
    gate : Gate
    ended : tuple of Gate
        Gates of the instances that are then done: this one, and blocked many-ops.
    at_once : bool
        True if no many-op is still waiting for an element.
    sizes : tuple of int
        Expected size of each queue of the test after the step.
    """

    name: str
    gate: Gate
    ended: tuple[Gate, ...]
    at_once: bool
    sizes: tuple[int, ...]


class Forcing:
    """Forces total orders of one test; keeps its session while that is usable.

    Parameters
    ----------
    test : LitmusTest
    settings : Settings

    Raises
    ------
    Refused
        If the test has too many op instances.
    """

    def __init__(self, test: LitmusTest, settings: Settings) -> None:
        self._test = test
        try:
            self._gated = with_gates(test)
        except MalformedTest as error:
            raise Refused(f"a gate for each op instance ({error})") from None
        self._settings = settings
        self._template = lowering.lower(self._gated.test)
        self._built = lowering.build(self._template, _STILL, np.random.default_rng(0))
        emit = Emitter(self._built.graph_def)
        token = emit.helper("open/token", const(np.array(0, np.int32)))
        for gate in self._gated.gates.values():
            put = typed("QueueEnqueueV2", "int32")
            emit.helper(f"open/{gate.queue}", put, [f"{_COPY}/{gate.queue}/handle", token])
        self._live: _GatedSession | None = None

    def force(self, order: Sequence[EventKey], timeout_s: float) -> Outcome:
        """The outcome of exactly that total order; see `Forceable.force`."""
        steps = _steps(self._test, self._gated, order)
        live = self._live
        if live is None:
            live = _GatedSession(self._template, self._built, self._settings, copies=1)
            live.watch(self._test, self._gated)
        self._live = None
        sizes = tuple(len(queue.init) for queue in self._test.queues)
        drive = _Drive(live, steps, sizes, time.monotonic() + timeout_s)
        try:
            builder = HistogramBuilder(self._gated.test)
            builder.add(live.step(drive))
        except BaseException:
            live.abandon()
            raise
        if live.usable:
            self._live = live
        else:
            live.abandon()
        if drive.late:
            raise TimeoutError(
                f"after {drive.at} of {len(steps)} ops: not finished within {timeout_s:g} s"
            )
        if not builder.count:
            raise Refused(ALL_DROPPED)
        (outcome,) = builder.histogram()
        if outcome.status is not Status.FAILED:
            _check(self._test, self._gated, steps, drive, dict(outcome.values))
        return _original(self._test, self._gated.test, outcome)

    def close(self) -> None:
        """Close the session, if there is one."""
        if self._live is not None:
            self._live.abandon()
            self._live = None


class _GatedSession(LiveSession):
    """A session over one copy of a test with gates, which the client can open."""

    def watch(self, test: LitmusTest, gated: Gated) -> None:
        """Prepare the callables that the client runs during the race."""
        self._open: dict[str, Callable[[], Any]] = {}
        done = dict.fromkeys(gate.done for gate in gated.gates.values())
        self._done = callable_of(self.session, [f"{_COPY}/{name}/size:0" for name in done])
        held = [f"{_COPY}/{queue.name}/size:0" for queue in test.queues]
        self._held = callable_of(self.session, held) if held else tuple
        self.gates = [gate.queue for gate in gated.gates.values()]

    def open(self, gate: str) -> None:
        """Open a gate: let one instance begin."""
        if gate not in self._open:
            self._open[gate] = callable_of(self.session, (), f"open/{gate}")
        self._open[gate]()

    def done(self) -> int:
        """Number of instances that are done."""
        return sum(map(int, self._done()))

    def held(self) -> tuple[int, ...]:
        """Current size of each queue of the test."""
        return tuple(map(int, self._held()))

    def abandon(self) -> None:
        """Cancel the runs that have not ended, and release the session."""
        self.session.close()
        del self._open, self._done, self._held
        self.close()


@dataclass(slots=True)
class _Drive:
    """Opens the gates in order; `LiveSession.step` calls it repeatedly during the race.

    Attributes
    ----------
    at : int
        Number of completed steps.
    astray : bool
        True if TensorFlow has done more than the current step at once.
    late : bool
        True if the deadline has passed.
    """

    live: _GatedSession
    steps: Sequence[_Step]
    sizes: tuple[int, ...]
    deadline: float
    at: int = 0
    ended: int = 0
    astray: bool = False
    late: bool = False
    opened: set[str] = field(default_factory=set)

    def __call__(self) -> bool:
        """Open gates as far as possible; true if no op can go on."""
        while self.at < len(self.steps):
            self.late = time.monotonic() >= self.deadline
            if self.late or self.astray:
                return True
            step = self.steps[self.at]
            self.open(step.gate.queue)
            over = self.over(step)
            if not over:
                # The step may need a run that only begins when another ends.
                return over is None
            self.ended += len(step.ended)
            self.sizes = step.sizes
            self.at += 1
        for gate in self.live.gates:
            self.open(gate)
        return stays_quiescent()

    def open(self, gate: str) -> None:
        """Open a gate, once."""
        if gate not in self.opened:
            self.opened.add(gate)
            self.live.open(gate)

    def over(self, step: _Step) -> bool | None:
        """True if the step's effects are complete, None if no op can go on before that."""
        wanted = self.ended + len(step.ended)
        if step.at_once and any(self.live.done() >= wanted for _ in range(_POLLS)):
            return True
        if not is_quiescent():
            return False
        if self.as_wanted(step, wanted):
            return True
        # A thread that found a mutex contended may wake up and go on.
        if not stays_quiescent():
            return False
        if self.as_wanted(step, wanted):
            return True
        self.astray = (self.live.done(), self.live.held()) != (self.ended, self.sizes)
        return None

    def as_wanted(self, step: _Step, ended: int) -> bool:
        """True if so many instances are done and, where it matters, the queues hold so much."""
        if self.live.done() != ended:
            return False
        return step.at_once or self.live.held() == step.sizes


def _steps(test: LitmusTest, gated: Gated, order: Sequence[EventKey]) -> list[_Step]:
    """The order as a sequence of gates to open.

    Raises
    ------
    Diverged
        If the order separates the read and the write of an update.
    """
    nodes = {node.name: node for node in test.nodes}
    sizes = {queue.name: len(queue.init) for queue in test.queues}
    waiting: set[Instance] = set()
    steps: list[_Step] = []
    for instance, grouped in groupby(_joined_late(order), _instance):
        keys = list(grouped)
        node = nodes[instance[2]]
        for key in keys:
            if key.resource in sizes:
                sizes[key.resource] += _GROWTH.get(key.access, 0)
        halves = [key for key in keys if key.access in ("R", "W")]
        if node.definition.kind is Kind.UPDATE and 0 < len(halves) < 2 * len(node.resources):
            name = "".join(instance[1:3])
            raise Diverged(f"the order splits update {name}: there is no gate inside an update")
        goes_on = instance in waiting
        ends = keys[-1].part == _parts(test, node) - 1 and keys[-1].access != "join"
        (waiting.discard if ends else waiting.add)(instance)
        gate = gated.gates[instance]
        ended = (gate,) if ends else ()
        step = _Step("".join(instance[1:3]), gate, ended, not waiting, tuple(sizes.values()))
        if goes_on:  # it continues by itself, as soon as it can
            last = steps.pop()
            ended = (*last.ended, *ended)
            step = replace(last, ended=ended, at_once=False, sizes=step.sizes)
        steps.append(step)
    return steps


def _joined_late(order: Sequence[EventKey]) -> list[EventKey]:
    """The same order, but for the takes of accumulators: each joins the line just before it takes.

    TensorFlow takes as soon as there are enough gradients. Only the take itself follows its joining
    the line, and takes leave the line in the order in which they joined it. So those that take may
    join later, and those that never take join last: the outcome is the same.
    """
    joins = {_instance(key): key for key in order if key.access == "join"}
    late: list[EventKey] = []
    for key in order:
        if key.access == "take sum" and (join := joins.pop(_instance(key), None)) is not None:
            late.append(join)
        if key.access != "join":
            late.append(key)
    return [*late, *joins.values()]


def _parts(test: LitmusTest, node: Node) -> int:
    """Number of elements that an op puts or takes, one event each."""
    if isinstance(node.attrs, CountAttrs):
        return node.attrs.count
    return test.type_of(node.inputs[0]).shape[0] if node.definition.several else 1


def _instance(key: EventKey) -> Instance:
    half = key.access if key.access in ("lock", "unlock") else ""
    return key.run, key.frame, key.node, half


def _check(
    test: LitmusTest, gated: Gated, steps: Sequence[_Step], drive: _Drive, seen: Mapping[str, Value]
) -> None:
    """Compare the done queue and the sizes of all queues with the requested order.

    Raises
    ------
    Diverged
        If they differ; the message says after how many ops.
    """
    if drive.astray:
        raise Diverged(
            f"after {drive.at} of {len(steps)} ops: {steps[drive.at].name} puts or takes at "
            "once elements that the order separates"
        )
    for queue in dict.fromkeys(gate.done for gate in gated.gates.values()):
        put = [number[0] for number in _elements(seen[queue])]
        for at, step in enumerate(steps):
            wanted = sorted(gate.number for gate in step.ended if gate.done == queue)
            if sorted(put[: len(wanted)]) != wanted:
                how = "cannot come now" if len(put) < len(wanted) else "was not the next"
                raise Diverged(f"after {at} of {len(steps)} ops: {step.name} {how}")
            del put[: len(wanted)]
        if put:
            raise Diverged(f"after all {len(steps)} ops: more can come")
    held = tuple(len(_elements(seen[queue.name])) for queue in test.queues)
    if steps and held != steps[-1].sizes:
        raise Diverged(f"after all {len(steps)} ops: more can come")


def _elements(contents: Value) -> Sequence[tuple[int, ...]]:
    """Elements of a queue. They are not torn: ops use the queue one at a time."""
    assert isinstance(contents, tuple)
    return cast("Sequence[tuple[int, ...]]", contents)


def _original(test: LitmusTest, gated: LitmusTest, outcome: Outcome) -> Outcome:
    """The outcome of the original test, from one of the test with gates."""
    values = dict(outcome.values)
    names = zip(test.names, (*gated.observe, *test.names[len(test.observe) :]), strict=True)
    return Outcome.of(
        test, {old: values[new] for old, new in names if new in values}, outcome.status
    )
